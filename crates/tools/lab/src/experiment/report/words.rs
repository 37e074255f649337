//! Formatting of numbers for readers: thin spaces between thousands, and units that stay with their
//! number.

/// Formats a number with thin spaces between thousands, and at least three significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 100.0 || size == size.round() => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 0.1 => 2,
        _ => 4,
    };

    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("−", digits));
    let whole = format!("{sign}{}", spaced(digits));

    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
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

fn spaced(digits: &str) -> String {
    // Four digits are readable without separators; five are not.
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// The largest unit that is not larger than the value.
pub fn byte_size(value: f64) -> f64 {
    let powers = [1024f64.powi(3), 1024f64.powi(2), 1024.0];
    powers.into_iter().find(|power| value >= *power).unwrap_or(1.0)
}

/// Formats a number of bytes in a unit of the given size.
pub fn bytes(value: f64, size: f64) -> String {
    let unit = match size {
        _ if size >= 1024f64.powi(3) => "GiB",
        _ if size >= 1024f64.powi(2) => "MiB",
        _ if size >= 1024.0 => "KiB",
        _ => "B",
    };
    format!("{}\u{a0}{unit}", number(value / size))
}

/// Formats a number of bytes in the unit that fits it.
pub fn memory(value: f64) -> String {
    bytes(value, byte_size(value))
}

/// Formats a fraction as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    format!("{}\u{a0}%", number((share * 1_000.0).round() / 10.0))
}

/// For fractions close to 0.
pub fn fine_percent(share: f64) -> String {
    format!("{}\u{a0}%", number((share * 1e6).round() / 1e4))
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
    fn numbers_have_thin_spaces_and_no_zeros_at_their_end() {
        assert_eq!(number(12_500.4), "12\u{2009}500");
        assert_eq!(number(9_999.0), "9999");
        assert_eq!(number(1_234_567.0), "1\u{2009}234\u{2009}567");
        assert_eq!(number(2.5), "2.5");
        assert_eq!(number(-0.25), "−0.25");
        assert_eq!(number(0.0123), "0.0123");
        assert_eq!(memory(1.5 * 1024f64.powi(2)), "1.5\u{a0}MiB");
    }

    #[test]
    fn aligned_numbers_keep_their_zeros() {
        assert_eq!(
            [0.4, 6.2, 21.0, 99.96, 12_345.6].map(aligned),
            ["0.40", "6.20", "21.0", "100", "12\u{2009}346"]
        );
    }
}
