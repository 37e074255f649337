//! Local time in the zone that defines the traffic's days.

use super::bins::{HOUR_MS, QUARTER_MS};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The time zone of a run; UTC if its name is unknown.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    pub fn new(name: &str) -> Self {
        Self(TimeZone::get(name).unwrap_or(TimeZone::UTC))
    }

    pub fn timezone(&self) -> &TimeZone {
        &self.0
    }

    fn local(&self, at_ms: i64) -> Option<Zoned> {
        Some(Timestamp::from_millisecond(at_ms).ok()?.to_zoned(self.0.clone()))
    }

    /// Formats a time by [`jiff::fmt::strtime`]; empty outside of the calendar.
    pub fn words(&self, at_ms: i64, format: &str) -> String {
        self.local(at_ms).map(|local| local.strftime(format).to_string()).unwrap_or_default()
    }

    /// The offset from UTC in milliseconds.
    pub fn offset_ms(&self, at_ms: i64) -> i64 {
        self.local(at_ms).map_or(0, |local| i64::from(local.offset().seconds()) * 1_000)
    }

    /// Whether a quarter hour that starts now is the first of an hour.
    pub fn is_full_hour(&self, quarter_ms: i64) -> bool {
        (quarter_ms + self.offset_ms(quarter_ms)).rem_euclid(HOUR_MS) < QUARTER_MS
    }

    pub fn hour(&self, at_ms: i64) -> Option<i8> {
        self.local(at_ms).map(|local| local.hour())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_full_where_the_clocks_of_the_zone_say_so() {
        let half_past_utc = 1_800_000;
        assert!(!Zone::new("UTC").is_full_hour(half_past_utc));
        assert!(Zone::new("Asia/Kolkata").is_full_hour(half_past_utc));
        assert!(Zone::new("no/such").is_full_hour(0));
    }
}
