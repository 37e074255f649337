//! Local time: IANA zones with their data in the binary, periods of the calendar, times of day,
//! and lengths of time.
//!
//! A time of day that a change of the clock skips stands for the first moment after the gap; one
//! that occurs twice stands for the earlier of both.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

/// An IANA time zone, such as `Asia/Singapore`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone with this name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        (!zone.is_unknown()).then_some(Self(zone))
    }

    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// The local date and time at an instant.
    pub fn local(&self, at_ms: i64) -> DateTime {
        self.0.to_datetime(timestamp_of(at_ms))
    }

    /// Days from 1970-01-01 to the local date at an instant.
    pub fn day(&self, at_ms: i64) -> i64 {
        let timestamp = timestamp_of(at_ms);
        let offset_ms = i64::from(self.0.to_offset(timestamp).seconds()) * 1_000;
        (timestamp.as_millisecond() + offset_ms).div_euclid(DAY_MS)
    }

    /// The first instant at or after `from_ms` at which clocks show this local time, or would show
    /// it if they did not skip it.
    ///
    /// Where a time occurs twice and the earlier one is over, the later one is meant.
    pub(crate) fn moment_ms(&self, local: DateTime, from_ms: i64) -> i64 {
        let ambiguous = self.0.to_ambiguous_timestamp(local);

        let moment = match ambiguous.offset() {
            AmbiguousOffset::Gap { before, .. } => before.to_timestamp(local).map(|beyond| {
                // Read with the offset before the gap, the time lies behind the gap's beginning,
                // by as much as it lies inside the gap. That beginning is where the clock jumps.
                let search = beyond.as_millisecond().saturating_add(1);
                let jump = self.0.preceding(timestamp_of(search)).next();
                jump.map_or(beyond, |jump| jump.timestamp())
            }),
            AmbiguousOffset::Fold { before, after } => {
                before.to_timestamp(local).and_then(|early| {
                    let is_over = early.as_millisecond() < from_ms;
                    if is_over { after.to_timestamp(local) } else { Ok(early) }
                })
            }
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local),
        };
        // Only at the end of time, in the year 9999, is there no such instant.
        moment.unwrap_or(Timestamp::MAX).as_millisecond()
    }
}

/// The instant, or the end of time that is nearer to it.
fn timestamp_of(at_ms: i64) -> Timestamp {
    let first_ms = Timestamp::MIN.as_second() * 1_000;
    let last_ms = Timestamp::MAX.as_second() * 1_000;
    let bounded_ms = at_ms.clamp(first_ms, last_ms);
    Timestamp::from_millisecond(bounded_ms).expect("it lies within the bounds")
}

/// A period of the calendar in a zone. Its length follows the clock: a day has 23 to 25 hours where
/// the clock changes. Weeks begin on Monday.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    Day,
    Week,
    Month,
}

impl Period {
    /// The number of the period that an instant lies in. Neighbouring periods have neighbouring
    /// numbers, and the first ones of 1970 have number 0.
    pub fn number(self, zone: &Zone, at_ms: i64) -> i32 {
        let number = match self {
            Self::Day => zone.day(at_ms),
            // 1970-01-01 was a Thursday.
            Self::Week => (zone.day(at_ms) + 3).div_euclid(7),
            Self::Month => {
                let date = zone.local(at_ms).date();
                (i64::from(date.year()) - 1970) * 12 + i64::from(date.month()) - 1
            }
        };
        i32::try_from(number).expect("local dates lie within years of four digits")
    }

    /// The local date on which the period with this number begins; `None` past the end of time.
    pub fn first_day(self, number: i32) -> Option<Date> {
        let epoch = Date::constant(1970, 1, 1);
        match self {
            Self::Day => epoch.checked_add(Span::new().try_days(number).ok()?).ok(),
            Self::Week => {
                let days = i64::from(number) * 7 - 3;
                epoch.checked_add(Span::new().try_days(days).ok()?).ok()
            }
            Self::Month => epoch.checked_add(Span::new().try_months(number).ok()?).ok(),
        }
    }
}

