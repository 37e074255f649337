//! Numbers, times and templates as text.

pub use super::parts::number;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use maud::{Markup, html};
use raingauge_core::bucket::{DAY_S, HOUR_S};

/// A number for an axis: `9 800`, `12k`, `1.5M`.
pub fn short_number(value: f64) -> String {
    let size = value.abs();
    if size < 10_000.0 {
        return if value.fract() == 0.0 { number(value as i128) } else { decimals(value) };
    }
    let (divisor, letter) = match size {
        ..1e6 => (1e3, "k"),
        ..1e9 => (1e6, "M"),
        ..1e12 => (1e9, "G"),
        ..1e15 => (1e12, "T"),
        _ => (1e15, "P"),
    };
    format!("{}{letter}", decimals(value / divisor))
}

/// At most three significant digits, without trailing zeros.
fn decimals(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}").replace('-', "\u{2212}");
    without_end_zeros(&text).to_owned()
}

/// A duration: `250 µs`, `2.5 ms`, `3 s`, `40 d`.
pub fn duration(seconds: f64) -> String {
    match seconds.abs() {
        0.0 => "0".to_owned(),
        ..0.001 => format!("{} µs", decimals(seconds * 1e6)),
        ..1.0 => format!("{} ms", decimals(seconds * 1e3)),
        ..120.0 => format!("{} s", decimals(seconds)),
        ..7_200.0 => format!("{} min", decimals(seconds / 60.0)),
        ..172_800.0 => format!("{} h", decimals(seconds / 3_600.0)),
        _ => format!("{} d", decimals(seconds / 86_400.0)),
    }
}

/// An amount of memory: `640 B`, `1.5 MB`.
pub fn bytes(value: f64) -> String {
    match value.abs() {
        ..1e3 => format!("{} B", decimals(value)),
        ..1e6 => format!("{} kB", decimals(value / 1e3)),
        ..1e9 => format!("{} MB", decimals(value / 1e6)),
        ..1e12 => format!("{} GB", decimals(value / 1e9)),
        _ => format!("{} TB", decimals(value / 1e12)),
    }
}

/// A share in percent, never rounded up to 100.
pub fn share(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{} %", without_end_zeros(&text))
}

/// A share of the width or the height of a picture, in SVG notation.
pub fn extent(share: f64) -> String {
    format!("{}%", without_end_zeros(&format!("{:.2}", share * 100.0)))
}

/// A decimal number without trailing zeros.
fn without_end_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
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
    html! { code.template-text { @for (literal, field) in parts { (literal) b { (field) } } (rest) } }
}

/// The name of a zone.
pub fn zone(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

pub fn local(at_s: i64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_second(at_s).ok()?.to_zoned(zone.clone()))
}

/// `Mon 3 Feb 2025, 14:00:10`
pub fn weekday_moment(at_s: i64, zone: &TimeZone) -> String {
    formatted(
        at_s,
        zone,
        if at_s % 60 == 0 { "%a %-d %b %Y, %H:%M" } else { "%a %-d %b %Y, %H:%M:%S" },
    )
}

fn formatted(at_s: i64, zone: &TimeZone, format: &str) -> String {
    local(at_s, zone).map_or_else(|| "–".to_owned(), |local| local.strftime(format).to_string())
}

/// Whether a time is the first one of a date. Some zones skip midnight on some days.
fn begins_date(at_s: i64, zone: &TimeZone) -> bool {
    local(at_s, zone).is_some_and(|local| local.start_of_day().is_ok_and(|start| start == local))
}

/// `Mon 3 Feb 2025` for a whole day, `Mon 3 Feb 2025, 14:00 – 15:00` otherwise.
pub fn bucket(from_s: i64, to_s: i64, zone: &TimeZone) -> String {
    let is_day = (DAY_S - HOUR_S..=DAY_S + HOUR_S).contains(&(to_s - from_s));
    if is_day && begins_date(from_s, zone) && begins_date(to_s, zone) {
        return formatted(from_s, zone, "%a %-d %b %Y");
    }
    let is_short = to_s - from_s <= DAY_S;
    let end = formatted(to_s, zone, if is_short { "%H:%M" } else { "%a %-d %b %Y, %H:%M" });
    format!("{} – {end}", formatted(from_s, zone, "%a %-d %b %Y, %H:%M"))
}

/// `1 Nov 2018 – 30 Nov 2018` for whole days, as people write them; with times of day otherwise.
pub fn range(from_s: i64, to_s: i64, zone: &TimeZone) -> String {
    if from_s < to_s && begins_date(from_s, zone) && begins_date(to_s, zone) {
        let first = formatted(from_s, zone, "%-d %b %Y");
        let last = formatted(to_s - 1, zone, "%-d %b %Y");
        return if first == last { first } else { format!("{first} – {last}") };
    }
    let format = "%-d %b %Y, %H:%M";
    format!("{} – {}", formatted(from_s, zone, format), formatted(to_s, zone, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        raingauge_core::time::parse_time_s(text).unwrap()
    }

    #[test]
    fn numbers_fit_an_axis() {
        let short =
            [0.0, 9_800.0, 12_000.0, 1_234_567.0, -2_500_000.0, 0.25, 3e9].map(short_number);
        assert_eq!(short, ["0", "9\u{202f}800", "12k", "1.23M", "\u{2212}2.5M", "0.25", "3G"]);
        assert_eq!(
            [0.000_25, 0.002_5, 3.0, 600.0, 864_000.0].map(duration),
            ["250 µs", "2.5 ms", "3 s", "10 min", "10 d"]
        );
        assert_eq!([640.0, 1.5e6].map(bytes), ["640 B", "1.5 MB"]);
        assert_eq!(cut("rain:city:7", 6), "rain:…");
        assert_eq!(
            [(1, 3), (99_999, 100_000), (3, 3), (0, 0)].map(|(part, whole)| share(part, whole)),
            ["33.33 %", "99.99 %", "100 %", "0 %"]
        );
        assert_eq!([0.0, 0.125, 1.0, 1.0 / 3.0].map(extent), ["0%", "12.5%", "100%", "33.33%"]);
    }

    #[test]
    fn a_share_is_all_only_when_it_is() {
        assert_eq!(
            [share(10, 10), share(99_999, 100_000), share(0, 7), share(0, 0)],
            ["100 %", "99.99 %", "0 %", "0 %"]
        );
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
        assert_eq!(bucket(from, to, &berlin), "Sun 31 Mar 2024");
        assert_eq!(range(from, to, &berlin), "31 Mar 2024");
        assert_eq!(bucket(from, from + 900, &berlin), "Sun 31 Mar 2024, 00:00 – 00:15");
        let (from, to) = (at("2024-09-24T22:00:00Z"), at("2024-09-27T01:15:00Z"));
        assert_eq!(range(from, to, &TimeZone::UTC), "24 Sep 2024, 22:00 – 27 Sep 2024, 01:15");
    }
}
