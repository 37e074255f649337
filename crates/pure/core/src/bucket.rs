//! Buckets of time: UTC quarter hours, hours and days.

use serde::{Deserialize, Serialize};

/// Seconds in a quarter hour.
pub const QUARTER_S: i64 = 900;
/// Seconds in an hour.
pub const HOUR_S: i64 = 3_600;
/// Seconds in a UTC day.
pub const DAY_S: i64 = 86_400;

crate::names! {
    /// The width of a bucket. Each granularity keeps counts of its own.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Granularity {
        Quarter = "quarter",
        Hour = "hour",
        Day = "day",
    }
}

impl Granularity {
    /// Seconds in one bucket.
    pub const fn width_s(self) -> i64 {
        match self {
            Self::Quarter => QUARTER_S,
            Self::Hour => HOUR_S,
            Self::Day => DAY_S,
        }
    }

    /// Start of the bucket that `time_s` lies in.
    pub const fn floor(self, time_s: i64) -> i64 {
        time_s.saturating_sub(time_s.rem_euclid(self.width_s()))
    }

    /// Start of the first bucket that begins at or after `time_s`.
    pub const fn ceil(self, time_s: i64) -> i64 {
        self.floor(time_s.saturating_add(self.width_s() - 1))
    }

    /// Whether a bucket begins at `time_s`.
    pub const fn starts_at(self, time_s: i64) -> bool {
        time_s.rem_euclid(self.width_s()) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_floors_to_its_quarter_hours() {
        assert_eq!(Granularity::Quarter.floor(1_727_215_430), 1_727_215_200);
        assert_eq!(Granularity::Quarter.floor(1_727_400_000), 1_727_399_700);
        assert_eq!(Granularity::Day.ceil(1), DAY_S);
        assert_eq!(Granularity::Day.ceil(DAY_S), DAY_S);
    }

    /// Callers may ask for any time, before anybody has looked whether it can be counted.
    #[test]
    fn no_time_is_too_far_away() {
        for granularity in Granularity::ALL {
            assert_eq!(granularity.floor(i64::MIN), i64::MIN);
            assert_eq!(granularity.ceil(i64::MAX), granularity.floor(i64::MAX));
        }
    }
}
