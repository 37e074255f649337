//! A programme as pages show it: its points with their decimals, and its local dates.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::bucket::DAY_S;
use raingauge_core::number::grouped;
use raingauge_points::Day;
use raingauge_portal::html::words;
use raingauge_ports::campaigns::StoredDocument;
use serde_json::Value as Json;

/// Most decimals of a programme that are shown.
const DECIMALS_MAX: u32 = 9;

/// A programme, as its newest document describes it.
#[derive(Clone, Debug)]
pub struct ProgrammeView {
    pub name: String,
    /// What its points are called.
    pub unit: String,
    pub decimals: u32,
    pub zone: TimeZone,
    pub version: u32,
    pub changed_by: String,
    pub changed_ms: i64,
    pub configuration: Json,
}

impl ProgrammeView {
    pub fn new(stored: StoredDocument) -> Self {
        let configuration = stored.configuration;
        let unit = configuration["unit"].as_str().unwrap_or("points").to_owned();
        let decimals = configuration["decimals"].as_u64().unwrap_or(0);
        let zone = configuration["timezone"].as_str().unwrap_or("UTC");
        Self {
            name: stored.id,
            unit,
            decimals: u32::try_from(decimals).unwrap_or(0).min(DECIMALS_MAX),
            zone: TimeZone::get(zone).unwrap_or(TimeZone::UTC),
            version: stored.version,
            changed_by: stored.changed_by,
            changed_ms: stored.changed_ms,
            configuration,
        }
    }

    /// The address of one of its pages.
    pub fn address(&self, rest: &str) -> String {
        let name = words::step_of_address(&self.name);
        if rest.is_empty() { format!("/points/{name}") } else { format!("/points/{name}/{rest}") }
    }

    /// The page of a member.
    pub fn member_address(&self, member: &str) -> String {
        self.address(&format!("members/{}", words::step_of_address(member)))
    }

    /// Points without their unit: `1,234.50`.
    pub fn amount(&self, points: i128) -> String {
        let scale = 10_i128.pow(self.decimals);
        let sign = if points < 0 && points > -scale { "-" } else { "" };
        let whole = grouped(points / scale);
        match self.decimals {
            0 => whole,
            decimals => {
                let rest = (points % scale).abs();
                format!("{sign}{whole}.{rest:0width$}", width = decimals as usize)
            }
        }
    }

    /// Points with their unit: `180 GRP`.
    pub fn points(&self, points: i128) -> String {
        format!("{} {}", self.amount(points), self.unit)
    }

    /// A change of a balance, which always has a sign: `+180`, `-20`, `0`.
    pub fn change(&self, points: i128) -> String {
        let sign = if points > 0 { "+" } else { "" };
        format!("{sign}{}", self.amount(points))
    }

    /// Points as a number for a chart. Charts need no more precision than floats have.
    pub fn charted(&self, points: i128) -> f64 {
        points as f64 / 10_f64.powi(self.decimals as i32)
    }

    /// A date with the time that is left until its end: `2026-07-31`, in 12 days.
    pub fn date(&self, day: Option<Day>, now_s: i64) -> Markup {
        let Some(day) = day else { return html! { "never" } };
        let today = words::local(now_s, &self.zone).map(|now| now.date());
        let today = today.and_then(|today| today.to_string().parse::<Day>().ok());
        let left = today.map(|today| i64::from(day.0) - i64::from(today.0));
        html! {
            time datetime=(day) { (day) }
            @if let Some(left) = left { span.quiet { " " (days_left(left)) } }
        }
    }
}

/// How far away a day is.
fn days_left(days: i64) -> String {
    match days {
        ..-1 => format!("{} days ago", grouped((-days).into())),
        -1 => "yesterday".to_owned(),
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        _ => format!("in {} days", grouped(days.into())),
    }
}

/// The start of a day in UTC, in seconds: charts of days and months are drawn in UTC.
pub fn day_start_s(day: Day) -> i64 {
    i64::from(day.0) * DAY_S
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// A programme with this configuration.
    pub fn programme(configuration: Json) -> ProgrammeView {
        ProgrammeView::new(StoredDocument {
            kind: "programme".to_owned(),
            id: "grab-sg".to_owned(),
            version: 3,
            configuration,
            is_deleted: false,
            changed_by: "ada".to_owned(),
            reason: String::new(),
            changed_ms: 0,
        })
    }

    #[test]
    fn points_have_the_decimals_of_their_programme() {
        let whole = programme(json!({"unit": "GRP"}));
        assert_eq!([whole.amount(1_234_567), whole.points(180)], ["1,234,567", "180 GRP"]);
        let split = programme(json!({"decimals": 2}));
        let shown = [123_450, 5, -5, -123_405, 0].map(|points| split.amount(points));
        assert_eq!(shown, ["1,234.50", "0.05", "-0.05", "-1,234.05", "0.00"]);
        assert_eq!([180, -20, 0].map(|points| whole.change(points)), ["+180", "-20", "0"]);
    }

    #[test]
    fn a_name_cannot_leave_its_address() {
        let odd = ProgrammeView { name: "a/b?c".to_owned(), ..programme(json!({})) };
        assert_eq!(odd.address("liability"), "/points/a%2Fb%3Fc/liability");
        assert_eq!(odd.member_address("x y"), "/points/a%2Fb%3Fc/members/x%20y");
    }

    #[test]
    fn dates_say_how_far_away_they_are() {
        let programme = programme(json!({"timezone": "Asia/Singapore"}));
        let day: Day = "2026-07-31".parse().unwrap();
        // 30 July in London is the 31st in Singapore.
        let now_s = day_start_s(day) - 3_600;
        let shown = programme.date(Some(day), now_s).into_string();
        assert!(shown.contains("2026-07-31") && shown.contains("today"), "{shown}");
        assert!(programme.date(None, now_s).into_string().contains("never"));
        assert_eq!(
            [-2, -1, 1, 1_000].map(days_left),
            ["2 days ago", "yesterday", "tomorrow", "in 1,000 days"]
        );
    }
}
