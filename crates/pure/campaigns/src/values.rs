//! The values of an event that rules compare. Numbers are read once, and not for each of the many
//! rules that compare them.

use crate::rule::Test;
use raingauge_core::field::Scalar;
use rust_decimal::Decimal;
use std::ops::Index;

/// Values by slot.
#[derive(Clone, Debug, Default)]
pub struct Values<'e> {
    scalars: Vec<Option<Scalar<'e>>>,
    /// The exact numbers of those scalars that are one.
    numbers: Vec<Option<Decimal>>,
}

impl<'e> Values<'e> {
    pub fn new(scalars: Vec<Option<Scalar<'e>>>) -> Self {
        let numbers = scalars.iter().map(|scalar| scalar.as_ref()?.as_decimal()).collect();
        Self { scalars, numbers }
    }

    /// The exact number in a slot; `None` where there is no number, or one of too many digits.
    pub fn number(&self, slot: usize) -> Option<Decimal> {
        self.numbers[slot]
    }

    /// Whether the value in a slot passes; edges pass no value.
    pub fn pass(&self, slot: usize, test: &Test) -> bool {
        let Test::Value(predicate) = test else { return false };
        predicate.holds_with(self.scalars[slot].as_ref(), |_| self.numbers[slot])
    }
}

impl<'e> Index<usize> for Values<'e> {
    type Output = Option<Scalar<'e>>;

    fn index(&self, slot: usize) -> &Self::Output {
        &self.scalars[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::filter::Predicate;
    use serde_json::json;

    #[test]
    fn a_value_passes_as_its_scalar_does() {
        let scalars = ["1.50", "-0", "1e2", "123456789012345678901234567890123"]
            .map(|text| Some(Scalar::Number(text.into())))
            .into_iter()
            .chain([Some(Scalar::Text("1.5".into())), Some(Scalar::Bool(true)), None]);
        let values = Values::new(scalars.collect());
        assert_eq!(values.number(0), Some(Decimal::new(15, 1)));
        assert_eq!((values.number(3), values.number(4)), (None, None));

        for (operator, rhs) in [
            ("eq", json!(1.5)),
            ("ne", json!(1.5)),
            ("gte", json!(100)),
            ("lt", json!(0.5)),
            ("in", json!([0, "1.5", true])),
            ("prefix", json!("1")),
            ("exists", json!(true)),
        ] {
            let test = Test::Value(Predicate::parse(operator, Some(&rhs)).unwrap());
            for slot in 0..7 {
                let passes = values.pass(slot, &test);
                assert_eq!(passes, test.holds(values[slot].as_ref()), "{operator} {rhs} {slot}");
            }
        }
        assert!(!values.pass(0, &Test::Reaches(1)));
    }
}
