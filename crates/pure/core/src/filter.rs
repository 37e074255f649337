//! Filters: conditions on an event's fields, joined by `and`, `or` and `not`.
//!
//! The JSON form is the one of the rules in the published description of Trident:
//! `{"operator": "gte", "lhs": "data.millimetres", "rhs": 1}`.
//!
//! A comparison with a missing field, or between values of different kinds, does not hold; `ne` is
//! exactly the opposite of `eq`, and so holds there. Numbers are compared as exact decimals.

use crate::field::{Field, Scalar, parse_decimal};
use crate::limits::{FILTER_CONDITIONS_MAX, FILTER_DEPTH_MAX, FILTER_IN_VALUES_MAX};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value as Json};
use std::cmp::Ordering;
use std::collections::HashSet;

/// A filter as it is written in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub operator: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lhs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rhs: Option<Json>,
}

impl Condition {
    /// Problems with numbers that may not be what was written: JSON is read into numbers of 64
    /// bits, of which those with a point hold 15 digits for certain. Filters from before this was
    /// checked keep on counting as they did.
    pub fn inexact_numbers(&self) -> Vec<String> {
        let mut numbers = Vec::new();
        self.each_number(&mut |number| {
            if !is_exact(number) {
                numbers.push(format!(
                    "{number} may not be the number that was written: use at most {EXACT_DIGITS} digits, or a whole number of \
                     64 bits"
                ));
            }
        });
        numbers
    }

    fn each_number(&self, look: &mut dyn FnMut(&Number)) {
        match &self.rhs {
            Some(Json::Number(number)) => look(number),
            Some(Json::Array(values)) => {
                values.iter().filter_map(Json::as_number).for_each(&mut *look)
            }
            _ => {}
        }
        for condition in self.conditions.iter().flatten() {
            condition.each_number(look);
        }
    }
}

/// Decimal digits that a 64-bit number with a point keeps, whatever they are.
const EXACT_DIGITS: usize = 15;

fn is_exact(number: &Number) -> bool {
    let text = number.to_string();
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    !number.is_f64() || digits.trim_matches('0').len() <= EXACT_DIGITS
}

/// A filter that has been checked, whose fields are numbered into a list shared by many filters.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
    Exists(usize),
    Prefix(usize, Box<str>),
    In(usize, OneOf),
    Eq(usize, Constant),
    Ne(usize, Constant),
    Order(usize, Comparison, Constant),
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
    texts: HashSet<Box<str>>,
    numbers: HashSet<Decimal>,
    bools: [bool; 2],
}

impl OneOf {
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

    fn holds(&self, scalar: &Scalar<'_>) -> bool {
        match scalar {
            Scalar::Text(text) => self.texts.contains(&**text),
            Scalar::Number(_) if self.numbers.is_empty() => false,
            Scalar::Number(_) => {
                scalar.as_decimal().is_some_and(|number| self.numbers.contains(&number))
            }
            Scalar::Bool(flag) => self.bools[usize::from(*flag)],
        }
    }
}

/// The right-hand side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    Text(Box<str>),
    Number(Decimal),
    Bool(bool),
}

impl Filter {
    /// Checks a condition and numbers its fields by `field_index`. All problems are reported
    /// together.
    pub fn compile(
        condition: &Condition,
        field_index: &mut dyn FnMut(Field) -> usize,
    ) -> Result<Self, Vec<String>> {
        let mut compiler = Compiler { field_index, problems: Vec::new(), conditions: 0 };
        let filter = compiler.filter(condition, "filter", 1);
        if compiler.conditions > FILTER_CONDITIONS_MAX {
            compiler
                .problems
                .push(format!("filter has more than {FILTER_CONDITIONS_MAX} conditions"));
        }
        match filter {
            Some(filter) if compiler.problems.is_empty() => Ok(filter),
            _ => Err(compiler.problems),
        }
    }

