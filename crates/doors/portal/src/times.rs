//! Zones, buckets and ranges, as people enter them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_core::time::{is_countable_s, parse_time_s};

use crate::html::words::local;

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

/// Parses a time from a form or an address: epoch seconds, RFC 3339, or local time of the zone
/// (`2024-09-24T22:00`). A local time that the clock skips becomes the instant after the skip.
pub fn moment_of(text: &str, zone: &TimeZone) -> Option<i64> {
    if let Some(seconds) = parse_time_s(text) {
        return Some(seconds);
    }
    let civil: DateTime = text.replacen(' ', "T", 1).parse().ok()?;
    let seconds = zone.to_ambiguous_zoned(civil).compatible().ok()?.timestamp().as_second();
    is_countable_s(seconds).then_some(seconds)
}

/// The value of a date and time field: local time of the zone.
pub fn field_of(at_s: i64, zone: &TimeZone) -> String {
    local(at_s, zone).map(|local| local.strftime("%Y-%m-%dT%H:%M").to_string()).unwrap_or_default()
}

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

    fn at(text: &str) -> i64 {
        parse_time_s(text).unwrap()
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        let berlin = zone_of("Europe/Berlin").unwrap();
        assert_eq!(moment_of("1727215430", &berlin), Some(1_727_215_430));
        assert_eq!(moment_of("2024-09-24T22:00:00Z", &berlin), Some(at("2024-09-24T22:00:00Z")));
        assert_eq!(moment_of("2024-09-24T22:00", &berlin), Some(at("2024-09-24T20:00:00Z")));
        assert_eq!(moment_of("2024-09-24 22:00", &berlin), Some(at("2024-09-24T20:00:00Z")));
        // This half hour does not exist in this zone.
        assert_eq!(moment_of("2024-03-31T02:30", &berlin), Some(at("2024-03-31T01:30:00Z")));
        for wrong in ["", "soon", "2024-13-01T00:00", "1066-10-14T09:00"] {
            assert_eq!(moment_of(wrong, &berlin), None, "{wrong}");
        }
        assert!(zone_of("Mars/Olympus").is_none() && zone_of("").is_some());
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
        fn buckets_hold_their_moments(at_s in 0i64..4_000_000_000, place in 0usize..ZONES.len(), which in 0usize..3) {
            let zone = zone_of(ZONES[place]).unwrap();
            let granularity = Granularity::ALL[which];
            let (start_s, end_s) = (bucket_start(at_s, granularity, &zone), next_bucket(at_s, granularity, &zone));
            prop_assert!(start_s <= at_s && at_s < end_s, "{start_s} {at_s} {end_s}");
            prop_assert_eq!(moment_of(&field_of(start_s, &zone), &zone).map(|found| (found - start_s).abs() <= HOUR_S), Some(true));
        }
    }
}
