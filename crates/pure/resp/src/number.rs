//! Numbers as clients write and read them.

use std::fmt::{self, Write};

use rust_decimal::Decimal as Exact;

/// Length of the longest integer of 64 bits.
const INTEGER_DIGITS_MAX: usize = 20;
/// Decimal places of a sum that `INCRBYFLOAT` prints.
const PLACES: u32 = 17;
/// Integers up to this print without an exponent: all of them are exact in 64 bits.
const PLAIN_MAX: f64 = (i64::MAX / 2) as f64;

/// An integer in its one canonical form: no spaces, no `+`, no leading zeros, no `-0`.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    if text == b"0" {
        return Some(0);
    }

    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let negative = digits.len() < text.len();

    if text.len() > INTEGER_DIGITS_MAX || !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }

    // Counted towards the sign, since the smallest integer has no positive counterpart.
    digits.iter().try_fold(0_i64, |value, byte| {
        let digit = i64::from(byte.checked_sub(b'0').filter(|digit| *digit <= 9)?);
        let value = value.checked_mul(10)?;

        if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
    })
}

/// A cursor as the C library reads it: digits behind a sign at most, and 0 without any text. A
/// negative one counts down from 2^64.
pub fn parse_cursor(text: &[u8]) -> Option<u64> {
    let (is_negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }

    let cursor: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if is_negative { cursor.wrapping_neg() } else { cursor })
}

/// A decimal number, `inf` and `-inf` included. What is not a number, has spaces around it, or is
/// too large or too small for 64 bits, is none.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;

    let named = text.trim_start_matches(['+', '-']).starts_with(['i', 'I', 'n', 'N']);
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = value == 0.0 && mantissa.contains(|digit| matches!(digit, '1'..='9'));

    (!value.is_nan() && (value.is_finite() || named) && !vanished).then_some(value)
}

/// The text of a decimal number: the shortest that reads back as the same number.
pub fn format_f64(value: f64) -> Decimal {
    Decimal::new(value)
}

/// The text of a decimal number, without an allocation.
#[derive(Clone, Copy)]
pub struct Decimal {
    bytes: [u8; 40],
    len: usize,
}

impl Decimal {
    pub fn new(value: f64) -> Decimal {
        let mut text = Decimal { bytes: [0; 40], len: 0 };

        if value.is_nan() {
            text.push(b"nan");
        } else if value.is_infinite() {
            text.push(if value > 0.0 { b"inf" } else { b"-inf" });
        } else if value == 0.0 {
            text.push(if value.is_sign_negative() { b"-0" } else { b"0" });
        } else if value.abs() <= PLAIN_MAX && value.trunc() == value {
            text.push(itoa::Buffer::new().format(value as i64).as_bytes());
        } else {
            text.push_shortest(value);
        }

        text
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Appends the shortest digits, with an exponent where plain digits would be long: below 1e-6,
    /// or with more than seven zeros behind the digits.
    fn push_shortest(&mut self, value: f64) {
        let (digits, digits_len, exponent) = digits(value.abs());
        let digits = &digits[..digits_len];
        // The power of ten of the last digit.
        let last = exponent - (digits_len as i32 - 1);
        let magnitude = exponent.abs();

        if value < 0.0 {
            self.push(b"-");
        }

        if last >= 0 && magnitude < digits_len as i32 + 7 {
            self.push(digits);
            (0..last).for_each(|_| self.push(b"0"));
        } else if last < 0 && (last > -7 || magnitude < 4) {
            self.push_fraction(digits, -last as usize);
        } else {
            self.push(&digits[..1]);
            if digits.len() > 1 {
                self.push(b".");
                self.push(&digits[1..]);
            }
            self.push(if exponent < 0 { b"e-" } else { b"e+" });
            self.push(itoa::Buffer::new().format(magnitude).as_bytes());
        }
    }

    /// Appends digits of which the last `places` stand behind the point.
    fn push_fraction(&mut self, digits: &[u8], places: usize) {
        match digits.len().checked_sub(places) {
            None | Some(0) => {
                self.push(b"0.");
                (0..places - digits.len()).for_each(|_| self.push(b"0"));
                self.push(digits);
            }
            Some(whole) => {
                self.push(&digits[..whole]);
                self.push(b".");
                self.push(&digits[whole..]);
            }
        }
    }
}

/// The shortest decimal digits of a positive number, how many there are, and the power of ten of
/// the first one.
fn digits(value: f64) -> ([u8; 20], usize, i32) {
    let mut text = Decimal { bytes: [0; 40], len: 0 };
    write!(text, "{value:e}").expect("24 bytes are enough for any number of 64 bits");

    let text: &str = text.as_ref();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mut digits = [0; 20];
    let mut len = 0;

    for byte in mantissa.bytes().filter(u8::is_ascii_digit) {
        digits[len] = byte;
        len += 1;
    }

    (digits, len, exponent.parse().unwrap_or(0))
}

impl Write for Decimal {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.len + text.len() > self.bytes.len() {
            return Err(fmt::Error);
        }

        self.push(text.as_bytes());
        Ok(())
    }
}

