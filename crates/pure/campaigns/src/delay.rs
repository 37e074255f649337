//! When an action is due: after a length of time or at a time of day, and not in quiet hours.

use crate::calendar::{DAY_MS, Length, TimeOfDay, Zone};
use crate::limits::DELAY_DAYS_MAX;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

/// The `delay` of an action: `{"after": "PT8H"}` or `{"at": "17:00", "days": 1, "zone": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Delay {
    After(After),
    At(At),
}

/// A length of time after the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    pub after: Length,
}

/// A time of day, on the local day of the event or days later. A time that is over when the event
/// happens is due at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    pub at: TimeOfDay,
    #[serde(default)]
    pub days: u16,
    /// The zone of the campaign, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Delay {
    /// The problems that keep this delay from being used.
    pub fn problems(&self) -> Vec<String> {
        let days_max = i64::from(DELAY_DAYS_MAX);
        let is_too_long = match self {
            Self::After(After { after }) => after.ms() > days_max * DAY_MS,
            Self::At(At { days, .. }) => i64::from(*days) > days_max,
        };
        let mut problems = Vec::new();
        if is_too_long {
            problems.push(format!("a delay must not exceed {days_max} days"));
        }
        problems
    }

    /// When an action is due on an event at a time. `zone` is the zone of this delay, or else of
    /// the campaign.
    pub fn due_ms(&self, event_ms: i64, zone: &Zone) -> i64 {
        match self {
            Self::After(After { after }) => event_ms.saturating_add(after.ms()),
            Self::At(At { at, days, .. }) => {
                let today = zone.local(event_ms).date();
                let date = later(today.into(), i64::from(*days)).date();
                zone.moment_ms(at.on(date), event_ms).max(event_ms)
            }
        }
    }
}

/// The hours of the day in which nothing is sent: from one time to the other, which may be the
/// next day's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quiet {
    pub from: TimeOfDay,
    pub to: TimeOfDay,
    /// The zone of the campaign, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Quiet {
    /// The problems that keep these hours from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.from == self.to {
            problems.push(format!("quiet hours must not begin and end at {}", self.from));
        }
        problems
    }

    /// The first moment from `at_ms` on that is not quiet. `zone` is the zone of these hours, or
    /// else of the campaign.
    pub fn end_ms(&self, at_ms: i64, zone: &Zone) -> i64 {
        let local = zone.local(at_ms);
        let now = TimeOfDay::of_clock(local.time());
        let days = if self.from < self.to {
            (self.from..self.to).contains(&now).then_some(0)
        } else if now >= self.from {
            Some(1)
        } else {
            (now < self.to).then_some(0)
        };

        let Some(days) = days else { return at_ms };
        let end = self.to.on(later(local, days).date());
        zone.moment_ms(end, at_ms).max(at_ms)
    }
}

