//! Values that vary by time of day and day of the week, in a zone: the rate of a destination, the
//! number of its requests at a time.

use crate::calendar::{TimeOfDay, Zone};
use crate::limits::SCHEDULE_ENTRIES_MAX;
use jiff::civil::{DateTime, Weekday};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

/// A list of values, of which the last one that applies holds. The first one always applies.
///
/// ```json
/// [ { "perSecond": 500, "burst": 500 },
///   { "from": "07:00", "to": "10:00", "days": ["mon", "tue"], "perSecond": 50, "burst": 10 } ]
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Schedule<T> {
    entries: Vec<Entry<T>>,
}

/// A value and when it applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Entry<T> {
    #[serde(flatten)]
    hours: Option<Hours>,
    /// The days on which the hours begin; every day, if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<Vec<Day>>,
    #[serde(flatten)]
    value: T,
}

/// A part of the day, without its end. It passes midnight if it does not end after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hours {
    from: TimeOfDay,
    to: TimeOfDay,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    /// The name in documents and rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mon => "mon",
            Self::Tue => "tue",
            Self::Wed => "wed",
            Self::Thu => "thu",
            Self::Fri => "fri",
            Self::Sat => "sat",
            Self::Sun => "sun",
        }
    }

    pub const fn of(weekday: Weekday) -> Self {
        match weekday {
            Weekday::Monday => Self::Mon,
            Weekday::Tuesday => Self::Tue,
            Weekday::Wednesday => Self::Wed,
            Weekday::Thursday => Self::Thu,
            Weekday::Friday => Self::Fri,
            Weekday::Saturday => Self::Sat,
            Weekday::Sunday => Self::Sun,
        }
    }
}

impl<T> Schedule<T> {
    /// One value at all times.
    pub fn constant(value: T) -> Self {
        Self { entries: vec![Entry { hours: None, days: None, value }] }
    }

    /// The value at an instant.
    pub fn at(&self, at_ms: i64, zone: &Zone) -> &T {
        let local = zone.local(at_ms);
        let mut newest_first = self.entries.iter().rev();
        let entry = newest_first.find(|entry| entry.applies(local));
        &entry.expect("the first value always applies").value
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }
}

impl<T> Entry<T> {
    fn applies(&self, local: DateTime) -> bool {
        let is_day = |weekday: Weekday| {
            let day = Day::of(weekday);
            self.days.as_ref().is_none_or(|days| days.contains(&day))
        };
        let today = local.date().weekday();
        let Some(Hours { from, to }) = self.hours else { return is_day(today) };

        let now = TimeOfDay::of_clock(local.time());
        if from < to {
            return (from..to).contains(&now) && is_day(today);
        }
        now >= from && is_day(today) || now < to && is_day(today.previous())
    }

    /// Reads the keys of its own, and the value from the others.
    fn of_json(mut object: Map<String, Json>) -> Result<Self, serde_json::Error>
    where
        T: DeserializeOwned,
    {
        let hours = match (object.remove("from"), object.remove("to")) {
            (None, None) => None,
            (Some(from), Some(to)) => {
                Some(Hours { from: serde_json::from_value(from)?, to: serde_json::from_value(to)? })
            }
            _ => return Err(serde_json::Error::custom("`from` and `to` belong together")),
        };
        let days = object.remove("days").map(serde_json::from_value).transpose()?;
        Ok(Self { hours, days, value: serde_json::from_value(Json::Object(object))? })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Schedule<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let objects = Vec::<Map<String, Json>>::deserialize(deserializer)?;
        if objects.len() > SCHEDULE_ENTRIES_MAX {
            let text = format!("a schedule has at most {SCHEDULE_ENTRIES_MAX} values");
            return Err(D::Error::custom(text));
        }

        let entries: Result<Vec<Entry<T>>, _> = objects.into_iter().map(Entry::of_json).collect();
        let entries = entries.map_err(D::Error::custom)?;
        let is_complete =
            entries.first().is_some_and(|entry| entry.hours.is_none() && entry.days.is_none());
        if !is_complete {
            let text = "a schedule begins with a value without `from`, `to` and `days`";
            return Err(D::Error::custom(text));
        }
        Ok(Self { entries })
    }
}

/// How fast requests may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pace {
    pub per_second: u32,
    /// Requests that may be sent at once after a pause.
    pub burst: u32,
}

impl Pace {
    /// The problems that keep this pace from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.per_second == 0 || self.burst == 0 {
            problems.push("perSecond and burst must be at least 1: pause to send nothing".into());
        }
        problems
    }
}

/// Fewest and most requests at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    pub min: u16,
    pub max: u16,
}

