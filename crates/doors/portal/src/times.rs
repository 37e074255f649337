//! Zones, times, buckets and ranges, as people enter them.

use crate::html::words::{self, local};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::moment::Moment;
use raingauge_core::time::is_countable_s;
use raingauge_reader::midnight_s;

/// The forms of a time, for hints and messages.
pub const FORMS: &str = "2024-09-24 22:00, today, now, an age such as -7d, or RFC 3339";

/// Zones that a form suggests; it accepts any other one of the IANA database.
pub const ZONES: [&str; 12] = [
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Africa/Nairobi",
    "Asia/Kolkata",
    "Asia/Jakarta",
    "Asia/Singapore",
    "Asia/Tokyo",
    "Australia/Sydney",
];

/// Returns the zone with this name; `None` when there is none. An empty name is UTC.
pub fn zone_of(name: &str) -> Option<TimeZone> {
    if name.is_empty() { Some(TimeZone::UTC) } else { TimeZone::get(name).ok() }
}

/// A time as a person entered it: fixed, or relative to the present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnteredTime {
    /// Seconds since 1970.
    pub at_s: i64,
    /// The text of a relative time, such as `-7d`, which means another second at each request.
    relative: Option<String>,
}

impl EnteredTime {
    pub const fn fixed(at_s: i64) -> Self {
        Self { at_s, relative: None }
    }

    /// Parses a time in the forms of the API, or a local time or date of the zone (`2024-09-24
    /// 22:00`). A local time that the clock skips becomes the instant after the skip. Relative days
    /// are those of the zone.
    pub fn parse(text: &str, zone: &TimeZone, now_s: i64) -> Option<Self> {
        let Some(moment) = Moment::parse(text) else {
            let civil: DateTime = text.replacen(' ', "T", 1).parse().ok()?;
            let at_s = zone.to_ambiguous_zoned(civil).compatible().ok()?.timestamp().as_second();
            return is_countable_s(at_s).then_some(Self::fixed(at_s));
        };

        let midnight = |days_ago| midnight_s(days_ago, now_s, words::zone(zone)).unwrap_or(-1);
        let at_s = moment.at_s_with(now_s, midnight)?;
        let relative = (!matches!(moment, Moment::At(_))).then(|| text.to_owned());
        Some(Self { at_s, relative })
    }

    /// Returns the time that fills a field of this zone.
    pub fn in_field(&self, zone: &TimeZone) -> String {
        self.relative.clone().unwrap_or_else(|| words::moment(self.at_s, zone))
    }

    /// Returns the time for an address, where it keeps its meaning in any zone.
    pub fn in_address(&self) -> String {
        self.relative.clone().unwrap_or_else(|| self.at_s.to_string())
    }
}

/// Parses a time to seconds since 1970, in the forms of [`EnteredTime`].
pub fn moment_of(text: &str, zone: &TimeZone, now_s: i64) -> Option<i64> {
    EnteredTime::parse(text, zone, now_s).map(|time| time.at_s)
}

/// The two ends of a range.
pub type Ends = (EnteredTime, EnteredTime);

/// Returns the start of the bucket that holds a time. Hours and days follow the local time of the
/// zone.
pub fn bucket_start(at_s: i64, granularity: Granularity, zone: &TimeZone) -> i64 {
    let Some(local) = local(at_s, zone) else {
        return granularity.floor(at_s);
    };
    match granularity {
        Granularity::Quarter => granularity.floor(at_s),
        Granularity::Hour => at_s - i64::from(local.minute()) * 60 - i64::from(local.second()),
        Granularity::Day => {
            local.start_of_day().map_or(granularity.floor(at_s), |day| day.timestamp().as_second())
        }
    }
}

/// Returns the start of the next bucket.
pub fn next_bucket(at_s: i64, granularity: Granularity, zone: &TimeZone) -> i64 {
    let start_s = bucket_start(at_s, granularity, zone);
    match granularity {
        Granularity::Quarter => start_s + QUARTER_S,
        Granularity::Hour => start_s + HOUR_S,
        // A local day lasts 23 to 25 hours, so 36 hours after its start it is always the next day.
        Granularity::Day => bucket_start(start_s + 36 * HOUR_S, granularity, zone),
    }
}

/// Returns the end of the bucket that holds a time; the time itself if a bucket begins there.
pub fn bucket_end(at_s: i64, granularity: Granularity, zone: &TimeZone) -> i64 {
    if bucket_start(at_s, granularity, zone) == at_s {
        at_s
    } else {
        next_bucket(at_s, granularity, zone)
    }
}

