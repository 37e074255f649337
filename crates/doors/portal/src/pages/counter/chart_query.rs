//! The query of a chart: keys, range, granularity, time zone. The address holds all of it.

use crate::fields::Fields;
use crate::html::chart::{LINES_MAX, Scale};
use crate::html::words::plural;
use crate::times::{Ends, bucket_end, bucket_start, rolling};
use form_urlencoded::Serializer;
use jiff::tz::TimeZone;
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S};
use raingauge_core::limits::{KEY_LEN_MAX, RANGE_DAYS_MAX, SERIES_POINTS_MAX};
use raingauge_core::retention::Horizons;

/// The time range of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// This many days, ending now.
    Rolling(i64),
    /// The latest stretch of time that has data.
    Latest,
    /// Between two given times.
    Custom,
}

/// The ranges that the form offers: their names in the address, and their labels.
pub const SPANS: [(Span, &str, &str); 7] = [
    (Span::Rolling(1), "24h", "24 h"),
    (Span::Rolling(7), "7d", "7 days"),
    (Span::Rolling(30), "30d", "30 days"),
    (Span::Rolling(90), "90d", "90 days"),
    (Span::Rolling(365), "1y", "1 year"),
    (Span::Latest, "latest", "Latest data"),
    (Span::Custom, "custom", "Custom"),
];

impl Span {
    pub fn name(self) -> &'static str {
        SPANS.iter().find(|(span, ..)| *span == self).map_or("latest", |(_, name, _)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        SPANS.iter().find(|(_, known, _)| *known == name).map(|(span, ..)| *span)
    }
}

/// A query, as read from the address.
#[derive(Clone, Debug)]
pub struct ChartQuery {
    pub keys: Vec<String>,
    pub span: Span,
    /// The two ends of a custom range.
    pub ends: Option<Ends>,
    /// `None` derives the granularity from the length of the range.
    pub granularity: Option<Granularity>,
    pub zone: TimeZone,
    pub compare: bool,
    pub scale: Scale,
    /// Parameters that could not be parsed, with what is shown instead.
    pub problems: Vec<String>,
}

/// The time range shown, and its granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from_s: i64,
    pub to_s: i64,
    pub granularity: Granularity,
}

impl ChartQuery {
    pub fn of(fields: &Fields, now_s: i64) -> Self {
        let mut problems = Vec::new();
        let zone = fields.zone_or_problem(&mut problems);
        let mut span = match fields.text("range") {
            "" if fields.given("from").is_some() => Span::Custom,
            "" => Span::Latest,
            name => Span::from_name(name).unwrap_or_else(|| {
                problems
                    .push(format!("“{name}” is not a range; choose one of those above the chart."));
                Span::Latest
            }),
        };

        let is_custom = span == Span::Custom;
        let ends = is_custom.then(|| ends_of(fields, &zone, now_s, &mut problems)).flatten();
        if span == Span::Custom && ends.is_none() {
            span = Span::Latest;
        }

        let granularity = match fields.text("granularity") {
            "" | "auto" => None,
            name => Granularity::from_name(name).or_else(|| {
                problems.push(format!("Bars cannot be “{name}”: choose quarter, hour or day."));
                None
            }),
        };

        let is_log = fields.text("scale") == "log";
        Self {
            keys: keys_of(fields, &mut problems),
            span,
            ends,
            granularity,
            zone,
            compare: fields.given("compare").is_some(),
            scale: if is_log { Scale::Logarithmic } else { Scale::Linear },
            problems,
        }
    }

    /// The same query for other keys, as a query string.
    pub fn query_with(&self, keys: &[&str]) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(keys.iter().map(|key| ("key", key)));
        query.append_pair("range", self.span.name());

        if let Some((from, to)) = &self.ends {
            query.append_pair("from", &from.in_address()).append_pair("to", &to.in_address());
        }

        if let Some(granularity) = self.granularity {
            query.append_pair("granularity", granularity.name());
        }

