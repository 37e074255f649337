//! Times as requests write them: fixed, or relative to the moment of the request.
//!
//! | text | means |
//! |---|---|
//! | `1727215430`, `2024-09-24T22:03:50Z` | that second |
//! | `now` | the moment of the request |
//! | `-90s`, `-15m`, `-24h`, `-7d`, `-2w` | that long before it; a day has 24 hours |
//! | `today`, `yesterday` | the midnight that began the day |

use crate::time::{is_countable_s, parse_time_s};

/// A time in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Seconds since 1970.
    At(i64),
    /// Seconds before the request.
    Ago(i64),
    /// The midnight that began a day: 0 for today, 1 for yesterday.
    DaysAgo(i64),
}

impl Moment {
    /// Parses a time; `None` if it has none of the forms, or lies outside the time that buckets
    /// exist for.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "now" => return Some(Self::Ago(0)),
            "today" => return Some(Self::DaysAgo(0)),
            "yesterday" => return Some(Self::DaysAgo(1)),
            _ => {}
        }

        if let Some(at_s) = parse_time_s(text) {
            return Some(Self::At(at_s));
        }

        let span = text.strip_prefix('-')?;
        let (number, unit) = span.split_at_checked(span.len().checked_sub(1)?)?;
        let unit_s = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => return None,
        };

        // A sign of its own would make `--7d` a time in the future.
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let ago_s = number.parse::<i64>().ok()?.checked_mul(unit_s)?;
        Some(Self::Ago(ago_s))
    }

    /// Seconds since 1970, where days begin at midnight UTC; `None` before 1970.
    pub fn at_s(self, now_s: i64) -> Option<i64> {
        self.at_s_with(now_s, |days_ago| (now_s.div_euclid(86_400) - days_ago) * 86_400)
    }

    /// Like [`Moment::at_s`], where `midnight_s` returns when the day began that is the given
    /// number of days ago.
    pub fn at_s_with(self, now_s: i64, midnight_s: impl FnOnce(i64) -> i64) -> Option<i64> {
        let at_s = match self {
            Self::At(at_s) => at_s,
            Self::Ago(ago_s) => now_s.checked_sub(ago_s)?,
            Self::DaysAgo(days_ago) => midnight_s(days_ago),
        };
        is_countable_s(at_s).then_some(at_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-09-24T22:03:50Z.
    const NOW_S: i64 = 1_727_215_430;

    fn at(text: &str) -> Option<i64> {
        Moment::parse(text)?.at_s(NOW_S)
    }

    #[test]
    fn fixed_times_stay_where_they_are() {
        assert_eq!(at("1727215430"), Some(NOW_S));
        assert_eq!(at("2024-09-24T22:03:50Z"), Some(NOW_S));
        assert_eq!(at("2024-09-25T00:03:50+02:00"), Some(NOW_S));
    }

    #[test]
    fn relative_times_count_back_from_now() {
        assert_eq!(at("now"), Some(NOW_S));
        assert_eq!(at("-90s"), Some(NOW_S - 90));
        assert_eq!(at("-15m"), Some(NOW_S - 900));
        assert_eq!(at("-24h"), Some(NOW_S - 86_400));
        assert_eq!(at("-7d"), Some(NOW_S - 7 * 86_400));
        assert_eq!(at("-2w"), Some(NOW_S - 14 * 86_400));
        assert_eq!(at("today"), parse_time_s("2024-09-24T00:00:00Z"));
        assert_eq!(at("yesterday"), parse_time_s("2024-09-23T00:00:00Z"));
    }

    #[test]
    fn a_day_begins_where_the_caller_says() {
        let today = Moment::parse("today").unwrap();
        assert_eq!(today.at_s_with(NOW_S, |days_ago| 1_000 - days_ago), Some(1_000));
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "-",
            "-7",
            "-d",
            "--7d",
            "-+7d",
            "7d",
            "-7 d",
            "-7y",
            "-1é",
            "soon",
            "Today",
            "-5",
            "-9223372036854775807w",
            "-99999999999d",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
