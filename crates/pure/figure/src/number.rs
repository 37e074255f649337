//! Numbers as text, short enough for an axis.

use raingauge_core::number::grouped;

/// A number for an axis: `9,800`, `12k`, `1.5M`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size < 10_000.0 {
        return if value.fract() == 0.0 { grouped(value as i128) } else { decimals(value) };
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

/// At most three significant digits, without trailing zeros; all digits of a number from 1,000 on.
pub fn decimals(value: f64) -> String {
    let digits = match value.abs() {
        1_000.0.. => return grouped(value.round() as i128),
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    trimmed(&format!("{value:.digits$}")).to_owned()
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

/// A decimal number without trailing zeros.
pub fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_an_axis() {
        let short = [0.0, 9_800.0, 12_000.0, 1_234_567.0, -2_500_000.0, 0.25, 3e9].map(short);
        assert_eq!(short, ["0", "9,800", "12k", "1.23M", "-2.5M", "0.25", "3G"]);
        assert_eq!(
            [0.000_25, 0.002_5, 3.0, 600.0, 864_000.0, 2_608.2 * 86_400.0].map(duration),
            ["250 µs", "2.5 ms", "3 s", "10 min", "10 d", "2,608 d"]
        );
        assert_eq!([1_008.4, 0.5].map(super::short), ["1,008", "0.5"]);
        assert_eq!([640.0, 1.5e6].map(bytes), ["640 B", "1.5 MB"]);
    }
}