        if let Some(zone) = self.zone.iana_name().filter(|zone| *zone != "UTC") {
            query.append_pair("zone", zone);
        }

        if self.compare {
            query.append_pair("compare", "1");
        }

        if self.scale == Scale::Logarithmic {
            query.append_pair("scale", self.scale.name());
        }
        query.finish()
    }

    /// The same keys over their latest data.
    pub fn latest_query(&self) -> String {
        Self { span: Span::Latest, ends: None, granularity: None, ..self.clone() }.query()
    }

    pub fn query(&self) -> String {
        self.query_with(&self.keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The window of this query at this time, given the horizons, and the latest stretch of data if
    /// the query refers to it.
    pub fn window(
        &self,
        now_s: i64,
        horizons: &Horizons,
        latest: Option<(i64, i64)>,
        notes: &mut Vec<String>,
    ) -> Window {
        let (from_s, to_s) = match (self.span, &self.ends, latest) {
            (Span::Custom, Some((from, to)), _) => {
                (Granularity::Quarter.floor(from.at_s), Granularity::Quarter.floor(to.at_s))
            }
            (Span::Latest, _, Some((from_s, to_s))) => (
                bucket_start(from_s, Granularity::Day, &self.zone),
                bucket_end(to_s, Granularity::Day, &self.zone),
            ),
            (Span::Rolling(days), ..) => (now_s - days * DAY_S, now_s),
            _ => (now_s - 7 * DAY_S, now_s),
        };

        let granularity = self.granularity_of(from_s, to_s, horizons, notes);
        let (mut from_s, to_s) = match self.span {
            Span::Rolling(days) => rolling(days, now_s, granularity, &self.zone),
            _ if latest.is_none() && self.ends.is_none() => {
                rolling(7, now_s, granularity, &self.zone)
            }
            _ => (from_s, to_s),
        };

        let kept_s = bucket_end(horizons.of(granularity), Granularity::Day, &self.zone);
        if self.span != Span::Custom && from_s < kept_s && kept_s < to_s {
            from_s = kept_s;
            notes.push("Earlier buckets have expired, so the chart begins later.".to_owned());
        }

        Window { from_s, to_s, granularity }
    }

    /// The requested granularity if a picture can show it and its buckets are kept; otherwise the
    /// finest coarser one for which both hold, or days.
    fn granularity_of(
        &self,
        from_s: i64,
        to_s: i64,
        horizons: &Horizons,
        notes: &mut Vec<String>,
    ) -> Granularity {
        let length_s = to_s - from_s;
        let is_kept = |granularity: Granularity| from_s >= horizons.of(granularity);
        let fits = |granularity: Granularity| {
            length_s / granularity.width_s() <= SERIES_POINTS_MAX as i64 - 2
        };
        let Some(wanted) = self.granularity else {
            return match length_s {
                ..=172_800 if is_kept(Granularity::Quarter) => Granularity::Quarter,
                ..=1_209_600 if is_kept(Granularity::Hour) => Granularity::Hour,
                _ => Granularity::Day,
            };
        };

        let coarser = Granularity::ALL.into_iter().filter(|granularity| *granularity >= wanted);
        let found = coarser.clone().find(|granularity| fits(*granularity) && is_kept(*granularity));
        let found = found.unwrap_or(Granularity::Day);
        if found != wanted {
            let why = if fits(wanted) {
                "they have expired for this range".to_owned()
            } else {
                format!("this range has more than {SERIES_POINTS_MAX} of them")
            };
            notes.push(format!(
                "Instead of {}, the chart shows {}: {why}.",
                plural(wanted),
                plural(found)
            ));
        }

        found
    }
}

fn keys_of(fields: &Fields, problems: &mut Vec<String>) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in fields.values("key").filter(|key| !key.is_empty()) {
        if key.len() > KEY_LEN_MAX {
            problems
                .push(format!("A key has at most {KEY_LEN_MAX} bytes; a longer one was left out."));
        } else if keys.len() == LINES_MAX {
            problems
                .push(format!("A chart shows at most {LINES_MAX} keys; the others were left out."));
            break;
        } else if !keys.iter().any(|known| known == key) {
            keys.push(key.to_owned());
        }
    }

    keys
}