impl AsRef<[u8]> for Decimal {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl AsRef<str> for Decimal {
    fn as_ref(&self) -> &str {
        std::str::from_utf8(AsRef::<[u8]>::as_ref(self)).expect("only ASCII was written")
    }
}

/// A number that `INCRBYFLOAT` adds: decimal where its digits allow that, so that 0.1 and 0.2 are
/// 0.3, and binary beyond.
#[derive(Clone, Copy, Debug)]
pub struct Real(Digits);

#[derive(Clone, Copy, Debug)]
enum Digits {
    Decimal(Exact),
    Binary(f64),
}

impl Real {
    pub fn parse(text: &[u8]) -> Option<Real> {
        let value = parse_f64(text)?;
        let text = std::str::from_utf8(text).ok()?;

        // Without rounding: what has more digits than a decimal holds is taken as binary.
        let decimal = if text.contains(['e', 'E']) {
            Exact::from_scientific(text).ok()
        } else {
            Exact::from_str_exact(text).ok()
        };

        Some(Real(match decimal {
            Some(decimal) => Digits::Decimal(decimal),
            None => Digits::Binary(value),
        }))
    }

    /// The sum; none if it is infinite or not a number.
    pub fn plus(self, other: Real) -> Option<Real> {
        if let (Digits::Decimal(a), Digits::Decimal(b)) = (self.0, other.0)
            && let Some(sum) = a.checked_add(b)
        {
            return Some(Real(Digits::Decimal(sum)));
        }

        let sum = self.binary() + other.binary();
        sum.is_finite().then_some(Real(Digits::Binary(sum)))
    }

    fn binary(self) -> f64 {
        match self.0 {
            Digits::Decimal(value) => value.to_string().parse().unwrap_or(f64::NAN),
            Digits::Binary(value) => value,
        }
    }
}

/// Up to 17 decimal places, without an exponent and without zeros at the end.
impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            Digits::Decimal(value) => value.round_dp(PLACES).to_string(),
            Digits::Binary(value) => format!("{value:.17}"),
        };
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };

        f.write_str(if text == "-0" { "0" } else { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let decimal = format_f64(value);
        let text: &str = decimal.as_ref();
        text.to_owned()
    }

    #[test]
    fn integers_have_one_form() {
        assert_eq!(parse_i64(b"0"), Some(0));
        assert_eq!(parse_i64(b"-1"), Some(-1));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));

        for text in ["", "-", "+1", " 1", "1 ", "01", "-0", "00", "1.0", "9223372036854775808"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_i64(b"-9223372036854775809"), None);
        assert_eq!(parse_i64(b"123456789012345678901"), None);
    }

    #[test]
    fn cursors_are_read_as_other_servers_read_them() {
        assert_eq!(parse_cursor(b""), Some(0));
        assert_eq!(parse_cursor(b"42"), Some(42));
        assert_eq!(parse_cursor(b"+5"), Some(5));
        assert_eq!(parse_cursor(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_cursor(b"-1"), Some(u64::MAX));
        for text in ["a", "1a", " 1", "+", "-", "--1", "18446744073709551616"] {
            assert_eq!(parse_cursor(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn decimal_numbers_are_read_whole_or_not_at_all() {
        assert_eq!(parse_f64(b"1.5"), Some(1.5));
        assert_eq!(parse_f64(b"+5"), Some(5.0));
        assert_eq!(parse_f64(b"-1e3"), Some(-1000.0));
        assert_eq!(parse_f64(b"0.0"), Some(0.0));
        assert_eq!(parse_f64(b"inf"), Some(f64::INFINITY));
        assert_eq!(parse_f64(b"-INF"), Some(f64::NEG_INFINITY));

        for text in ["", "nan", " 1", "1 ", "1e400", "1e-400", "abc", "1.2.3"] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_print_with_the_fewest_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-3.5, "-3.5"),
            (0.1, "0.1"),
            (1e17, "100000000000000000"),
            (1e20, "1e+20"),
            (1.5e300, "1.5e+300"),
            (1e-7, "1e-7"),
            (0.000001, "0.000001"),
            (1.0 / 3.0, "0.3333333333333333"),
            (123.456, "123.456"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn sums_are_decimal() {
        let sum = |a: &str, b: &str| {
            let a = Real::parse(a.as_bytes()).expect("a number");
            let b = Real::parse(b.as_bytes()).expect("a number");
            a.plus(b).map(|sum| sum.to_string())
        };

        assert_eq!(sum("0.1", "0.2").as_deref(), Some("0.3"));
        assert_eq!(sum("10.50", "0.1").as_deref(), Some("10.6"));
        assert_eq!(sum("5.0e3", "200").as_deref(), Some("5200"));
        assert_eq!(sum("3", "-3").as_deref(), Some("0"));
        assert_eq!(sum("1", "0").as_deref(), Some("1"));
        assert_eq!(sum("1e40", "1").as_deref(), Some(&*format!("{:.0}", 1e40)));
        assert_eq!(sum("1e308", "1e308"), None);
        assert_eq!(sum("inf", "1"), None);
    }

    proptest::proptest! {
        #[test]
        fn printed_numbers_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            if !value.is_nan() {
                proptest::prop_assert_eq!(parse_f64(text(value).as_bytes()), Some(value));
            }
        }

        #[test]
        fn printed_integers_read_back(value: i64) {
            proptest::prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
    }
}
