//! What an action costs its budget: a whole number of the budget's unit, or a share of a field of
//! the event, in exact decimals.

use raingauge_core::field::parse_decimal;
use raingauge_core::limits::VALUE_SCALE_MAX;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Largest percentage, and its decimal places.
const PERCENT_MAX: Decimal = Decimal::from_parts(10_000, 0, 0, false, 0);
const PERCENT_PLACES_MAX: u32 = 4;

/// The `amount` of a cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    Fixed(i64),
    Share(Share),
}

/// A share of a field, times a scale that turns it into the unit of the budget: 5 % of 12.90
/// dollars with scale 100 are 64 cents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// A field of the event, such as `var.total`.
    pub field: String,
    /// All of it, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<Number>,
    #[serde(default = "one")]
    pub scale: i64,
    /// Most that an action costs, in the unit of the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    #[serde(default)]
    pub round: Round,
}

/// What happens to a part of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Round {
    #[default]
    Down,
}

fn one() -> i64 {
    1
}

/// Why an action has no cost, and so cannot be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the field of the cost is missing, or no number of at most 28 digits")]
    Missing,
    #[error("the cost is negative")]
    Negative,
    #[error("the cost exceeds 64 bits")]
    TooLarge,
}

impl Amount {
    /// The problems that keep this amount from being used.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        match self {
            Self::Fixed(amount) if *amount < 0 => {
                problems.push("amount must not be negative".into())
            }
            Self::Fixed(_) => {}
            Self::Share(share) => {
                if share.percent().is_none() {
                    problems.push(format!(
                        "amount.percent must lie between 0 and {PERCENT_MAX}, with at most \
                         {PERCENT_PLACES_MAX} places"
                    ));
                }

                if !(1..=VALUE_SCALE_MAX).contains(&share.scale) {
                    problems.push(format!("amount.scale must lie between 1 and {VALUE_SCALE_MAX}"));
                }
                if share.max.is_some_and(|max| max < 0) {
                    problems.push("amount.max must not be negative".into());
                }
            }
        }
        problems
    }

    /// The field that the cost follows from.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Fixed(_) => None,
            Self::Share(share) => Some(&share.field),
        }
    }

    /// The cost, given the number in the field.
    pub fn cost(&self, field: Option<Decimal>) -> Result<i64, Error> {
        match self {
            Self::Fixed(amount) => Ok(*amount),
            Self::Share(share) => share.cost(field.ok_or(Error::Missing)?),
        }
    }
}

impl Share {
    /// The percentage; `None` where it is out of bounds.
    fn percent(&self) -> Option<Decimal> {
        let percent = match &self.percent {
            Some(percent) => parse_decimal(&percent.to_string())?.normalize(),
            None => Decimal::ONE_HUNDRED,
        };
        let is_bounded = (Decimal::ZERO..=PERCENT_MAX).contains(&percent);
        (is_bounded && percent.scale() <= PERCENT_PLACES_MAX).then_some(percent)
    }

    fn cost(&self, field: Decimal) -> Result<i64, Error> {
        let field = field.normalize();
        if field.is_sign_negative() && !field.is_zero() {
            return Err(Error::Negative);
        }

        let percent = self.percent().ok_or(Error::TooLarge)?;
        let part = u64::try_from(percent.mantissa()).ok();
        let scale = u64::try_from(self.scale).ok();
        let factor = part.zip(scale).and_then(|(part, scale)| part.checked_mul(scale));
        let places = field.scale() + percent.scale() + 2;

        let factor = factor.ok_or(Error::TooLarge)?;
        let cost = product_down(field.mantissa().unsigned_abs(), factor, places);
        match self.max {
            Some(max) => Ok(cost.map_or(max, |cost| cost.min(max))),
            None => cost.ok_or(Error::TooLarge),
        }
    }
}