/// The ends of a custom range; `None` when they are wrong, with the reasons in `problems`.
fn ends_of(
    fields: &Fields,
    zone: &TimeZone,
    now_s: i64,
    problems: &mut Vec<String>,
) -> Option<Ends> {
    let (from, to) = fields.ends(zone, now_s, problems)?;
    let begins = Granularity::Quarter.floor(from.at_s);
    if begins >= Granularity::Quarter.floor(to.at_s) {
        problems.push("The range must end at least a quarter hour after it begins.".to_owned());
        return None;
    }

    if to.at_s - from.at_s > RANGE_DAYS_MAX * DAY_S {
        problems
            .push(format!("A range covers at most {RANGE_DAYS_MAX} days: choose a part of it."));
        return None;
    }

    Some((from, to))
}

/// Number of days without data that ends a stretch.
const SILENT_DAYS_MAX: i64 = 60;
/// Longest stretch of latest data shown, in days.
const LATEST_DAYS_MAX: i64 = 366;

/// Finds the latest stretch of days that hold data, given the days with their counts. Real data
/// have outliers (a taxi whose clock says 2008), so a long gap ends a stretch, and a stretch with
/// less than a hundredth of the total is skipped.
pub fn latest_stretch(days: &[(i64, i64)]) -> Option<(i64, i64)> {
    struct Stretch {
        first_s: i64,
        last_s: i64,
        weight: i128,
    }

    let mut stretches = Vec::<Stretch>::new();
    let mut everything = 0_i128;
    for (day_s, count) in days.iter().filter(|(_, count)| *count != 0) {
        let weight = i128::from(*count).abs();
        everything += weight;

        match stretches.last_mut() {
            Some(last) if day_s - last.last_s <= SILENT_DAYS_MAX * DAY_S => {
                last.last_s = *day_s;
                last.weight += weight;
            }
            _ => stretches.push(Stretch { first_s: *day_s, last_s: *day_s, weight }),
        }
    }

    let latest = stretches.iter().rev().find(|stretch| stretch.weight * 100 >= everything)?;
    let to_s = latest.last_s + DAY_S;
    Some((latest.first_s.max(to_s - LATEST_DAYS_MAX * DAY_S), to_s))
}