    /// Whether the event with these fields passes.
    pub fn holds(&self, fields: &[Option<Scalar<'_>>]) -> bool {
        match self {
            Self::And(filters) => filters.iter().all(|filter| filter.holds(fields)),
            Self::Or(filters) => filters.iter().any(|filter| filter.holds(fields)),
            Self::Not(filter) => !filter.holds(fields),
            Self::Exists(field) => fields[*field].is_some(),
            Self::Prefix(field, prefix) => {
                matches!(&fields[*field], Some(Scalar::Text(text)) if text.starts_with(&**prefix))
            }
            Self::In(field, one_of) => {
                fields[*field].as_ref().is_some_and(|scalar| one_of.holds(scalar))
            }
            Self::Eq(field, constant) => constant.equals(&fields[*field]),
            Self::Ne(field, constant) => !constant.equals(&fields[*field]),
            Self::Order(field, comparison, constant) => fields[*field]
                .as_ref()
                .and_then(|scalar| constant.order_of(scalar))
                .is_some_and(|order| comparison.holds(order)),
        }
    }
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Gt => order.is_gt(),
            Self::Gte => order.is_ge(),
            Self::Lt => order.is_lt(),
            Self::Lte => order.is_le(),
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
    fn order_of(&self, scalar: &Scalar<'_>) -> Option<Ordering> {
        match (self, scalar) {
            (Self::Text(constant), Scalar::Text(text)) => Some((**text).cmp(constant)),
            (Self::Number(constant), Scalar::Number(_)) => Some(scalar.as_decimal()?.cmp(constant)),
            (Self::Bool(constant), Scalar::Bool(flag)) => Some(flag.cmp(constant)),
            _ => None,
        }
    }

    fn equals(&self, scalar: &Option<Scalar<'_>>) -> bool {
        scalar.as_ref().and_then(|scalar| self.order_of(scalar)) == Some(Ordering::Equal)
    }
}

struct Compiler<'a> {
    field_index: &'a mut dyn FnMut(Field) -> usize,
    problems: Vec<String>,
    conditions: usize,
}

