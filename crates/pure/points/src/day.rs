//! Days and months as plain numbers, without a zone.

use raingauge_core::time::{civil_from_days, days_from_civil};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A local date, as days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

/// A month of the calendar, as months since January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(pub i32);

/// A text that is no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a date such as 2026-07-31")]
pub struct DateError;

impl Day {
    /// The date with this year, month and day; `None` where there is none such.
    pub fn of_civil(year: i64, month: i64, day: i64) -> Option<Self> {
        let days = days_from_civil(year, month, day);
        let exists = (1..=12).contains(&month) && civil_from_days(days) == (year, month, day);
        exists.then(|| i32::try_from(days).ok().map(Self)).flatten()
    }

    /// Year, month (1 to 12) and day (1 to 31).
    pub fn civil(self) -> (i64, i64, i64) {
        civil_from_days(i64::from(self.0))
    }

    pub fn month(self) -> Month {
        let (year, month, _) = self.civil();
        Month(((year - 1970) * 12 + month - 1) as i32)
    }

    pub fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// The same day of a later month, or the last one where that month is shorter.
    pub fn plus_months(self, months: u16) -> Self {
        let (_, _, day) = self.civil();
        let month = self.month().plus(i32::from(months));
        let last = month.last_day();
        month.first_day().plus(day as i32 - 1).min(last)
    }
}

impl Month {
    pub fn plus(self, months: i32) -> Self {
        Self(self.0.saturating_add(months))
    }

    /// The year, and the month from 1 to 12.
    pub fn civil(self) -> (i64, i64) {
        (1970 + i64::from(self.0.div_euclid(12)), i64::from(self.0.rem_euclid(12)) + 1)
    }

    pub fn first_day(self) -> Day {
        let (year, month) = self.civil();
        Day(days_from_civil(year, month, 1) as i32)
    }

    pub fn last_day(self) -> Day {
        self.plus(1).first_day().plus(-1)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(out, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Month {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month) = self.civil();
        write!(out, "{year:04}-{month:02}")
    }
}

/// Digits of a fixed number as a number.
fn number(text: &str, len: usize) -> Option<i64> {
    let is_digits = text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

impl FromStr for Day {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let mut parts = text.splitn(3, '-');
        let mut part = |len| parts.next().and_then(|part| number(part, len)).ok_or(DateError);
        let year = part(4)?;
        let month = part(2)?;
        let day = part(2)?;
        Self::of_civil(year, month, day).ok_or(DateError)
    }
}

impl FromStr for Month {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let (year, month) = text.split_once('-').ok_or(DateError)?;
        let year = number(year, 4).ok_or(DateError)?;
        let month = number(month, 2).ok_or(DateError)?;
        Ok(Day::of_civil(year, month, 1).ok_or(DateError)?.month())
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Month {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    #[test]
    fn dates_lead_back() {
        for text in ["1970-01-01", "2024-02-29", "2026-07-31", "2099-12-31"] {
            assert_eq!(day(text).to_string(), text);
        }
        for wrong in ["", "2023-02-29", "2024-13-01", "2024-1-01", "2024-01-00", "24-01-01"] {
            assert_eq!(wrong.parse::<Day>(), Err(DateError), "{wrong}");
        }
        assert_eq!("2026-07".parse::<Month>().unwrap().to_string(), "2026-07");
    }

    #[test]
    fn months_end_where_the_calendar_says() {
        assert_eq!(day("2024-02-03").month().last_day(), day("2024-02-29"));
        assert_eq!(day("2023-12-31").month().plus(2).last_day(), day("2024-02-29"));
        assert_eq!(day("2024-08-31").plus_months(6), day("2025-02-28"));
        assert_eq!(day("2024-01-15").plus_months(1), day("2024-02-15"));
    }
}