/// A time of day, to the minute: `HH:MM`, from `00:00` to `23:59`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeOfDay {
    minutes: i16,
}

impl TimeOfDay {
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let digits = |part: &str| {
            let is_pair = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            is_pair.then(|| part.parse::<i16>().ok()).flatten()
        };
        let hour = digits(hour).filter(|hour| *hour < 24)?;
        let minute = digits(minute).filter(|minute| *minute < 60)?;
        Some(Self { minutes: hour * 60 + minute })
    }

    /// The time that a clock shows, without its seconds.
    pub(crate) fn of_clock(time: Time) -> Self {
        Self { minutes: i16::from(time.hour()) * 60 + i16::from(time.minute()) }
    }

    pub(crate) fn on(self, date: Date) -> DateTime {
        let hour = i8::try_from(self.minutes / 60).expect("a day has 24 hours");
        let minute = i8::try_from(self.minutes % 60).expect("an hour has 60 minutes");
        date.at(hour, minute, 0, 0)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

impl From<TimeOfDay> for String {
    fn from(time: TimeOfDay) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no time of day such as 07:30"))
    }
}

/// A length of time, written as an ISO 8601 duration: `PT8H`, `P30D`. A day has 24 hours, whatever
/// the clock does; months and years have no fixed length and are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Length {
    text: Box<str>,
    ms: i64,
}

impl Length {
    /// Reads a length of at least a millisecond.
    pub fn parse(text: &str) -> Option<Self> {
        // The parser also reads `8 hours` and signs.
        if !text.starts_with('P') {
            return None;
        }

        let span: Span = text.parse().ok()?;
        let is_inexact = span.get_years() != 0
            || span.get_months() != 0
            || span.get_microseconds() != 0
            || span.get_nanoseconds() != 0;
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        let parts_ms = [
            days * DAY_MS,
            i64::from(span.get_hours()) * HOUR_MS,
            span.get_minutes().checked_mul(MINUTE_MS)?,
            span.get_seconds().checked_mul(1_000)?,
            span.get_milliseconds(),
        ];
        let ms = parts_ms.into_iter().try_fold(0_i64, i64::checked_add)?;
        (!is_inexact && ms > 0).then(|| Self { text: text.into(), ms })
    }

    pub const fn ms(&self) -> i64 {
        self.ms
    }
}

