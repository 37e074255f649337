//! Exact decimal numbers: an amount times its factors, without an error, and rounded once.

use crate::Points;
use crate::limits::NUMBER_SCALE_MAX;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;

/// Digits that a 64-bit number with a point keeps, whatever they are.
const F64_DIGITS: u32 = 15;
/// Most decimal digits that every number of 128 bits with a sign can hold.
const DIGITS_MAX: u32 = 38;

/// A decimal number: `mantissa × 10^-scale`. A mantissa does not end in zeros, so that equal
/// numbers are equal in both parts; zero has the scale 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    mantissa: i128,
    scale: i32,
}

/// What becomes of the part of a point that an exact product leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// To the nearest, a half away from zero.
    #[default]
    HalfUp,
    /// To the nearest, a half to the even neighbour.
    HalfEven,
    /// Towards zero.
    Down,
    /// Away from zero.
    Up,
}

impl Rounding {
    pub const ALL: [Self; 4] = [Self::HalfUp, Self::HalfEven, Self::Down, Self::Up];

    pub const fn name(self) -> &'static str {
        match self {
            Self::HalfUp => "half_up",
            Self::HalfEven => "half_even",
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

impl Number {
    pub const ZERO: Self = Self { mantissa: 0, scale: 0 };
    pub const ONE: Self = Self { mantissa: 1, scale: 0 };

    /// `mantissa × 10^-scale`. `None` where the scale is out of bounds.
    pub fn new(mantissa: i128, scale: i32) -> Option<Self> {
        if mantissa == 0 {
            return Some(Self::ZERO);
        }

        let mut number = Self { mantissa, scale };
        // Most numbers end in no zero, or in few.
        while number.mantissa % 10 == 0 {
            number.mantissa /= 10;
            number.scale = number.scale.checked_sub(1)?;
        }

        // Every number that is written out passes here, so that no text gets long.
        let fits = number.scale.unsigned_abs() <= 4 * NUMBER_SCALE_MAX.unsigned_abs();
        (fits && number.digits() <= DIGITS_MAX).then_some(number)
    }

    pub fn whole(number: i64) -> Self {
        Self::new(i128::from(number), 0).expect("64 bits have fewer digits than the limit")
    }

    /// Points of a programme with this number of decimals.
    pub fn of_points(points: Points, decimals: u8) -> Self {
        Self::new(i128::from(points), i32::from(decimals)).expect("64 bits fit")
    }

    /// Reads `15`, `-0.5` or `5e-5`. `None` for anything else, and for a number with more digits
    /// or places than an exact product can take.
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };

        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let has_point = unsigned.contains('.');
        if whole.is_empty() || has_point && fraction.is_empty() {
            return None;
        }
        if !is_number(whole) || !is_number(fraction) {
            return None;
        }

        let digits = format!("{whole}{fraction}");
        let kept = digits.trim_end_matches('0');
        let cut = i32::try_from(digits.len() - kept.len()).ok()?;
        let kept = kept.trim_start_matches('0');
        if kept.is_empty() {
            return Some(Self::ZERO);
        }

        let magnitude = kept.parse::<i128>().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(cut)?.checked_sub(exponent)?;
        if scale.unsigned_abs() > NUMBER_SCALE_MAX.unsigned_abs() {
            return None;
        }
        let is_negative = mantissa.len() > unsigned.len();
        Self::new(if is_negative { -magnitude } else { magnitude }, scale)
    }

    pub fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The significant digits; 1 for zero.
    pub fn digits(self) -> u32 {
        self.mantissa.unsigned_abs().checked_ilog10().unwrap_or(0) + 1
    }

    pub(crate) fn mantissa(self) -> i128 {
        self.mantissa
    }

    pub(crate) fn scale(self) -> i32 {
        self.scale
    }

    /// The exact product; `None` where it has too many digits.
    pub fn times(self, other: Self) -> Option<Self> {
        let mantissa = self.mantissa.checked_mul(other.mantissa)?;
        Self::new(mantissa, self.scale.checked_add(other.scale)?)
    }

