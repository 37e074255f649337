//! What one event adds to its buckets.

use crate::field::{Field, Scalar};
use crate::limits::VALUE_SCALE_MAX;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

/// The `value` of a counter configuration: a number, or a field and the scale that makes it whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Fixed(i64),
    Field(FieldValue),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldValue {
    pub field: String,
    #[serde(default = "one")]
    pub scale: i64,
}

fn one() -> i64 {
    1
}

impl Default for Value {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl Value {
    /// The problems that keep this value from being used.
    pub fn problems(&self) -> Vec<String> {
        let (field, scale) = match self {
            Self::Fixed(i64::MIN) => {
                return vec![format!("value must be greater than {}", i64::MIN)];
            }
            Self::Fixed(_) => return Vec::new(),
            Self::Field(FieldValue { field, scale }) => (field, scale),
        };

        let mut problems = Vec::new();
        if Field::of_path(field).is_none() {
            problems.push(format!("value.field `{field}` must be a path such as data.amount"));
        }

        if !(1..=VALUE_SCALE_MAX).contains(scale) {
            problems.push(format!("value.scale must lie between 1 and {VALUE_SCALE_MAX}"));
        }
        problems
    }
}

/// The whole number that a field's decimal times `scale` is. `None` when there is no number, it is
/// not whole after scaling, or it does not fit 63 bits and a sign.
pub fn scaled(scalar: Option<&Scalar<'_>>, scale: i64) -> Option<i64> {
    let decimal = scalar?.as_decimal()?.checked_mul(Decimal::from(scale))?;
    let whole = decimal.normalize();
    if whole.scale() != 0 {
        return None;
    }
    // The smallest 64-bit number is kept back: tiles mark an overflowed cell with it.
    whole.to_i64().filter(|value| *value != i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, scale: i64) -> Option<i64> {
        scaled(Some(&Scalar::Number(text.into())), scale)
    }

    #[test]
    fn decimals_are_scaled_exactly_or_not_at_all() {
        assert_eq!(of("12.36", 100), Some(1_236));
        assert_eq!(of("-12.3600", 100), Some(-1_236));
        assert_eq!(of("0.1", 10), Some(1));
        assert_eq!(of("1e2", 1), Some(100));
        assert_eq!(of("12.365", 100), None);
        assert_eq!(of("9223372036854775807", 1), Some(i64::MAX));
        assert_eq!(of("9223372036854775808", 1), None);
        assert_eq!(of("1e400", 1), None);
        assert_eq!(scaled(Some(&Scalar::Text("5".into())), 1), None);
        assert_eq!(scaled(None, 1), None);
        assert_eq!(Value::Fixed(i64::MIN).problems().len(), 1);
    }
}
