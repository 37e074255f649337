//! Instants: parsing RFC 3339 and civil dates, without a clock and without time zones.
//!
//! Times are seconds or milliseconds since 1970-01-01T00:00:00Z, as the name says.

use crate::limits::TIME_END_S;

/// Days from 1970-01-01 to a civil date of the proleptic Gregorian calendar
/// (Howard Hinnant, "chrono-compatible low-level date algorithms").
pub const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted - era * 400;
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The civil date `(year, month, day)` of a day since 1970-01-01; the inverse of
/// [`days_from_civil`].
pub const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted - era * 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Seconds since 1970 as RFC 3339 in UTC, for messages.
pub fn format_rfc3339(seconds: i64) -> String {
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Parses RFC 3339 (`2024-09-24T22:03:50Z`, `…50.25+02:00`) to milliseconds since 1970. Digits past
/// the millisecond are cut off; a leap second counts as the last millisecond of its minute.
pub fn parse_rfc3339_ms(text: &[u8]) -> Option<i64> {
    if text.len() < 20 || text[4] != b'-' || text[7] != b'-' || text[13] != b':' || text[16] != b':'
    {
        return None;
    }

    if !matches!(text[10], b'T' | b't' | b' ') {
        return None;
    }
    let year = digits(&text[0..4])?;
    let month = digits(&text[5..7])?;
    let day = digits(&text[8..10])?;
    let hour = digits(&text[11..13])?;

    let minute = digits(&text[14..16])?;
    let second = digits(&text[17..19])?;
    let date_valid = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    if !date_valid || hour > 23 || minute > 59 || second > 60 {
        return None;
    }

    let (fraction_ms, rest) = fraction(&text[19..])?;
    let offset_s = offset(rest)?;
    let of_minute_ms = if second == 60 { 59_999 } else { second * 1_000 + fraction_ms };
    let minutes = (days_from_civil(year, month, day) * 24 + hour) * 60 + minute;

    Some(minutes * 60_000 + of_minute_ms - offset_s * 1_000)
}

/// A time of the public contract: epoch seconds as digits, or RFC 3339. Answers whole seconds.
pub fn parse_time_s(text: &str) -> Option<i64> {
    let seconds = match text.parse::<i64>() {
        Ok(seconds) => seconds,
        Err(_) => parse_rfc3339_ms(text.as_bytes())?.div_euclid(1_000),
    };
    is_countable_s(seconds).then_some(seconds)
}

/// Whether a time lies in the span that buckets exist for: 1970 up to the year 10000.
pub const fn is_countable_s(seconds: i64) -> bool {
    seconds >= 0 && seconds <= TIME_END_S
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    let mut number = 0;
    for byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + i64::from(byte - b'0');
    }
    Some(number)
}

/// The milliseconds of an optional `.123…`, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', tail)) = text.split_first() else {
        return Some((0, text));
    };
    let len = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 {
        return None;
    }
    let mut milliseconds = 0;
    for digit in tail[..len].iter().chain(b"00").take(3) {
        milliseconds = milliseconds * 10 + i64::from(digit - b'0');
    }
    Some((milliseconds, &tail[len..]))
}

/// The seconds that `Z` or `+02:00` is ahead of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    match text {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), rest @ ..] if rest.len() == 5 && rest[2] == b':' => {
            let hours = digits(&rest[0..2])?;
            let minutes = digits(&rest[3..5])?;
            if hours > 23 || minutes > 59 {
                return None;
            }

            let seconds = hours * 3_600 + minutes * 60;
            Some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_times_of_the_worked_example() {
        assert_eq!(parse_time_s("2024-09-24T22:03:50Z"), Some(1_727_215_430));
        assert_eq!(parse_time_s("2024-09-27T01:20:00Z"), Some(1_727_400_000));
        assert_eq!(parse_time_s("1727215430"), Some(1_727_215_430));
        assert_eq!(format_rfc3339(1_727_215_430), "2024-09-24T22:03:50Z");
    }

    #[test]
    fn offsets_fractions_and_leap_days() {
        assert_eq!(parse_rfc3339_ms(b"1970-01-01T01:00:00.5+01:00"), Some(500));
        assert_eq!(parse_rfc3339_ms(b"2024-02-29T00:00:00.123456789Z"), Some(1_709_164_800_123));
        assert_eq!(parse_rfc3339_ms(b"2016-12-31T23:59:60Z"), Some(1_483_228_799_999));

        for wrong in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+0100",
            "2024-01-01",
            "",
        ] {
            assert_eq!(parse_rfc3339_ms(wrong.as_bytes()), None, "{wrong}");
        }

        assert_eq!(parse_time_s("-1"), None);
    }

    proptest! {
        #[test]
        fn civil_dates_lead_back(days in -1_000_000i64..3_000_000) {
            let (year, month, day) = civil_from_days(days);
            prop_assert_eq!(days_from_civil(year, month, day), days);
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse_rfc3339_ms(&bytes);
        }

        #[test]
        fn formatting_then_parsing_leads_back(seconds in 0i64..TIME_END_S) {
            prop_assert_eq!(parse_time_s(&format_rfc3339(seconds)), Some(seconds));
        }
    }
}
