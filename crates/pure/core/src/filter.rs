//! Filters: conditions on an event's fields, joined by `and`, `or` and `not`.
//!
//! The JSON form is the one of the rules in the published description of Trident:
//! `{"operator": "gte", "lhs": "data.millimetres", "rhs": 1}`.
//!
//! A comparison with a missing field, or between values of different kinds, does not hold; `ne` is
//! exactly the opposite of `eq`, and so holds there. Numbers are compared as exact decimals.

mod predicate;

pub use predicate::{Comparison, Constant, OneOf, Predicate};

use crate::field::{Field, Scalar};
use crate::limits::{FILTER_CONDITIONS_MAX, FILTER_DEPTH_MAX};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value as Json};

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
    /// A condition on the field with this number.
    Field(usize, Predicate),
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
            Self::Field(field, predicate) => predicate.holds(fields[*field].as_ref()),
        }
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

        match Predicate::parse(&condition.operator, condition.rhs.as_ref()) {
            Ok(predicate) => Some(Filter::Field((self.field_index)(field?), predicate)),
            Err(problem) => {
                self.problems.push(format!("{at}{problem}"));
                None
            }
        }
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
