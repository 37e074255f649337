//! Numbers as people read them.

/// A whole number with separators: `12 345 678`, with narrow spaces that do not break.
pub fn spaced(value: i128) -> String {
    grouped(value, "\u{2212}", '\u{202f}')
}

/// A whole number with a separator before every three digits.
pub fn grouped(value: i128, minus: &str, separator: char) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    if value < 0 {
        text.push_str(minus);
    }

    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let grouped =
            [0, 999, 1_000, -12_345_678].map(|value| spaced(value).replace('\u{202f}', " "));
        assert_eq!(grouped, ["0", "999", "1 000", "\u{2212}12 345 678"]);
    }
}