/// The same time some days later, or the end of time.
fn later(local: DateTime, days: i64) -> DateTime {
    let span = jiff::Span::new().days(days);
    local.checked_add(span).unwrap_or(DateTime::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn rfc3339(at_ms: i64) -> String {
        Timestamp::from_millisecond(at_ms).unwrap().to_string()
    }

    fn delay(json: serde_json::Value) -> Delay {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_delay_has_one_of_two_forms() {
        assert_eq!(delay(json!({"after": "PT8H"})).problems().len(), 0);
        assert_eq!(delay(json!({"after": "P91D"})).problems().len(), 1);
        assert_eq!(delay(json!({"after": "P90D"})).problems().len(), 0);
        assert_eq!(delay(json!({"at": "17:00", "days": 91})).problems().len(), 1);

        let wrong = [
            json!({}),
            json!({"after": "PT8H", "at": "17:00"}),
            json!({"after": "8 hours"}),
            json!({"at": "25:00"}),
            json!({"at": "17:00", "days": -1}),
        ];
        for json in wrong {
            assert!(serde_json::from_value::<Delay>(json.clone()).is_err(), "{json}");
        }
    }

    #[test]
    fn actions_are_due_at_local_times() {
        let zone = Zone::of_name("America/New_York").unwrap();
        let due = |json, at: &str| rfc3339(delay(json).due_ms(ms(at), &zone));

        // Eight hours are eight hours, over a change of the clock too.
        let before_change = "2026-03-08T04:30:00Z";
        assert_eq!(due(json!({"after": "PT8H"}), before_change), "2026-03-08T12:30:00Z");
        // The local day of the event is still the 7th.
        assert_eq!(due(json!({"at": "23:45"}), before_change), "2026-03-08T04:45:00Z");
        assert_eq!(due(json!({"at": "17:00"}), before_change), before_change, "over already");
        assert_eq!(due(json!({"at": "17:00", "days": 1}), before_change), "2026-03-08T21:00:00Z");
        // Skipped: the first moment after. Doubled: the earlier, unless it is over.
        let skipped = due(json!({"at": "02:30", "days": 1}), before_change);
        assert_eq!(skipped, "2026-03-08T07:00:00Z");
        let doubled = json!({"at": "01:30"});
        assert_eq!(due(doubled.clone(), "2026-11-01T05:00:00Z"), "2026-11-01T05:30:00Z");
        assert_eq!(due(doubled, "2026-11-01T06:00:00Z"), "2026-11-01T06:30:00Z");
    }

    #[test]
    fn quiet_hours_end_in_the_morning() {
        let zone = Zone::of_name("Asia/Singapore").unwrap();
        let quiet: Quiet = serde_json::from_value(json!({"from": "22:00", "to": "08:00"})).unwrap();
        let end = |at: &str| rfc3339(quiet.end_ms(ms(at), &zone));
        assert_eq!(end("2026-11-22T13:59:59.999Z"), "2026-11-22T13:59:59.999Z");
        assert_eq!(end("2026-11-22T14:00:00Z"), "2026-11-23T00:00:00Z");
        assert_eq!(end("2026-11-22T23:59:59.999Z"), "2026-11-23T00:00:00Z");
        assert_eq!(end("2026-11-23T00:00:00Z"), "2026-11-23T00:00:00Z");

        let noon: Quiet = serde_json::from_value(json!({"from": "12:00", "to": "13:00"})).unwrap();
        let end = |at: &str| rfc3339(noon.end_ms(ms(at), &zone));
        assert_eq!(end("2026-11-22T04:30:00Z"), "2026-11-22T05:00:00Z");
        assert_eq!(end("2026-11-22T05:00:00Z"), "2026-11-22T05:00:00Z");

        let always = Quiet { to: quiet.from, ..quiet };
        assert_eq!(always.problems().len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever the clock does, quiet hours end at their end, or where the clock skips it.
        #[test]
        fn quiet_hours_end_when_they_should(
            hours in 0..24_i64 * 365,
            minutes in 0..60_i64,
            from in 0..24 * 60_i64,
            to in 0..24 * 60_i64,
        ) {
            prop_assume!(from != to);
            let of = |minutes: i64| {
                TimeOfDay::parse(&format!("{:02}:{:02}", minutes / 60, minutes % 60)).unwrap()
            };
            let zone = Zone::of_name("America/New_York").unwrap();
            let clock = |at_ms: i64| {
                let time = zone.local(at_ms).time();
                i64::from(time.hour()) * 60 + i64::from(time.minute())
            };
            let quiet = Quiet { from: of(from), to: of(to), zone: None };
            let at_ms = ms("2026-01-01T05:00:00Z") + hours * 3_600_000 + minutes * 60_000;

            let end_ms = quiet.end_ms(at_ms, &zone);
            let is_quiet = (clock(at_ms) - from).rem_euclid(1_440) < (to - from).rem_euclid(1_440);
            prop_assert_eq!(end_ms > at_ms, is_quiet);
            prop_assert!(end_ms >= at_ms && end_ms - at_ms <= 25 * 3_600_000);
            let is_skipped = (120..180).contains(&to) && clock(end_ms) == 180;
            prop_assert!(!is_quiet || clock(end_ms) == to || is_skipped);
        }
    }
}