/// The preceding window of the same length.
pub fn before(window: Window, zone: &TimeZone) -> Option<Window> {
    let length_s = window.to_s - window.from_s;
    let from_s = window.from_s.checked_sub(length_s).filter(|from_s| *from_s >= 0)?;
    let begins_day = |at_s: i64| bucket_start(at_s, Granularity::Day, zone) == at_s;
    // Local days may be an hour shorter or longer than those of the window.
    let is_days = window.granularity == Granularity::Day
        && begins_day(window.from_s)
        && begins_day(window.to_s);
    let from_s =
        if is_days { bucket_start(from_s + 2 * HOUR_S, Granularity::Day, zone) } else { from_s };
    Some(Window { from_s, to_s: window.from_s, ..window })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_S: i64 = 20_000 * DAY_S + 12 * HOUR_S;

    fn asked(query: &str) -> ChartQuery {
        ChartQuery::of(&Fields::parse(query.as_bytes()), NOW_S)
    }

    fn window(query: &str, horizons: Horizons) -> (Window, Vec<String>) {
        let mut notes = Vec::new();
        (asked(query).window(NOW_S, &horizons, None, &mut notes), notes)
    }

    #[test]
    fn a_question_leads_back_to_itself() {
        let query = "key=a%3Ab&key=c&range=custom&from=900&to=86400&granularity=hour&zone=Asia%2FTokyo&compare=1&scale=log";
        assert_eq!(asked(query).query(), query);
        assert_eq!(asked("key=a&key=a&key=").query(), "key=a&range=latest");

        let relative = asked("key=a&from=-7d&to=today");
        assert_eq!(relative.query(), "key=a&range=custom&from=-7d&to=today");
        let window = relative.window(NOW_S, &Horizons::default(), None, &mut Vec::new());
        assert_eq!((window.from_s, window.to_s), (NOW_S - 7 * DAY_S, 20_000 * DAY_S));
    }

    #[test]
    fn unreadable_input_is_reported() {
        let odd = asked(
            "zone=Mars&range=soon&granularity=week&key=1&key=2&key=3&key=4&key=5&key=6&key=7",
        );
        assert_eq!((odd.problems.len(), odd.keys.len()), (4, LINES_MAX), "{:?}", odd.problems);
        assert_eq!(asked("range=custom&from=900").problems.len(), 1);
        assert_eq!(asked("range=custom&from=soon").problems.len(), 2);
        assert_eq!(
            asked("from=1800&to=900").problems,
            ["The range must end at least a quarter hour after it begins."]
        );
    }

    #[test]
    fn bars_are_as_wide_as_the_range_needs_and_retention_allows() {
        let forever = Horizons::default();
        assert_eq!(window("range=24h", forever).0.granularity, Granularity::Quarter);
        assert_eq!(window("range=7d", forever).0.granularity, Granularity::Hour);
        assert_eq!(window("range=1y", forever).0.granularity, Granularity::Day);

        let (year, notes) = window("range=1y&granularity=quarter", forever);
        assert_eq!(year.granularity, Granularity::Hour);
        assert!(
            notes[0].starts_with(
                "Instead of quarter hours, the chart shows hours: this range has more"
            ),
            "{notes:?}"
        );

        let expired = Horizons { quarter_s: NOW_S - 2 * DAY_S, ..forever };
        let (week, notes) = window("range=7d&granularity=quarter", expired);
        assert_eq!((week.granularity, notes.len()), (Granularity::Hour, 1));
    }

    #[test]
    fn the_latest_data_end_at_a_long_silence_and_strays_are_passed_over() {
        let day = |number: i64, count: i64| (number * DAY_S, count);
        let days = [day(10, 1), day(200, 50), day(201, 60), day(230, 9), day(400, 1), day(500, 0)];
        assert_eq!(latest_stretch(&days), Some((200 * DAY_S, 231 * DAY_S)));
        assert_eq!(latest_stretch(&[day(1, 0)]), None);
    }

    #[test]
    fn the_time_before_has_as_many_days() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let (from_s, to_s) = rolling(30, 1_712_052_000, Granularity::Day, &zone);
        let earlier =
            before(Window { from_s, to_s, granularity: Granularity::Day }, &zone).unwrap();
        assert_eq!(earlier.to_s, from_s);
        assert_eq!(bucket_start(earlier.from_s, Granularity::Day, &zone), earlier.from_s);
        assert!(
            before(Window { from_s: 900, to_s: 86_400, granularity: Granularity::Hour }, &zone)
                .is_none()
        );
    }

    proptest! {
        /// Any address gives a window that a chart can show.
        #[test]
        fn any_question_has_a_window(query in "((key|range|from|to|granularity|zone|compare|scale)=(latest|24h|1y|custom|day|quarter|log|UTC|Asia/Tokyo|[0-9]{1,14}|\\PC{0,6})&?){0,8}", kept in 0i64..30_000) {
            let horizons = Horizons { quarter_s: kept * DAY_S, hour_s: kept * DAY_S / 2, day_s: 0 };
            let (window, _) = window(&query, horizons);
            prop_assert!(window.from_s < window.to_s, "{window:?}");

            let points = (window.to_s - window.from_s) / window.granularity.width_s();
            prop_assert!(points < SERIES_POINTS_MAX as i64 * 4);
        }
    }
}
