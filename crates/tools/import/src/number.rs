//! Numbers as text: their digits are passed on unchanged, so that no amount is rounded.

/// Maximum number of digits of a number that the service can add up.
const DIGITS_MAX: usize = 28;

/// The components of a number without an exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain<'a> {
    pub negative: bool,
    pub integer: &'a str,
    pub fraction: Option<&'a str>,
}

impl<'a> Plain<'a> {
    /// Parses `-12`, `007` or `12.50`; no plus sign, no exponent, and digits on both sides of a
    /// decimal point.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'0'..=b'9' => (false, text),
            _ => return None,
        };

        let (integer, fraction) = match memchr::memchr(b'.', digits.as_bytes()) {
            Some(point) => (&digits[..point], Some(&digits[point + 1..])),
            None => (digits, None),
        };
        (all_digits(integer) && fraction.is_none_or(all_digits)).then_some(Self {
            negative,
            integer,
            fraction,
        })
    }

    /// Whether the number is valid JSON, that is, has no leading zeros.
    pub(crate) fn is_json(&self) -> bool {
        self.integer.len() == 1 || !self.integer.starts_with('0')
    }

    /// The integer part without leading zeros.
    pub(crate) fn integer_trimmed(&self) -> &'a str {
        let trimmed = self.integer.trim_start_matches('0');
        if trimmed.is_empty() { "0" } else { trimmed }
    }

    /// All digits as one integer, and the number of decimal places.
    fn mantissa(&self) -> Option<(i128, usize)> {
        let fraction = self.fraction.unwrap_or_default();
        let mut mantissa: i128 = 0;
        for digit in self.integer.bytes().chain(fraction.bytes()) {
            mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        Some((if self.negative { -mantissa } else { mantissa }, fraction.len()))
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An exact product of decimals, which keeps all decimal places: 6 times 2.50 is 15.00.
pub(crate) struct Product {
    mantissa: i128,
    scale: usize,
}

impl Product {
    pub(crate) fn one() -> Self {
        Self { mantissa: 1, scale: 0 }
    }

    /// Multiplies by one more factor; `None` if the product has more than 28 digits.
    pub(crate) fn times(self, factor: Plain<'_>) -> Option<Self> {
        let (mantissa, scale) = factor.mantissa()?;
        let product =
            Self { mantissa: self.mantissa.checked_mul(mantissa)?, scale: self.scale + scale };
        let fits = product.mantissa.unsigned_abs() < 10u128.pow(DIGITS_MAX as u32)
            && product.scale <= DIGITS_MAX;
        fits.then_some(product)
    }

    pub(crate) fn write(&self, out: &mut String) {
        if self.mantissa < 0 {
            out.push('-');
        }
        let digits = format!("{:0>width$}", self.mantissa.unsigned_abs(), width = self.scale + 1);
        let (integer, fraction) = digits.split_at(digits.len() - self.scale);
        out.push_str(integer);
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn product(factors: &[&str]) -> Option<String> {
        let product = factors
            .iter()
            .try_fold(Product::one(), |product, text| product.times(Plain::of(text)?))?;
        let mut text = String::new();
        product.write(&mut text);
        Some(text)
    }

    #[test]
    fn products_are_exact() {
        for (factors, expected) in [
            (&["6", "2.55"][..], "15.30"),
            (&["-1", "0.001"], "-0.001"),
            (&["0.1", "0.2"], "0.02"),
            (&["-0", "3.5"], "0.0"),
            (&["9999999999999", "-999999999999999"], "-9999999999998990000000000001"),
        ] {
            assert_eq!(product(factors).as_deref(), Some(expected), "{factors:?}");
        }
        assert_eq!(product(&["99999999999999", "999999999999999"]), None);
        assert_eq!(product(&["1", "1e3"]), None);
        assert_eq!(product(&[&"9".repeat(60)]), None);
    }

    #[test]
    fn what_is_a_plain_number() {
        for right in ["0", "-0", "7", "12.50", "-3.1", "007", "0.0"] {
            assert!(Plain::of(right).is_some(), "{right}");
        }
        for wrong in
            ["", "-", "+1", ".5", "5.", "1e3", "0x1", " 1", "1 ", "--1", "1.2.3", "½", "-é"]
        {
            assert_eq!(Plain::of(wrong), None, "{wrong}");
        }
        assert!(Plain::of("0.5").unwrap().is_json() && !Plain::of("00.5").unwrap().is_json());
    }

    proptest! {
        #[test]
        fn a_product_of_cents_is_what_whole_numbers_say(
            units in -1_000_000i64..1_000_000,
            cents in -10_000_000i64..10_000_000,
        ) {
            let sign = if cents < 0 { "-" } else { "" };
            let price = format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100);
            let text = product(&[&units.to_string(), &price]).unwrap();
            prop_assert!(Plain::of(&text).unwrap().is_json());
            prop_assert_eq!(text.replace('.', "").parse::<i64>().unwrap(), units * cents);
        }
    }
}
