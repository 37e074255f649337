//! Limits: how often a subject may get the actions of a step, or of a campaign, in a period.
//!
//! The usage that a limit is compared with is a tally of grants, with a window of its own.

use crate::calendar::{Length, Period, Zone};
use crate::limits::{KEPT_TIMES_MAX, UNTRACKED_LIMIT_MIN};
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// One of the `limits` of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The whole campaign, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Whose usage is limited: `subject`, or a field of the event.
    #[serde(default = "subject")]
    pub per: String,
    pub max: i64,
    pub period: LimitPeriod,
}

/// The time over which a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitPeriod {
    Campaign,
    /// Rolling: the time up to each event.
    Last(Length),
    #[serde(untagged)]
    Calendar(Period),
}

fn subject() -> String {
    "subject".to_owned()
}

impl Limit {
    /// The problems that keep this limit from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.max < 1 {
            problems.push("max must be at least 1: a step that nobody may get is left out".into());
        }

        let kept_max = KEPT_TIMES_MAX as i64 - 1;
        if matches!(self.period, LimitPeriod::Last(_)) && self.max > kept_max {
            problems.push(format!(
                "max must not exceed {kept_max} over the last hours or days: use a calendar period"
            ));
        }
        problems
    }

    /// Whether usage is counted at all. A limit so high that nobody reaches it is not worth a row
    /// for each subject.
    pub const fn is_tracked(&self) -> bool {
        self.max < UNTRACKED_LIMIT_MIN
    }

    /// Whether one more is granted after `used`.
    pub const fn allows(&self, used: i64) -> bool {
        used < self.max || !self.is_tracked()
    }

    /// The window of the usage of this limit, in a campaign that is active between two times.
    pub fn window(&self, from_ms: i64, until_ms: i64, zone: &Zone) -> Window {
        match &self.period {
            LimitPeriod::Campaign => Window::Campaign { from_ms, until_ms },
            LimitPeriod::Calendar(period) => {
                Window::Calendar { period: *period, zone: zone.clone() }
            }
            LimitPeriod::Last(length) => {
                let largest = usize::try_from(self.max).unwrap_or_default();
                Window::last(length.ms(), largest).expect("problems() refuses larger numbers")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn limit(json: serde_json::Value) -> Limit {
        serde_json::from_value(json).unwrap()
    }

    /// How many of these events are granted, by a limit of a campaign from 0 to 1,000 hours.
    fn granted(limit: &Limit, hours: &[i64]) -> Vec<bool> {
        let window = limit.window(0, 3_600_000_000, &Zone::utc());
        let mut usage = window.empty();
        let grant = |hour: &i64| {
            let at_ms = hour * 3_600_000;
            let is_granted = limit.allows(window.value(&usage, at_ms).unwrap());
            if is_granted {
                window.count(&mut usage, at_ms, 1);
            }
            is_granted
        };
        hours.iter().map(grant).collect()
    }

    #[test]
    fn limits_hold_over_their_periods() {
        let once =
            limit(json!({"step": "reward", "per": "subject", "max": 1, "period": "campaign"}));
        assert_eq!(granted(&once, &[0, 1, 900]), [true, false, false]);

        let daily = limit(json!({"max": 2, "period": "day"}));
        assert_eq!((daily.per.as_str(), &daily.step), ("subject", &None));
        assert_eq!(granted(&daily, &[0, 23, 23, 24, 22]), [true, true, false, true, false]);

        let rolling = limit(json!({"max": 1, "period": {"last": "PT24H"}}));
        assert_eq!(granted(&rolling, &[0, 24, 25, 49]), [true, false, true, false]);
        assert_eq!(granted(&rolling, &[0, 25, 50]), [true, true, true]);
    }

    #[test]
    fn a_high_limit_is_not_tracked() {
        let of = |max| limit(json!({"max": max, "period": "day"}));
        assert!(of(99_999).is_tracked());
        assert!(!of(99_999).allows(99_999));
        assert!(!of(100_000).is_tracked());
        assert!(of(100_000).allows(i64::MAX));
    }

    #[test]
    fn a_limit_says_what_is_wrong_with_it() {
        let problems = |json| limit(json).problems().len();
        assert_eq!(problems(json!({"max": 1, "period": "month"})), 0);
        assert_eq!(problems(json!({"max": 0, "period": "week"})), 1);
        assert_eq!(problems(json!({"max": 256, "period": {"last": "P7D"}})), 0);
        assert_eq!(problems(json!({"max": 257, "period": {"last": "P7D"}})), 1);

        for period in [json!("year"), json!({"last": "7 days"}), json!({"calendar": "day"})] {
            let json = json!({"max": 1, "period": period});
            assert!(serde_json::from_value::<Limit>(json.clone()).is_err(), "{json}");
        }
    }
}
