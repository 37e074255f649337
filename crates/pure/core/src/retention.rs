//! How long each granularity is kept, and what can still be answered.

use crate::bucket::{DAY_S, Granularity};
use crate::code::{Code, Refusal};
use crate::plan::Plan;
use crate::time::format_rfc3339;
use serde::{Deserialize, Serialize};

/// Days that the buckets of each granularity are kept; `None` is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionDays {
    #[serde(default = "default_quarter_days")]
    pub quarter: Option<u32>,
    #[serde(default = "default_hour_days")]
    pub hour: Option<u32>,
    #[serde(default)]
    pub day: Option<u32>,
}

fn default_quarter_days() -> Option<u32> {
    Some(90)
}

fn default_hour_days() -> Option<u32> {
    Some(400)
}

impl Default for RetentionDays {
    fn default() -> Self {
        Self { quarter: default_quarter_days(), hour: default_hour_days(), day: None }
    }
}

impl RetentionDays {
    pub const FOREVER: Self = Self { quarter: None, hour: None, day: None };

    /// Whether any granularity is kept longer than by another retention.
    pub fn keeps_longer_than(&self, other: &Self) -> bool {
        let longer = |own: Option<u32>, other: Option<u32>| match (own, other) {
            (Some(own), Some(other)) => own > other,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        longer(self.quarter, other.quarter)
            || longer(self.hour, other.hour)
            || longer(self.day, other.day)
    }

    /// The earliest instants that still have buckets at `now_s`.
    /// Whole UTC days expire together, so that a day's quarter hours are all there or all gone.
    pub fn horizons(&self, now_s: i64) -> Horizons {
        let horizon = |days: Option<u32>| match days {
            Some(days) => (Granularity::Day.floor(now_s) - i64::from(days) * DAY_S).max(0),
            None => 0,
        };
        Horizons {
            quarter_s: horizon(self.quarter),
            hour_s: horizon(self.hour),
            day_s: horizon(self.day),
        }
    }
}

/// The earliest second that each granularity still has buckets for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Horizons {
    pub quarter_s: i64,
    pub hour_s: i64,
    pub day_s: i64,
}

/// A range needs buckets that have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this range needs the {} of {}, which have expired; kept are quarter hours since {}, hours since {}, days since {}: \
     begin at or after {}, or align both ends to whole hours or days that are kept",
    match .granularity { Granularity::Quarter => "quarter hours", Granularity::Hour => "hours", Granularity::Day => "days" },
    format_rfc3339(*.needed_s),
    format_rfc3339(.horizons.quarter_s),
    format_rfc3339(.horizons.hour_s),
    format_rfc3339(.horizons.day_s),
    format_rfc3339(.horizons.of(*.granularity)),
)]
pub struct Expired {
    pub granularity: Granularity,
    pub needed_s: i64,
    pub horizons: Horizons,
}

impl From<Expired> for Refusal {
    fn from(expired: Expired) -> Self {
        Self::new(Code::RangeExpired, expired.to_string())
    }
}

impl Horizons {
    pub const fn of(&self, granularity: Granularity) -> i64 {
        match granularity {
            Granularity::Quarter => self.quarter_s,
            Granularity::Hour => self.hour_s,
            Granularity::Day => self.day_s,
        }
    }

    /// Of each granularity the later one.
    pub fn max(self, other: Self) -> Self {
        Self {
            quarter_s: self.quarter_s.max(other.quarter_s),
            hour_s: self.hour_s.max(other.hour_s),
            day_s: self.day_s.max(other.day_s),
        }
    }

    /// Of each granularity the earlier one.
    pub fn min(self, other: Self) -> Self {
        Self {
            quarter_s: self.quarter_s.min(other.quarter_s),
            hour_s: self.hour_s.min(other.hour_s),
            day_s: self.day_s.min(other.day_s),
        }
    }

    /// Whether a bucket of `granularity` that holds `time_s` is kept.
    pub const fn keeps(&self, granularity: Granularity, time_s: i64) -> bool {
        granularity.floor(time_s) >= self.of(granularity)
    }

    /// Earliest second that any granularity has a bucket for.
    pub fn earliest_s(&self) -> i64 {
        self.quarter_s.min(self.hour_s).min(self.day_s)
    }

    /// Whether all cells of a plan are kept. Quick for ranges inside the shortest retention.
    pub fn check(&self, plan: &Plan) -> Result<(), Expired> {
        if plan.from_s >= self.quarter_s && plan.from_s >= self.hour_s && plan.from_s >= self.day_s
        {
            return Ok(());
        }
        for slice in plan.slices() {
            if slice.from_s < self.of(slice.granularity) {
                let granularity = slice.granularity;
                let needed_s = slice.from_s;
                return Err(Expired { granularity, needed_s, horizons: *self });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_000 * DAY_S + 12 * 3_600;

    fn check(from_s: i64, to_s: i64) -> Result<(), Expired> {
        RetentionDays::default().horizons(NOW_S).check(&Plan::new(from_s, to_s).unwrap())
    }

    #[test]
    fn the_finest_level_that_still_exists_answers_when_the_edges_align() {
        let quarters_gone = 800 * DAY_S;
        let hours_gone = 500 * DAY_S;
        assert_eq!(check(950 * DAY_S + 900, NOW_S), Ok(()));
        assert_eq!(check(quarters_gone + 3_600, quarters_gone + 3 * DAY_S), Ok(()));
        assert_eq!(check(hours_gone, NOW_S), Ok(()));

        let expired = check(quarters_gone + 900, NOW_S).unwrap_err();
        assert_eq!(expired.granularity, Granularity::Quarter);
        assert_eq!(expired.horizons.quarter_s, 910 * DAY_S);
        assert!(
            expired.to_string().contains("begin at or after 1972-06-29T00:00:00Z"),
            "{expired}"
        );
        assert_eq!(check(hours_gone + 3_600, NOW_S).unwrap_err().granularity, Granularity::Hour);
    }

    #[test]
    fn for_ever_keeps_all() {
        assert_eq!(RetentionDays::FOREVER.horizons(NOW_S).earliest_s(), 0);
        let usual = RetentionDays::default();
        assert!(
            RetentionDays::FOREVER.keeps_longer_than(&usual)
                && !usual.keeps_longer_than(&RetentionDays::FOREVER)
        );
        let one_longer = RetentionDays { quarter: Some(10), hour: Some(401), day: None };
        assert!(one_longer.keeps_longer_than(&usual) && !usual.keeps_longer_than(&usual));
    }
}
