//! Integers in the one way of writing them that reads back as the same bytes.

/// Longest decimal form of an i64.
const DIGITS_MAX: usize = 20;

/// An integer in canonical form: no plus sign, no leading zero, no space, within 64 bits.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > DIGITS_MAX {
        return None;
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }

    let mut number = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if negative { 0i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse_i64;

    proptest! {
        #[test]
        fn what_is_parsed_prints_as_it_was(text in "-?[0-9]{1,20}") {
            let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), number);
        }
    }

    #[test]
    fn other_forms_are_no_integers() {
        for text in ["", "-", "+1", " 1", "1 ", "01", "-0", "00", "1e3", "9223372036854775808"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
    }
}