impl Concurrency {
    /// The problems that keep these bounds from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.min == 0 || self.min > self.max {
            problems.push("concurrency needs 1 ≤ min ≤ max".into());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::json;

    fn schedule(json: Json) -> Result<Schedule<Pace>, serde_json::Error> {
        serde_json::from_value(json)
    }

    fn per_second(schedule: &Schedule<Pace>, at: &str, zone: &str) -> u32 {
        let at_ms = at.parse::<Timestamp>().unwrap().as_millisecond();
        schedule.at(at_ms, &Zone::of_name(zone).unwrap()).per_second
    }

    #[test]
    fn the_last_value_that_applies_holds() {
        let weekdays = json!(["mon", "tue", "wed", "thu", "fri"]);
        let json = json!([
            {"perSecond": 500, "burst": 500},
            {"from": "07:00", "to": "10:00", "days": weekdays, "perSecond": 50, "burst": 10},
            {"from": "09:00", "to": "09:30", "days": ["mon"], "perSecond": 5, "burst": 1},
            {"days": ["sun"], "perSecond": 1, "burst": 1},
        ]);
        let schedule = schedule(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&schedule).unwrap(), json);
        assert_eq!(schedule.values().count(), 4);

        let at = |at| per_second(&schedule, at, "Asia/Singapore");
        // 2026-11-23 is a Monday; Singapore is eight hours ahead.
        assert_eq!(at("2026-11-22T22:59:59.999Z"), 500);
        assert_eq!(at("2026-11-22T23:00:00Z"), 50);
        assert_eq!(at("2026-11-23T01:00:00Z"), 5);
        assert_eq!(at("2026-11-23T01:30:00Z"), 50);
        assert_eq!(at("2026-11-23T02:00:00Z"), 500);
        assert_eq!(at("2026-11-28T00:00:00Z"), 500, "Saturday");
        assert_eq!(at("2026-11-29T00:00:00Z"), 1, "Sunday");
    }

    #[test]
    fn hours_past_midnight_belong_to_the_day_on_which_they_begin() {
        let night =
            json!({"from": "22:00", "to": "02:00", "days": ["fri"], "perSecond": 1, "burst": 1});
        let schedule = schedule(json!([{"perSecond": 2, "burst": 2}, night])).unwrap();
        let at = |at| per_second(&schedule, at, "UTC");
        assert_eq!(at("2026-11-27T21:59:00Z"), 2);
        assert_eq!(at("2026-11-27T22:00:00Z"), 1);
        assert_eq!(at("2026-11-28T01:59:00Z"), 1);
        assert_eq!(at("2026-11-28T02:00:00Z"), 2);
        assert_eq!(at("2026-11-27T01:00:00Z"), 2, "the night before");
    }

    #[test]
    fn hours_are_those_that_the_clock_shows() {
        let night = json!({"from": "01:00", "to": "02:00", "perSecond": 1, "burst": 1});
        let schedule = schedule(json!([{"perSecond": 2, "burst": 2}, night])).unwrap();
        let at = |at| per_second(&schedule, at, "America/New_York");
        for doubled in ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"] {
            assert_eq!(at(doubled), 1, "{doubled}");
        }
        assert_eq!(at("2026-11-01T07:00:00Z"), 2);
    }

    #[test]
    fn a_malformed_schedule_is_refused() {
        let base = json!({"perSecond": 2, "burst": 2});
        let hours = |from: Json, to: Json| json!([base, {"from": from, "to": to, "perSecond": 2, "burst": 2}]);
        let wrong = [
            json!([]),
            json!([{"days": ["mon"], "perSecond": 2, "burst": 2}]),
            json!([base, {"from": "07:00", "perSecond": 2, "burst": 2}]),
            json!([base, {"perSecond": 2, "burst": 2, "until": "10:00"}]),
            json!([base, {"perSecond": 2}]),
            json!([base, {"days": ["monday"], "perSecond": 2, "burst": 2}]),
            hours(json!("7"), json!("10:00")),
            Json::Array(vec![base.clone(); SCHEDULE_ENTRIES_MAX + 1]),
        ];
        for json in wrong {
            assert!(schedule(json.clone()).is_err(), "{json}");
        }
        assert!(schedule(Json::Array(vec![base; SCHEDULE_ENTRIES_MAX])).is_ok());

        assert_eq!(Pace { per_second: 0, burst: 1 }.problems().len(), 1);
        assert_eq!(Pace { per_second: 1, burst: 1 }.problems().len(), 0);
        assert_eq!(Concurrency { min: 2, max: 1 }.problems().len(), 1);
        assert_eq!(Concurrency { min: 1, max: 1 }.problems().len(), 0);
        assert_eq!(Schedule::constant(3).at(0, &Zone::utc()), &3);
    }
}