    /// The exact sum; `None` where it has too many digits.
    pub fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let sum = self.mantissa_at(scale)?.checked_add(other.mantissa_at(scale)?)?;
        Self::new(sum, scale)
    }

    /// The exact difference; `None` where it has too many digits.
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self { mantissa: -other.mantissa, ..other })
    }

    /// The mantissa that the number has with a larger scale.
    fn mantissa_at(self, scale: i32) -> Option<i128> {
        let places = u32::try_from(scale - self.scale).ok()?;
        if self.mantissa == 0 {
            return Some(0);
        }
        self.mantissa.checked_mul(10_i128.checked_pow(places)?)
    }

    /// The number in units of `10^-decimals`, rounded. `None` where it does not fit 64 bits.
    pub fn round(self, decimals: u8, rounding: Rounding) -> Option<Points> {
        let dropped = self.scale - i32::from(decimals);
        if dropped <= 0 {
            let whole = self.mantissa_at(i32::from(decimals))?;
            return i64::try_from(whole).ok();
        }

        let Some(unit) = u32::try_from(dropped).ok().and_then(|places| 10_i128.checked_pow(places))
        else {
            // A number of 38 digits or fewer behind 39 places or more is less than a half.
            return Some(if rounding == Rounding::Up { self.mantissa.signum() as i64 } else { 0 });
        };
        let quotient = self.mantissa / unit;
        let rest = (self.mantissa % unit).abs();

        // Compared without doubling, which might not fit.
        let half = rest.cmp(&(unit - rest));
        let is_away = match rounding {
            Rounding::Down => false,
            Rounding::Up => rest > 0,
            Rounding::HalfUp => half != Ordering::Less,
            Rounding::HalfEven => {
                half == Ordering::Greater || half == Ordering::Equal && quotient % 2 != 0
            }
        };

        let away = if is_away { self.mantissa.signum() } else { 0 };
        i64::try_from(quotient + away).ok()
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs.is_ne() || self.mantissa == 0 {
            return signs;
        }

        // The place of the first digit decides; of two alike, the digits, at equal length.
        let place = |number: &Self| number.digits() as i32 - number.scale;
        let padded = |number: &Self| {
            number.mantissa.unsigned_abs() * 10_u128.pow(DIGITS_MAX - number.digits())
        };
        let magnitudes =
            place(self).cmp(&place(other)).then_with(|| padded(self).cmp(&padded(other)));
        if self.mantissa < 0 { magnitudes.reverse() } else { magnitudes }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.mantissa.unsigned_abs().to_string();
        if self.mantissa < 0 {
            out.write_str("-")?;
        }

        let Ok(places) = usize::try_from(self.scale) else {
            let zeros = "0".repeat(self.scale.unsigned_abs() as usize);
            return write!(out, "{digits}{zeros}");
        };
        if places == 0 {
            return out.write_str(&digits);
        }
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        write!(out, "{whole}.{fraction}")
    }
}

