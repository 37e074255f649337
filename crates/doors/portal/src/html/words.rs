//! Numbers, times and templates as text.

pub use raingauge_core::number::grouped as number;
pub use raingauge_figure::number::{bytes, duration, short as short_number};
pub use raingauge_figure::path::extent;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use maud::{Markup, html};
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S};
use raingauge_figure::number::trimmed;

/// A share in percent, never rounded up to 100.
pub fn share(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{} %", trimmed(&text))
}

/// Encodes a text as one segment of a path.
pub fn step_of_address(text: &str) -> String {
    // A blank is `+` in a query string only.
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

/// `1 event`, `2 events`.
pub fn count_of(count: i128, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// `3 of the newest 20 events`, `all of the newest 20 events`.
pub fn part_of(part: u64, all: u64, one: &str, many: &str) -> String {
    let part = if part == all { "All".to_owned() } else { number(part.into()) };
    format!("{part} of the newest {}", count_of(all.into(), one, many))
}

/// The beginning of a text that is too long, cut at a character boundary.
pub fn cut(text: &str, len_max: usize) -> String {
    if text.chars().count() <= len_max {
        return text.to_owned();
    }
    text.chars().take(len_max.saturating_sub(1)).chain(['…']).collect()
}

/// A template, with its fields set off from the literal text.
pub fn template(template: &str) -> Markup {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((open, close)) =
        rest.find('{').and_then(|open| Some((open, open + rest[open..].find('}')? + 1)))
    {
        parts.push((&rest[..open], &rest[open..close]));
        rest = &rest[close..];
    }
    html! {
        code.template-text {
            @for (literal, field) in parts { (literal) b { (field) } }
            (rest)
        }
    }
}

/// The name of a bucket of this width.
pub const fn singular(granularity: Granularity) -> &'static str {
    match granularity {
        Granularity::Quarter => "quarter hour",
        Granularity::Hour => "hour",
        Granularity::Day => "day",
    }
}

pub const fn plural(granularity: Granularity) -> &'static str {
    match granularity {
        Granularity::Quarter => "quarter hours",
        Granularity::Hour => "hours",
        Granularity::Day => "days",
    }
}

/// The name of a zone.
pub fn zone(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

pub fn local(at_s: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_second(at_s).ok()?.to_zoned(zone.clone()))
}

/// The forms of times and dates on pages; the fields for times accept them too.
pub const MINUTE: &str = "%Y-%m-%d %H:%M";
const SECOND: &str = "%Y-%m-%d %H:%M:%S";
const DATE: &str = "%Y-%m-%d";

/// `2025-02-03 14:00`, with the seconds if there are some.
pub fn moment(at_s: i64, zone: &TimeZone) -> String {
    formatted(at_s, zone, if at_s % 60 == 0 { MINUTE } else { SECOND })
}

/// `Mon 2025-02-03 14:00:10`
pub fn weekday_moment(at_s: i64, zone: &TimeZone) -> String {
    format!("{} {}", formatted(at_s, zone, "%a"), moment(at_s, zone))
}

fn formatted(at_s: i64, zone: &TimeZone, format: &str) -> String {
    local(at_s, zone).map_or_else(|| "–".to_owned(), |local| local.strftime(format).to_string())
}

/// Whether a time is the first one of a date. Some zones skip midnight on some days.
fn begins_date(at_s: i64, zone: &TimeZone) -> bool {
    local(at_s, zone).is_some_and(|local| local.start_of_day().is_ok_and(|start| start == local))
}

/// `Mon 2025-02-03` for a whole day, `Mon 2025-02-03 14:00 – 15:00` otherwise.
pub fn bucket(from_s: i64, to_s: i64, zone: &TimeZone) -> String {
    let is_day = (DAY_S - HOUR_S..=DAY_S + HOUR_S).contains(&(to_s - from_s));
    if is_day && begins_date(from_s, zone) && begins_date(to_s, zone) {
        return formatted(from_s, zone, "%a %Y-%m-%d");
    }
    let is_short = to_s - from_s <= DAY_S;
    let end = if is_short { formatted(to_s, zone, "%H:%M") } else { weekday_moment(to_s, zone) };
    format!("{} – {end}", weekday_moment(from_s, zone))
}

/// `2018-11-01 – 2018-11-30` for whole days, with the last day in it; otherwise as [`span`].
pub fn range(from_s: i64, to_s: i64, zone: &TimeZone) -> String {
    if from_s >= to_s || !begins_date(from_s, zone) || !begins_date(to_s, zone) {
        return span(from_s, to_s, zone);
    }
    let first = formatted(from_s, zone, DATE);
    let last = formatted(to_s - 1, zone, DATE);
    if first == last { first } else { format!("{first} – {last}") }
}

/// `2018-11-01 00:00 – 2018-12-01 00:00`: the range ends just before its end.
pub fn span(from_s: i64, to_s: i64, zone: &TimeZone) -> String {
    format!("{} – {}", moment(from_s, zone), moment(to_s, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        raingauge_core::time::parse_time_s(text).unwrap()
    }

    #[test]
    fn texts_are_cut_and_shares_have_two_decimals() {
        assert_eq!(cut("rain:city:7", 6), "rain:…");
        assert_eq!(
            [(1, 3), (99_999, 100_000), (3, 3), (0, 0)].map(|(part, whole)| share(part, whole)),
            ["33.33 %", "99.99 %", "100 %", "0 %"]
        );
    }

    #[test]
    fn a_share_is_all_only_when_it_is() {
        assert_eq!(
            [share(10, 10), share(99_999, 100_000), share(0, 7), share(0, 0)],
            ["100 %", "99.99 %", "0 %", "0 %"]
        );
        assert_eq!(part_of(20_000, 20_000, "event", "events"), "All of the newest 20,000 events");
        assert_eq!(part_of(0, 20_000, "event", "events"), "0 of the newest 20,000 events");
    }

    #[test]
    fn fields_of_a_template_stand_out() {
        let markup = template("a:{b}:<c>{d}").into_string();
        assert_eq!(markup, "<code class=\"template-text\">a:<b>{b}</b>:&lt;c&gt;<b>{d}</b></code>");
        assert_eq!(template("}a{").into_string(), "<code class=\"template-text\">}a{</code>");
    }

    #[test]
    fn whole_days_are_named_by_their_dates() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let (from, to) = (at("2024-03-30T23:00:00Z"), at("2024-03-31T22:00:00Z"));
        assert_eq!(bucket(from, to, &berlin), "Sun 2024-03-31");
        assert_eq!(range(from, to, &berlin), "2024-03-31");
        assert_eq!(span(from, to, &berlin), "2024-03-31 00:00 – 2024-04-01 00:00");
        assert_eq!(bucket(from, from + 900, &berlin), "Sun 2024-03-31 00:00 – 00:15");
        let (from, to) = (at("2024-09-24T22:00:00Z"), at("2024-09-27T01:15:00Z"));
        assert_eq!(range(from, to, &TimeZone::UTC), "2024-09-24 22:00 – 2024-09-27 01:15");
        assert_eq!(weekday_moment(from + 10, &TimeZone::UTC), "Tue 2024-09-24 22:00:10");
    }
}