impl Compiler<'_> {
    fn filter(&mut self, condition: &Condition, at: &str, depth: usize) -> Option<Filter> {
        self.conditions += 1;
        if depth > FILTER_DEPTH_MAX {
            self.problems.push(format!("{at} is nested deeper than {FILTER_DEPTH_MAX}"));
            return None;
        }
        match condition.operator.as_str() {
            "and" | "or" | "not" => self.group(condition, at, depth),
            _ => self.comparison(condition, at),
        }
    }

    fn group(&mut self, condition: &Condition, at: &str, depth: usize) -> Option<Filter> {
        let operator = condition.operator.as_str();
        if condition.lhs.is_some() || condition.rhs.is_some() {
            self.problems.push(format!("{at}: `{operator}` takes conditions, not lhs or rhs"));
        }

        let conditions = condition.conditions.as_deref().unwrap_or_default();
        let expected =
            if operator == "not" { conditions.len() == 1 } else { !conditions.is_empty() };
        if !expected {
            let count =
                if operator == "not" { "exactly one condition" } else { "at least one condition" };
            self.problems.push(format!("{at}: `{operator}` needs {count}"));
            return None;
        }

        let inner: Vec<Option<Filter>> = (0..)
            .zip(conditions)
            .map(|(index, inner): (usize, _)| {
                self.filter(inner, &format!("{at}.conditions[{index}]"), depth + 1)
            })
            .collect();

        let mut filters = inner.into_iter().collect::<Option<Vec<Filter>>>()?;
        Some(match operator {
            "and" => Filter::And(filters),
            "or" => Filter::Or(filters),
            _ => Filter::Not(Box::new(filters.remove(0))),
        })
    }

    fn comparison(&mut self, condition: &Condition, at: &str) -> Option<Filter> {
        if condition.conditions.is_some() {
            self.problems
                .push(format!("{at}: `{}` takes lhs and rhs, not conditions", condition.operator));
        }

        let field = condition.lhs.as_deref().and_then(Field::of_path);
        if field.is_none() {
            self.problems
                .push(format!("{at}.lhs must name a field, such as data.city, source or subject"));
        }

        let constant = condition.rhs.as_ref().and_then(Constant::of_json);
        let operator = condition.operator.as_str();
        let shape: fn(usize, Constant) -> Filter = match operator {
            "eq" => Filter::Eq,
            "ne" => Filter::Ne,
            "gt" => |field, constant| Filter::Order(field, Comparison::Gt, constant),
            "gte" => |field, constant| Filter::Order(field, Comparison::Gte, constant),
            "lt" => |field, constant| Filter::Order(field, Comparison::Lt, constant),
            "lte" => |field, constant| Filter::Order(field, Comparison::Lte, constant),
            "exists" => return self.exists(condition, field, at),
            "prefix" => return self.prefix(constant, field, at),
            "in" => return self.one_of(condition, field, at),
            _ => {
                self.problems.push(format!(
                    "{at}.operator `{operator}` is unknown: use and, or, not, eq, ne, gt, gte, lt, lte, in, exists or prefix"
                ));
                return None;
            }
        };

        let Some(constant) = constant else {
            self.problems.push(format!(
                "{at}.rhs must be a text, a number of at most 28 digits, true or false"
            ));
            return None;
        };
        Some(shape((self.field_index)(field?), constant))
    }

    fn exists(&mut self, condition: &Condition, field: Option<Field>, at: &str) -> Option<Filter> {
        let filter = Filter::Exists((self.field_index)(field?));
        match condition.rhs {
            None | Some(Json::Bool(true)) => Some(filter),
            Some(Json::Bool(false)) => Some(Filter::Not(Box::new(filter))),
            _ => {
                self.problems.push(format!("{at}.rhs of `exists` must be true, false or absent"));
                None
            }
        }
    }

    fn prefix(
        &mut self,
        constant: Option<Constant>,
        field: Option<Field>,
        at: &str,
    ) -> Option<Filter> {
        let Some(Constant::Text(prefix)) = constant else {
            self.problems.push(format!("{at}.rhs of `prefix` must be a text"));
            return None;
        };
        Some(Filter::Prefix((self.field_index)(field?), prefix))
    }

    fn one_of(&mut self, condition: &Condition, field: Option<Field>, at: &str) -> Option<Filter> {
        let values = condition
            .rhs
            .as_ref()
            .and_then(Json::as_array)
            .filter(|values| values.len() <= FILTER_IN_VALUES_MAX);

        let constants = values
            .and_then(|values| values.iter().map(Constant::of_json).collect::<Option<Vec<_>>>());
        let Some(constants) = constants else {
            self.problems.push(format!(
                "{at}.rhs of `in` must be a list of at most {FILTER_IN_VALUES_MAX} texts, numbers, true or false"
            ));
            return None;
        };
        Some(Filter::In((self.field_index)(field?), OneOf::new(constants)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use serde_json::json;

    fn holds(filter: Json, data: &str) -> bool {
        let condition: Condition = serde_json::from_value(filter).unwrap();
        let mut fields = Vec::new();
        let filter = Filter::compile(&condition, &mut |field| {
            fields.push(field);
            fields.len() - 1
        })
        .unwrap();
        let mut found = Vec::new();
        let event = Event::of_data("t", 0, data);
        crate::field::extract(&event, &fields, &mut found);
        filter.holds(&found)
    }

    fn compare(operator: &str, rhs: Json, data: &str) -> bool {
        holds(json!({"operator": operator, "lhs": "data.a", "rhs": rhs}), data)
    }

    #[test]
    fn numbers_compare_as_exact_decimals() {
        assert!(compare("gte", json!(4), r#"{"a": 4.00}"#));
        assert!(!compare("gt", json!(4), r#"{"a": 4.00}"#));
        assert!(compare("lt", json!(0), r#"{"a": -0.01}"#));
        assert!(compare("gt", json!(9007199254740992u64), r#"{"a": 9007199254740993}"#));
        assert!(compare("eq", json!(1), r#"{"a": 1.0}"#));
    }

    #[test]
    fn numbers_that_json_may_have_changed_are_recognized() {
        let told = |numbers: &str| {
            let filter = format!(
                r#"{{"operator": "not", "conditions": [{{"operator": "in", "lhs": "data.a", "rhs": {numbers}}}]}}"#
            );
            serde_json::from_str::<Condition>(&filter).unwrap().inexact_numbers().len()
        };
        assert_eq!(told("[0.1, 123456789012345, -0.00000123, 1e20, 9007199254740993, \"x\"]"), 0);
        assert_eq!(told("[1234567890.1234567, 12345678901234567890123, 1]"), 2);
    }

    #[test]
    fn kinds_do_not_mix_and_missing_fields_do_not_compare() {
        assert!(!compare("eq", json!(5), r#"{"a": "5"}"#));
        assert!(compare("ne", json!(5), r#"{"a": "5"}"#));
        assert!(!compare("lt", json!(5), r#"{}"#));
        assert!(compare("ne", json!(5), r#"{}"#));
        assert!(!compare("eq", json!("x"), r#"{"a": null}"#));
    }

    #[test]
    fn texts_lists_and_existence() {
        assert!(compare("prefix", json!("C"), r#"{"a": "C536379"}"#));
        assert!(!compare("prefix", json!("C"), r#"{"a": "536379"}"#));
        assert!(compare("in", json!(["x", 2]), r#"{"a": 2}"#));
        assert!(compare("in", json!(["x", 2.0, true]), r#"{"a": 2}"#));
        assert!(compare("in", json!(["x", 2]), r#"{"a": 2.00}"#));
        assert!(compare("in", json!([2, true]), r#"{"a": true}"#));
        assert!(!compare("in", json!([2, true]), r#"{"a": false}"#));
        assert!(!compare("in", json!(["2", true]), r#"{"a": 2}"#));
        assert!(!compare("in", json!([]), r#"{"a": 2}"#));
        assert!(holds(json!({"operator": "exists", "lhs": "data.a"}), r#"{"a": 0}"#));
        assert!(compare("exists", json!(false), r#"{"a": null}"#));
    }

    #[test]
    fn groups() {
        let filter = json!({"operator": "and", "conditions": [
            {"operator": "eq", "lhs": "data.country", "rhs": "sg"},
            {"operator": "or", "conditions": [
                {"operator": "eq", "lhs": "data.taxi", "rhs": 1},
                {"operator": "not", "conditions": [{"operator": "exists", "lhs": "data.taxi"}]}]}]});
        assert!(holds(filter.clone(), r#"{"country": "sg", "taxi": 1}"#));
        assert!(holds(filter.clone(), r#"{"country": "sg"}"#));
        assert!(!holds(filter.clone(), r#"{"country": "sg", "taxi": 2}"#));
        assert!(!holds(filter, r#"{"country": "id", "taxi": 1}"#));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let condition: Condition =
            serde_json::from_value(json!({"operator": "and", "conditions": [
            {"operator": "like", "lhs": "data.a", "rhs": 1},
            {"operator": "eq", "lhs": "city", "rhs": null},
            {"operator": "not", "conditions": []},
            {"operator": "in", "lhs": "data.a", "rhs": 5}]}))
            .unwrap();
        let problems = Filter::compile(&condition, &mut |_| 0).unwrap_err();
        assert_eq!(problems.len(), 5, "{problems:#?}");
        assert!(
            problems.iter().any(|problem| problem.starts_with("filter.conditions[0].operator"))
        );
    }
}