/// A JSON number where every reader gets the same one, otherwise a text.
impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        if let Ok(whole) = text.parse::<i64>() {
            return serializer.serialize_i64(whole);
        }
        match text.parse::<f64>() {
            Ok(number) if self.digits() <= F64_DIGITS => serializer.serialize_f64(number),
            _ => serializer.serialize_str(&text),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number::whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Number::new(i128::from(number), 0).ok_or_else(|| E::custom("the number is too large"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        // The shortest text that leads back is the one that was written, up to 15 digits.
        let parsed = Number::parse(&number.to_string());
        match parsed {
            Some(found) if found.digits() <= F64_DIGITS => Ok(found),
            _ => Err(E::custom(format!(
                "{number} may not be the number that was written: use at most {F64_DIGITS} digits, \
                 or a text"
            ))),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        Number::parse(text).ok_or_else(|| E::custom(format!("`{text}` is no number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn numbers_are_read_and_written() {
        for (text, written) in [
            ("15", "15"),
            ("15.00", "15"),
            ("-0.50", "-0.5"),
            ("0.00005", "0.00005"),
            ("5e-5", "0.00005"),
            ("1.5E3", "1500"),
            ("150000", "150000"),
            ("-0", "0"),
            ("0.000", "0"),
            ("007", "7"),
        ] {
            assert_eq!(number(text).to_string(), written, "{text}");
        }
        for wrong in ["", "-", ".5", "5.", "1e", "+1", "1_000", "NaN", "1e99", "0x1", "--1"] {
            assert_eq!(Number::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Number::parse(&"9".repeat(39)), None);
    }

    /// The smallest scale has no positive counterpart: as text it would have 2^31 zeros.
    #[test]
    fn no_number_has_an_endless_text() {
        for wrong in ["-10e2147483647", "1e2147483647", "1e-2147483648", "0.1e-2147483647"] {
            assert_eq!(Number::parse(wrong), None, "{wrong}");
            assert!(serde_json::from_str::<Number>(&format!("\"{wrong}\"")).is_err());
        }
        for scale in [i32::MIN, i32::MIN + 1, -121, 121, i32::MAX] {
            assert_eq!(Number::new(1, scale), None, "{scale}");
        }
        assert_eq!(Number::new(10, i32::MIN), None);
        assert_eq!(Number::new(1, -120).unwrap().to_string().len(), 121);
    }

    #[test]
    fn a_product_that_floats_get_wrong_is_exact() {
        let product = number("50.00").times(number("1.15")).unwrap();
        assert_eq!(product.round(0, Rounding::HalfUp), Some(58));
        assert_eq!(product, number("57.5"));
    }

    #[test]
    fn halves_go_where_the_mode_says() {
        let rounded = |text: &str| Rounding::ALL.map(|mode| number(text).round(0, mode).unwrap());
        assert_eq!(rounded("22.5"), [23, 22, 22, 23]);
        assert_eq!(rounded("23.5"), [24, 24, 23, 24]);
        assert_eq!(rounded("-22.5"), [-23, -22, -22, -23]);
        assert_eq!(rounded("22.49"), [22, 22, 22, 23]);
        assert_eq!(rounded("1e-30"), [0, 0, 0, 1]);
        assert_eq!(number("22.55").round(1, Rounding::HalfEven), Some(226));
        assert_eq!(number("1e18").round(4, Rounding::Down), None);
    }

    #[test]
    fn json_keeps_numbers_exactly() {
        for text in ["2", "0.00005", "2.25", "-7.5", "123456789012345678.5"] {
            let json = serde_json::to_string(&number(text)).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&json).unwrap(), number(text), "{json}");
        }
        assert!(serde_json::from_str::<Number>("0.12345678901234567").is_err());
        assert!(serde_json::from_str::<Number>("true").is_err());
    }

    /// The digits of a number, written out to 40 places in whole units of 10^-40 (as text, so that
    /// nothing is shared with the arithmetic that is tested).
    fn long_division(mantissa: i128, places: u32) -> (i128, std::cmp::Ordering, bool) {
        let digits = format!("{:0>80}", mantissa.unsigned_abs());
        let (whole, rest) = digits.split_at(80 - places as usize);
        let whole = whole.parse::<i128>().unwrap();
        let half = match rest.as_bytes().first() {
            None | Some(b'0'..=b'4') => Ordering::Less,
            Some(b'5') if rest[1..].bytes().all(|digit| digit == b'0') => Ordering::Equal,
            _ => Ordering::Greater,
        };
        (whole, half, rest.bytes().any(|digit| digit != b'0'))
    }

    proptest! {
        /// Rounding agrees with digits on paper.
        #[test]
        fn rounding_agrees_with_paper(
            mantissa in -999_999_999_999_999_999_i128..1_000_000_000_000_000_000,
            scale in 0_i32..30, decimals in 0_u8..=4,
        ) {
            let number = Number::new(mantissa, scale).unwrap();
            let places = (scale - i32::from(decimals)).max(0) as u32;
            let grown = mantissa * 10_i128.pow((i32::from(decimals) - scale).max(0) as u32);
            let (whole, half, any) = long_division(grown, places);
            for mode in Rounding::ALL {
                let away = match mode {
                    Rounding::HalfUp => half != Ordering::Less,
                    Rounding::HalfEven => half == Ordering::Greater
                        || half == Ordering::Equal && whole % 2 == 1,
                    Rounding::Down => false,
                    Rounding::Up => any,
                };
                let expected = (whole + i128::from(away)) * mantissa.signum();
                prop_assert_eq!(number.round(decimals, mode), i64::try_from(expected).ok());
            }
        }

        #[test]
        fn texts_lead_back(mantissa in any::<i64>(), scale in -20_i32..20) {
            let number = Number::new(i128::from(mantissa), scale).unwrap();
            prop_assert_eq!(Number::parse(&number.to_string()), Some(number));
        }

        #[test]
        fn order_and_sums_agree(
            a in -10_000_i128..10_000, b in -10_000_i128..10_000, at in -5_i32..5, bt in -5_i32..5,
        ) {
            let left = Number::new(a, at).unwrap();
            let right = Number::new(b, bt).unwrap();
            let difference = left.minus(right).unwrap();
            prop_assert_eq!(left.cmp(&right), difference.cmp(&Number::ZERO));
            prop_assert_eq!(difference.plus(right), Some(left));
        }
    }
}
