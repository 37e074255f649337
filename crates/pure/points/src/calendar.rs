//! Local days of a programme: which one an instant lies in, and when one begins.

use crate::day::Day;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};

pub const HOUR_MS: i64 = 3_600_000;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// An IANA time zone, such as `Asia/Singapore`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone with this name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        (!zone.is_unknown()).then_some(Self(zone))
    }

    /// The name of the zone.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// The local date at an instant.
    pub fn day(&self, at_ms: i64) -> Day {
        let timestamp = timestamp_of(at_ms);
        let offset_ms = i64::from(self.0.to_offset(timestamp).seconds()) * 1_000;
        let days = (timestamp.as_millisecond() + offset_ms).div_euclid(DAY_MS);
        Day(i32::try_from(days).expect("local dates lie within years of four digits"))
    }

    /// The first instant of a local day.
    pub fn midnight_ms(&self, day: Day) -> i64 {
        let (year, month, of_month) = day.civil();
        let civil = i16::try_from(year).ok().and_then(|year| {
            Date::new(year, month as i8, of_month as i8).ok().map(|date| date.at(0, 0, 0, 0))
        });
        // Where the clock skips midnight, the day begins with the first moment after the gap.
        let begin = civil.and_then(|civil| self.0.to_ambiguous_timestamp(civil).compatible().ok());
        let nearest = if day.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        begin.unwrap_or(nearest).as_millisecond()
    }
}

/// The instant, or the end of time that is nearer to it.
fn timestamp_of(at_ms: i64) -> Timestamp {
    // A day from both ends, so that local times exist as well.
    let first_ms = Timestamp::MIN.as_millisecond() + DAY_MS;
    let last_ms = Timestamp::MAX.as_millisecond() - DAY_MS;
    let bounded_ms = at_ms.clamp(first_ms, last_ms);
    Timestamp::from_millisecond(bounded_ms).expect("it lies within the bounds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::time::parse_rfc3339_ms;

    fn ms(text: &str) -> i64 {
        parse_rfc3339_ms(text.as_bytes()).unwrap()
    }

    #[test]
    fn days_are_local() {
        let singapore = Zone::of_name("Asia/Singapore").unwrap();
        assert_eq!(singapore.day(ms("2024-12-31T15:59:59Z")).to_string(), "2024-12-31");
        assert_eq!(singapore.day(ms("2024-12-31T16:00:00Z")).to_string(), "2025-01-01");
        assert_eq!(
            singapore.midnight_ms("2025-01-01".parse().unwrap()),
            ms("2024-12-31T16:00:00Z")
        );
        assert!(Zone::of_name("Asia/Atlantis").is_none());
    }

    #[test]
    fn a_day_without_midnight_begins_after_the_gap() {
        let beirut = Zone::of_name("Asia/Beirut").unwrap();
        let day: Day = "2022-03-27".parse().unwrap();
        assert_eq!(beirut.midnight_ms(day), ms("2022-03-26T22:00:00Z"));
        assert_eq!(beirut.day(beirut.midnight_ms(day)), day);
        assert_eq!(beirut.day(beirut.midnight_ms(day) - 1), day.plus(-1));
    }

    #[test]
    fn every_day_begins_at_its_midnight() {
        for name in ["UTC", "Europe/Berlin", "America/Havana", "Pacific/Apia", "Asia/Kathmandu"] {
            let zone = Zone::of_name(name).unwrap();
            let first: Day = "2020-01-01".parse().unwrap();
            for number in 0..1_500 {
                let day = first.plus(number);
                let begin_ms = zone.midnight_ms(day);
                assert_eq!(zone.day(begin_ms), day, "{name} {day}");
                assert_eq!(zone.day(begin_ms - 1), day.plus(-1), "{name} {day}");
            }
        }
    }
}