/// `digits` times `factor` by ten to the power of `places`, rounded down. `None` if it exceeds 64
/// bits.
///
/// The digits have 96 bits, so the product may have more than 128. Decimals would round it to 28
/// digits, at times up.
fn product_down(digits: u128, factor: u64, places: u32) -> Option<i64> {
    let low = u128::from(digits as u64) * u128::from(factor);
    let high = (digits >> 64) * u128::from(factor) + (low >> 64);
    let mut limbs = [(high >> 64) as u64, high as u64, low as u64];

    for _ in 0..places {
        let mut rest = 0;
        for limb in &mut limbs {
            let value = rest << 64 | u128::from(*limb);
            *limb = (value / 10) as u64;
            rest = value % 10;
        }
    }
    let [0, 0, cost] = limbs else { return None };
    i64::try_from(cost).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn amount(json: serde_json::Value) -> Amount {
        serde_json::from_value(json).unwrap()
    }

    fn cost(amount: &Amount, field: &str) -> Result<i64, Error> {
        amount.cost(parse_decimal(field))
    }

    #[test]
    fn a_cost_is_a_number_or_a_share_of_a_field() {
        assert_eq!(amount(json!(500)).cost(None), Ok(500));
        assert_eq!(amount(json!(500)).field(), None);

        let share = amount(json!({"field": "var.total", "percent": 5, "scale": 100, "max": 1000}));
        assert_eq!(share.field(), Some("var.total"));
        assert_eq!(cost(&share, "12.90"), Ok(64), "64.5 cents");
        assert_eq!(cost(&share, "0.1999999999999999999999999999"), Ok(0));
        assert_eq!(cost(&share, "0.2"), Ok(1));
        assert_eq!(cost(&share, "200.01"), Ok(1_000), "the most that it costs");
        assert_eq!(cost(&share, "9999999999999999999999999999"), Ok(1_000));
        assert_eq!(cost(&share, "-0.01"), Err(Error::Negative));
        assert_eq!(cost(&share, "-0.0"), Ok(0));
        assert_eq!(share.cost(None), Err(Error::Missing));

        let whole = amount(json!({"field": "var.points"}));
        assert_eq!(cost(&whole, "9223372036854775807.9"), Ok(i64::MAX));
        assert_eq!(cost(&whole, "9223372036854775808"), Err(Error::TooLarge));
        assert_eq!(cost(&whole, "9999999999999999999999999999"), Err(Error::TooLarge));
        let half = amount(json!({"field": "var.points", "percent": 0.5, "round": "down"}));
        assert_eq!(cost(&half, "399"), Ok(1));
    }

    #[test]
    fn an_amount_says_what_is_wrong_with_it() {
        let fine = [
            json!(0),
            json!({"field": "a", "percent": 10_000, "scale": 1_000_000_000}),
            json!({"field": "a", "percent": 12.3456, "max": 0}),
        ];
        for json in fine {
            assert_eq!(amount(json.clone()).problems(), Vec::<String>::new(), "{json}");
        }

        let wrong = [
            json!(-1),
            json!({"field": "a", "percent": -1}),
            json!({"field": "a", "percent": 10_000.1}),
            json!({"field": "a", "percent": 0.00001}),
            json!({"field": "a", "scale": 0}),
            json!({"field": "a", "scale": 1_000_000_001}),
            json!({"field": "a", "max": -1}),
        ];
        for json in wrong {
            assert_eq!(amount(json.clone()).problems().len(), 1, "{json}");
        }

        for json in [json!(1.5), json!({}), json!({"field": "a", "round": "up"})] {
            assert!(serde_json::from_value::<Amount>(json.clone()).is_err(), "{json}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Where 128 bits hold the product, it is theirs.
        #[test]
        fn costs_are_exact(
            mantissa in 0..1_i128 << 60, places in 0..12_u32, percent in 0..10_000_u32,
            scale in 1..1_000_000_i64,
        ) {
            let share = amount(json!({"field": "a", "percent": percent, "scale": scale}));
            let field = Decimal::from_i128_with_scale(mantissa, places);
            let unit = 10_i128.pow(places + 2);
            let exact = mantissa * i128::from(percent) * i128::from(scale) / unit;
            prop_assert_eq!(share.cost(Some(field)).ok(), i64::try_from(exact).ok());
        }
    }
}
