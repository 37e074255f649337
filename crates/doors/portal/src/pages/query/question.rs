//! The query of the query page. The address holds all of it.

use crate::fields::Fields;
use crate::times::{Ends, EnteredTime};
use form_urlencoded::Serializer;
use jiff::tz::TimeZone;
use raingauge_core::bucket::{DAY_S, HOUR_S};

/// The ranges that the form offers: name, label, seconds before now.
pub const SPANS: [(&str, &str, i64); 6] = [
    ("1h", "1 hour", HOUR_S),
    ("24h", "24 h", DAY_S),
    ("7d", "7 days", 7 * DAY_S),
    ("30d", "30 days", 30 * DAY_S),
    ("1y", "1 year", 365 * DAY_S),
    ("custom", "Custom", 0),
];

pub struct Question {
    pub key: String,
    /// The lines of a batch.
    pub batch: String,
    pub span: &'static str,
    /// `None` when the range could not be parsed.
    pub ends: Option<Ends>,
    /// When the question was asked.
    pub now_s: i64,
    pub zone: TimeZone,
    pub fresh: bool,
    pub problems: Vec<String>,
}

impl Question {
    pub fn of(fields: &Fields, now_s: i64) -> Self {
        let mut problems = Vec::new();
        let zone = fields.zone_or_problem(&mut problems);
        let name = fields.given("range").unwrap_or(if fields.given("from").is_some() {
            "custom"
        } else {
            "24h"
        });

        let (span, _, length_s) =
            *SPANS.iter().find(|(known, ..)| *known == name).unwrap_or(&SPANS[1]);
        let ends = match span {
            "custom" => {
                let ends = fields.ends(&zone, now_s, &mut problems);
                ends.filter(|ends| is_forward(ends, &mut problems))
            }
            _ => {
                let from_s = (now_s - length_s).max(0);
                Some((EnteredTime::fixed(from_s), EnteredTime::fixed(now_s)))
            }
        };
        Self {
            key: fields.text("key").to_owned(),
            batch: fields.exact("batch").to_owned(),
            span,
            ends,
            now_s,
            zone,
            fresh: fields.given("fresh").is_some(),
            problems,
        }
    }

    /// The two ends of the range, in seconds since 1970.
    pub fn range(&self) -> Option<(i64, i64)> {
        self.ends.as_ref().map(|(from, to)| (from.at_s, to.at_s))
    }

    /// The query string, with its range as fixed times, so that it always means the same.
    pub fn query(&self) -> String {
        let mut query = self.query_of(self.range());
        if self.fresh {
            query.push_str("&fresh=1");
        }
        query
    }

    /// The same key over this range, for the page of the key's counter.
    pub fn chart_query(&self, from_s: i64, to_s: i64) -> String {
        self.query_of(Some((from_s, to_s)))
    }

    fn query_of(&self, range: Option<(i64, i64)>) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("key", &self.key).append_pair("range", "custom");
        if let Some((from_s, to_s)) = range {
            query.append_pair("from", &from_s.to_string()).append_pair("to", &to_s.to_string());
        }
        if let Some(zone) = self.zone.iana_name().filter(|zone| *zone != "UTC") {
            query.append_pair("zone", zone);
        }
        query.finish()
    }
}

fn is_forward((from, to): &Ends, problems: &mut Vec<String>) -> bool {
    let is_forward = from.at_s <= to.at_s;
    if !is_forward {
        problems.push("The range ends before it begins: swap its ends.".to_owned());
    }
    is_forward
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_leads_back_to_itself() {
        let query = "key=a%3Ab&range=custom&from=900&to=86400&zone=Asia%2FTokyo&fresh=1";
        assert_eq!(Question::of(&Fields::parse(query.as_bytes()), 0).query(), query);
        let rolling = Question::of(&Fields::parse(b"key=a&range=7d"), 10 * DAY_S);
        assert_eq!((rolling.span, rolling.range()), ("7d", Some((3 * DAY_S, 10 * DAY_S))));

        let relative = Question::of(&Fields::parse(b"key=a&from=-2d&to=now"), 10 * DAY_S);
        assert_eq!(relative.range(), Some((8 * DAY_S, 10 * DAY_S)));
        assert_eq!(relative.query(), "key=a&range=custom&from=691200&to=864000");
    }

    #[test]
    fn unreadable_input_is_reported() {
        let problems = |query: &str| Question::of(&Fields::parse(query.as_bytes()), 0).problems;
        assert_eq!(problems("range=custom").len(), 2);
        assert_eq!(
            problems("from=1800&to=900"),
            ["The range ends before it begins: swap its ends."]
        );
        assert_eq!(problems("zone=Mars&range=ever").len(), 1);
    }
}
