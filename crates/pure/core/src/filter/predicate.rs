//! A condition on one value, which an event's field or anything else may hold.

use crate::field::{Scalar, parse_decimal};
use crate::limits::FILTER_IN_VALUES_MAX;
use rust_decimal::Decimal;
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::HashSet;

/// A condition on a value that may be absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    Exists(bool),
    Prefix(Box<str>),
    In(OneOf),
    Eq(Constant),
    Ne(Constant),
    Order(Comparison, Constant),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Gt,
    Gte,
    Lt,
    Lte,
}

/// The right-hand side of an `in`, by kind: the scalar is read once, however many alternatives
/// there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneOf {
    pub texts: HashSet<Box<str>>,
    pub numbers: HashSet<Decimal>,
    pub bools: [bool; 2],
}

/// The right-hand side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    Text(Box<str>),
    Number(Decimal),
    Bool(bool),
}

impl Predicate {
    /// Reads an operator and its right-hand side. A problem continues the path of the condition:
    /// `.rhs of …`.
    pub fn parse(operator: &str, rhs: Option<&Json>) -> Result<Self, String> {
        let shape: fn(Constant) -> Self = match operator {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "gt" => |constant| Self::Order(Comparison::Gt, constant),
            "gte" => |constant| Self::Order(Comparison::Gte, constant),
            "lt" => |constant| Self::Order(Comparison::Lt, constant),
            "lte" => |constant| Self::Order(Comparison::Lte, constant),
            "exists" => return exists(rhs),
            "prefix" => return prefix(rhs),
            "in" => return OneOf::parse(rhs).map(Self::In),
            _ => {
                return Err(format!(
                    ".operator `{operator}` is unknown: use and, or, not, eq, ne, gt, gte, lt, lte, in, exists or prefix"
                ));
            }
        };

        let constant = rhs.and_then(Constant::of_json).ok_or_else(|| {
            ".rhs must be a text, a number of at most 28 digits, true or false".to_owned()
        })?;
        Ok(shape(constant))
    }

    /// Whether a value passes.
    pub fn holds(&self, scalar: Option<&Scalar<'_>>) -> bool {
        self.holds_with(scalar, |scalar| scalar.as_decimal())
    }

    /// Whether a value passes, for callers that know its [number](Scalar::as_decimal) and compare
    /// it many times.
    pub fn holds_with(
        &self,
        scalar: Option<&Scalar<'_>>,
        number: impl Fn(&Scalar<'_>) -> Option<Decimal>,
    ) -> bool {
        match self {
            Self::Exists(expected) => scalar.is_some() == *expected,
            Self::Prefix(prefix) => {
                matches!(scalar, Some(Scalar::Text(text)) if text.starts_with(&**prefix))
            }
            Self::In(one_of) => scalar.is_some_and(|scalar| one_of.holds(scalar, number)),
            Self::Eq(constant) => constant.equals(scalar, number),
            Self::Ne(constant) => !constant.equals(scalar, number),
            Self::Order(comparison, constant) => scalar
                .and_then(|scalar| constant.order_of(scalar, number))
                .is_some_and(|order| comparison.holds(order)),
        }
    }
}

fn exists(rhs: Option<&Json>) -> Result<Predicate, String> {
    match rhs {
        None | Some(Json::Bool(true)) => Ok(Predicate::Exists(true)),
        Some(Json::Bool(false)) => Ok(Predicate::Exists(false)),
        _ => Err(".rhs of `exists` must be true, false or absent".to_owned()),
    }
}

fn prefix(rhs: Option<&Json>) -> Result<Predicate, String> {
    rhs.and_then(Json::as_str)
        .map(|prefix| Predicate::Prefix(prefix.into()))
        .ok_or_else(|| ".rhs of `prefix` must be a text".to_owned())
}

impl Comparison {
    /// Whether a value passes that stands so to the constant.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Gt => order.is_gt(),
            Self::Gte => order.is_ge(),
            Self::Lt => order.is_lt(),
            Self::Lte => order.is_le(),
        }
    }
}

impl OneOf {
    fn parse(rhs: Option<&Json>) -> Result<Self, String> {
        let values =
            rhs.and_then(Json::as_array).filter(|values| values.len() <= FILTER_IN_VALUES_MAX);
        let constants = values
            .and_then(|values| values.iter().map(Constant::of_json).collect::<Option<Vec<_>>>());

        constants.map(Self::new).ok_or_else(|| {
            format!(
                ".rhs of `in` must be a list of at most {FILTER_IN_VALUES_MAX} texts, numbers, true or false"
            )
        })
    }

    fn new(constants: Vec<Constant>) -> Self {
        let mut one_of = Self::default();
        for constant in constants {
            match constant {
                Constant::Text(text) => {
                    one_of.texts.insert(text);
                }
                Constant::Number(number) => {
                    one_of.numbers.insert(number);
                }
                Constant::Bool(flag) => one_of.bools[usize::from(flag)] = true,
            }
        }

        one_of
    }

    fn holds(&self, scalar: &Scalar<'_>, number: impl Fn(&Scalar<'_>) -> Option<Decimal>) -> bool {
        match scalar {
            Scalar::Text(text) => self.texts.contains(&**text),
            Scalar::Number(_) if self.numbers.is_empty() => false,
            Scalar::Number(_) => {
                number(scalar).is_some_and(|number| self.numbers.contains(&number))
            }
            Scalar::Bool(flag) => self.bools[usize::from(*flag)],
        }
    }
}

impl Constant {
    fn of_json(json: &Json) -> Option<Self> {
        match json {
            Json::String(text) => Some(Self::Text(text.as_str().into())),
            Json::Number(number) => parse_decimal(&number.to_string()).map(Self::Number),
            Json::Bool(flag) => Some(Self::Bool(*flag)),
            _ => None,
        }
    }

    /// How `scalar` stands to this constant; `None` when they are of different kinds.
    fn order_of(
        &self,
        scalar: &Scalar<'_>,
        number: impl Fn(&Scalar<'_>) -> Option<Decimal>,
    ) -> Option<Ordering> {
        match (self, scalar) {
            (Self::Text(constant), Scalar::Text(text)) => Some((**text).cmp(constant)),
            (Self::Number(constant), Scalar::Number(_)) => Some(number(scalar)?.cmp(constant)),
            (Self::Bool(constant), Scalar::Bool(flag)) => Some(flag.cmp(constant)),
            _ => None,
        }
    }

    fn equals(
        &self,
        scalar: Option<&Scalar<'_>>,
        number: impl Fn(&Scalar<'_>) -> Option<Decimal>,
    ) -> bool {
        scalar.and_then(|scalar| self.order_of(scalar, number)) == Some(Ordering::Equal)
    }
}
