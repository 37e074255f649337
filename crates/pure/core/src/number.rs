//! Numbers as people read them.

/// A whole number with a comma before every three digits: `-12,345,678`. Pages, messages and the
/// command line write numbers alike, in characters that other programs read back.
pub fn grouped(value: i128) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    if value < 0 {
        text.push('-');
    }

    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
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
        let all = [0, 7, 999, 1_000, -1_000, 1_234_567, i64::MIN.into()].map(grouped);
        let expected =
            ["0", "7", "999", "1,000", "-1,000", "1,234,567", "-9,223,372,036,854,775,808"];
        assert_eq!(all, expected);
    }
}