/// A range that ends with the currently open bucket. It consists of whole buckets, so that the bars
/// add up to the count. It includes the open bucket, because an event that just happened should be
/// visible.
pub fn rolling(days: i64, now_s: i64, granularity: Granularity, zone: &TimeZone) -> (i64, i64) {
    let to_s = next_bucket(now_s, granularity, zone);
    // Two hours of slack keep a clock change from extending the range into another local day.
    let slack_s = if granularity == Granularity::Day { 2 * HOUR_S } else { 0 };
    (bucket_start((to_s - days * DAY_S + slack_s).max(0), granularity, zone), to_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2024-09-24T22:03:50Z.
    const NOW_S: i64 = 1_727_215_430;

    fn at(text: &str) -> i64 {
        raingauge_core::time::parse_time_s(text).unwrap()
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        let berlin = zone_of("Europe/Berlin").unwrap();
        let moment = |text: &str| moment_of(text, &berlin, NOW_S);
        assert_eq!(moment("1727215430"), Some(1_727_215_430));
        assert_eq!(moment("2024-09-24T22:00:00Z"), Some(at("2024-09-24T22:00:00Z")));
        assert_eq!(moment("2024-09-24T22:00"), Some(at("2024-09-24T20:00:00Z")));
        assert_eq!(moment("2024-09-24 22:00"), Some(at("2024-09-24T20:00:00Z")));
        assert_eq!(moment("2024-09-24"), Some(at("2024-09-23T22:00:00Z")));

        // This half hour does not exist in this zone.
        assert_eq!(moment("2024-03-31T02:30"), Some(at("2024-03-31T01:30:00Z")));
        for wrong in ["", "soon", "2024-13-01T00:00", "1066-10-14T09:00", "7d", "-7y"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
        assert!(zone_of("Mars/Olympus").is_none() && zone_of("").is_some());
    }

    #[test]
    fn relative_times_stay_relative_and_their_days_are_those_of_the_zone() {
        let berlin = zone_of("Europe/Berlin").unwrap();
        let time = |text: &str| EnteredTime::parse(text, &berlin, NOW_S).unwrap();
        assert_eq!(time("-7d").at_s, NOW_S - 7 * DAY_S);
        assert_eq!(time("now").at_s, NOW_S);
        // It is past midnight in Berlin already.
        assert_eq!(time("today").at_s, at("2024-09-24T22:00:00Z"));
        assert_eq!(time("yesterday").at_s, at("2024-09-23T22:00:00Z"));

        for text in ["-7d", "today", "now"] {
            let time = time(text);
            assert_eq!((time.in_field(&berlin), time.in_address()), (text.into(), text.into()));
        }
        let fixed = time("2024-09-24T22:00:10");
        assert_eq!(fixed.in_field(&berlin), "2024-09-24 22:00:10");
        assert_eq!(fixed.in_address(), "1727208010");
    }

    #[test]
    fn days_are_cut_where_the_clocks_of_the_zone_cut_them() {
        let berlin = zone_of("Europe/Berlin").unwrap();
        let noon = at("2024-03-31T10:00:00Z");
        assert_eq!(bucket_start(noon, Granularity::Day, &berlin), at("2024-03-30T23:00:00Z"));
        assert_eq!(next_bucket(noon, Granularity::Day, &berlin), at("2024-03-31T22:00:00Z"));
        let week = rolling(7, at("2024-04-02T10:00:00Z"), Granularity::Day, &berlin);
        assert_eq!(week, (at("2024-03-26T23:00:00Z"), at("2024-04-02T22:00:00Z")));
    }

    proptest! {
        #[test]
        fn buckets_hold_their_moments(
            at_s in 0i64..4_000_000_000,
            place in 0usize..ZONES.len(),
            which in 0usize..3,
        ) {
            let zone = zone_of(ZONES[place]).unwrap();
            let granularity = Granularity::ALL[which];
            let start_s = bucket_start(at_s, granularity, &zone);
            let end_s = next_bucket(at_s, granularity, &zone);
            prop_assert!(start_s <= at_s && at_s < end_s, "{start_s} {at_s} {end_s}");

            let field = EnteredTime::fixed(start_s).in_field(&zone);
            let found_s = moment_of(&field, &zone, NOW_S).unwrap();
            prop_assert!((found_s - start_s).abs() <= HOUR_S, "{field}");
        }
    }
}