impl From<Length> for String {
    fn from(length: Length) -> Self {
        length.text.into()
    }
}

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            format!(
                "`{text}` is no length of days, hours, minutes and seconds such as PT8H or P30D"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn local(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    #[test]
    fn zones_have_names() {
        assert!(Zone::of_name("Asia/Singapore").is_some());
        assert!(Zone::of_name("UTC").is_some());
        for wrong in ["", "Asia/Atlantis", "+08:00", "Etc/Unknown"] {
            assert_eq!(Zone::of_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_skipped_time_is_the_first_moment_after_the_gap() {
        let zone = Zone::of_name("America/New_York").unwrap();
        let jump = ms("2026-03-08T07:00:00Z");
        for skipped in ["2026-03-08T02:00", "2026-03-08T02:30", "2026-03-08T02:59"] {
            assert_eq!(zone.moment_ms(local(skipped), i64::MIN), jump, "{skipped}");
        }
        assert_eq!(zone.moment_ms(local("2026-03-08T01:59"), i64::MIN), jump - MINUTE_MS);
        assert_eq!(zone.moment_ms(local("2026-03-08T03:01"), i64::MIN), jump + MINUTE_MS);

        // Beirut begins its summer at midnight, Lord Howe moves by half an hour.
        let beirut = Zone::of_name("Asia/Beirut").unwrap();
        let midnight = beirut.moment_ms(local("2026-03-29T00:00"), i64::MIN);
        assert_eq!(midnight, ms("2026-03-28T22:00:00Z"));
        let island = Zone::of_name("Australia/Lord_Howe").unwrap();
        let jump = island.moment_ms(local("2026-10-04T02:15"), i64::MIN);
        assert_eq!(jump, ms("2026-10-03T15:30:00Z"));
    }

    #[test]
    fn a_time_that_occurs_twice_is_the_earlier_one_unless_it_is_over() {
        let zone = Zone::of_name("America/New_York").unwrap();
        let early = ms("2026-11-01T05:30:00Z");
        let doubled = local("2026-11-01T01:30");
        assert_eq!(zone.moment_ms(doubled, i64::MIN), early);
        assert_eq!(zone.moment_ms(doubled, early), early);
        assert_eq!(zone.moment_ms(doubled, early + 1), early + HOUR_MS);
    }

    #[test]
    fn periods_follow_the_local_calendar() {
        let zone = Zone::of_name("America/New_York").unwrap();
        let first = ms("2026-03-08T05:00:00Z");
        let number = Period::Day.number(&zone, first);
        assert_eq!(Period::Day.number(&zone, first - 1), number - 1);
        // The day on which summer begins has 23 hours, the one on which it ends 25.
        assert_eq!(Period::Day.number(&zone, first + 23 * HOUR_MS - 1), number);
        assert_eq!(Period::Day.number(&zone, first + 23 * HOUR_MS), number + 1);
        let last = ms("2026-11-01T04:00:00Z");
        let number = Period::Day.number(&zone, last);
        assert_eq!(Period::Day.number(&zone, last + 25 * HOUR_MS - 1), number);
        assert_eq!(Period::Day.number(&zone, last + 25 * HOUR_MS), number + 1);

        let utc = Zone::utc();
        let monday = ms("2026-11-23T00:00:00Z");
        let week = Period::Week.number(&utc, monday);
        assert_eq!(Period::Week.number(&utc, monday - 1), week - 1);
        assert_eq!(Period::Week.number(&utc, monday + 7 * DAY_MS - 1), week);
        assert_eq!(Period::Week.first_day(week), Some(jiff::civil::date(2026, 11, 23)));
        let month = Period::Month.number(&utc, monday);
        assert_eq!(Period::Month.first_day(month), Some(jiff::civil::date(2026, 11, 1)));
    }

    #[test]
    fn times_of_day_have_two_pairs_of_digits() {
        assert_eq!(TimeOfDay::parse("07:05").unwrap().to_string(), "07:05");
        for wrong in ["", "7:05", "24:00", "12:60", "12:5", "-1:00", "+1:00", "12:00:00", "noon"] {
            assert_eq!(TimeOfDay::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lengths_are_exact_and_positive() {
        let of = |text| Length::parse(text).map(|length| length.ms());
        assert_eq!(of("PT24H"), Some(DAY_MS));
        assert_eq!(of("P30D"), Some(30 * DAY_MS));
        assert_eq!(of("P1W"), Some(7 * DAY_MS));
        assert_eq!(of("P1DT1M0.5S"), Some(DAY_MS + MINUTE_MS + 500));
        for wrong in ["", "P", "PT0S", "-PT1H", "+PT1H", "P1M", "P1Y", "8 hours", "PT0.0005S"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against jiff's own calendar, in zones that moved their clocks in unusual ways.
        #[test]
        fn numbers_of_periods_are_those_of_the_local_date(
            at_ms in 0_i64..4_102_444_800_000,
            name in prop::sample::select(vec![
                "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe",
            ]),
        ) {
            let zone = Zone::of_name(name).unwrap();
            let date = timestamp_of(at_ms).to_zoned(TimeZone::get(name).unwrap()).date();
            let monday = date.checked_sub(
                Span::new().days(date.weekday().to_monday_zero_offset())
            ).unwrap();
            let first_day = |period: Period| period.first_day(period.number(&zone, at_ms));
            prop_assert_eq!(first_day(Period::Day), Some(date));
            prop_assert_eq!(first_day(Period::Week), Some(monday));
            prop_assert_eq!(first_day(Period::Month), Some(date.first_of_month()));
        }

        #[test]
        fn no_instant_is_too_far(at_ms in any::<i64>()) {
            let zone = Zone::of_name("America/New_York").unwrap();
            for period in [Period::Day, Period::Week, Period::Month] {
                period.number(&zone, at_ms);
            }
            zone.moment_ms(zone.local(at_ms), at_ms);
        }
    }
}
