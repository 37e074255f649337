//! Formatting of numbers for readers of the report.

use raingauge_core::number::grouped;
pub use raingauge_figure::number::bytes as memory;
use raingauge_figure::number::{decimals, trimmed};

/// Formats a number with three significant digits, or all digits before the decimal point.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 { grouped(value.round() as i128) } else { decimals(value) }
}

/// Formats a number with three significant digits, including trailing zeros, so that columns line
/// up.
pub fn aligned(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => number(value.round()),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a fraction as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{}\u{a0}%", number((share * 1_000.0).round() / 10.0))
}

/// For fractions close to 0.
pub fn fine_percent(share: f64) -> String {
    format!("{}\u{a0}%", trimmed(&format!("{:.4}", share * 100.0)))
}

/// Formats a duration with its unit.
pub fn milliseconds(value: f64) -> String {
    format!("{}\u{a0}ms", aligned(value))
}

/// Formats a ratio.
pub fn times(value: f64) -> String {
    format!("{value:.2}×")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_no_zeros_at_their_end() {
        assert_eq!(number(12_500.4), "12,500");
        assert_eq!(number(2.5), "2.5");
        assert_eq!(number(-0.25), "-0.25");
        assert_eq!(fine_percent(0.000_012), "0.0012\u{a0}%");
    }

    #[test]
    fn aligned_numbers_keep_their_zeros() {
        assert_eq!(
            [0.4, 6.2, 21.0, 99.96, 12_345.6].map(aligned),
            ["0.40", "6.20", "21.0", "100", "12,346"]
        );
    }
}
