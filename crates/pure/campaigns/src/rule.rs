//! Rules: AND/OR/NOT trees over an event, counts of its subject, and lookups.
//!
//! The JSON form is the one of a counter's [filter](raingauge_core::filter), with more left-hand
//! sides and two more operators for counts. `reaches 3` is an edge: it holds for the one event that
//! takes a count from below 3 to 3 or beyond. `every 3` holds whenever a count passes a multiple
//! of 3.

use crate::limits::{
    CAMPAIGN_NAME_LEN_MAX, EDGE_COUNT_MAX, RULE_CONSTANT_LEN_MAX, RULE_DEPTH_MAX, RULE_LEAVES_MAX,
};
use crate::window::Change;
use raingauge_core::field::{Field, Scalar};
use raingauge_core::filter::{Condition, Predicate};
use serde_json::Value as Json;
use std::fmt;

/// What a leaf reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lhs {
    Field(Field),
    Time(TimePart),
    /// A count of the campaign, by its name.
    Count(Box<str>),
    /// How often the subject was granted a step before this event.
    Usage(Box<str>),
    /// Whether the subject is in an uploaded list.
    Segment(Box<str>),
    /// A column of an uploaded table.
    Table {
        name: Box<str>,
        column: Box<str>,
    },
    /// A column of the answer of a database.
    Database {
        name: Box<str>,
        column: Box<str>,
    },
    /// A path into the JSON answer of a service.
    Http {
        name: Box<str>,
        path: Box<str>,
    },
}

/// A part of the event's time in the zone of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimePart {
    Hour,
    MinuteOfDay,
    /// `mon` to `sun`.
    Weekday,
    /// `2026-11-22`.
    Date,
}

impl Lhs {
    /// Parses a left-hand side; `None` when it has none of the forms.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('.').unwrap_or((text, ""));
        let named = || is_name(rest).then(|| rest.into());
        let pair = || rest.split_once('.').filter(|(name, rest)| is_name(name) && !rest.is_empty());

        Some(match kind {
            "var" => Self::Field(Field::of_path(&format!("data.{rest}"))?),
            "time" => Self::Time(TimePart::parse(rest)?),
            "count" => Self::Count(named()?),
            "usage" => Self::Usage(named()?),
            "segment" => Self::Segment(named()?),
            "table" => {
                let (name, column) = pair().filter(|(_, column)| is_name(column))?;
                Self::Table { name: name.into(), column: column.into() }
            }
            "db" => {
                let (name, column) = pair().filter(|(_, column)| is_name(column))?;
                Self::Database { name: name.into(), column: column.into() }
            }
            "http" => {
                let (name, path) =
                    pair().filter(|(_, path)| path.split('.').all(|step| !step.is_empty()))?;
                Self::Http { name: name.into(), path: path.into() }
            }
            _ => Self::Field(Field::of_path(text)?),
        })
    }
}

/// Whether a text can name a count, a step, a lookup or another part of a campaign.
pub fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !text.is_empty() && text.len() <= CAMPAIGN_NAME_LEN_MAX && text.bytes().all(allowed)
}

impl fmt::Display for Lhs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(Field::Data(steps)) => write!(out, "var.{}", steps.join(".")),
            Self::Field(field) => write!(out, "{field}"),
            Self::Time(part) => write!(out, "time.{}", part.as_str()),
            Self::Count(name) => write!(out, "count.{name}"),
            Self::Usage(name) => write!(out, "usage.{name}"),
            Self::Segment(name) => write!(out, "segment.{name}"),
            Self::Table { name, column } => write!(out, "table.{name}.{column}"),
            Self::Database { name, column } => write!(out, "db.{name}.{column}"),
            Self::Http { name, path } => write!(out, "http.{name}.{path}"),
        }
    }
}

impl TimePart {
    pub const ALL: [Self; 4] = [Self::Hour, Self::MinuteOfDay, Self::Weekday, Self::Date];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::MinuteOfDay => "minute_of_day",
            Self::Weekday => "weekday",
            Self::Date => "date",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == text)
    }
}

/// What a leaf tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Value(Predicate),
    Reaches(i64),
    Every(i64),
}

impl Test {
    /// Whether a value passes; edges pass no value.
    pub fn holds(&self, scalar: Option<&Scalar<'_>>) -> bool {
        matches!(self, Self::Value(predicate) if predicate.holds(scalar))
    }

    /// Whether a count passes; conditions on its value look at it after the event.
    pub fn holds_for(&self, change: Change) -> bool {
        match self {
            Self::Value(predicate) => {
                predicate.holds(Some(&Scalar::Number(change.after.to_string().into())))
            }
            Self::Reaches(count) => change.before < *count && *count <= change.after,
            Self::Every(count) => {
                change.after.div_euclid(*count) > change.before.div_euclid(*count)
            }
        }
    }
}

/// One condition of a rule. `negated` turns the answer of `test` around.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    pub lhs: Lhs,
    pub test: Test,
    pub negated: bool,
    /// What loading the value costs; leaves are tested in the order of their weights.
    pub weight: u32,
    /// The condition as people read it: `count.orders reaches 3`.
    pub text: Box<str>,
}

/// A rule that has been checked, with negations moved down to its leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    All(Vec<Rule>),
    Any(Vec<Rule>),
    Leaf(Leaf),
}

impl Rule {
    /// A rule that holds always.
    pub fn always() -> Self {
        Self::All(Vec::new())
    }

    /// Checks a condition. `weigh` answers what a left-hand side costs under a test, or why it
    /// cannot stand there. All problems are reported together; `at` is the path of the condition.
    pub fn compile(
        condition: &Condition,
        at: &str,
        weigh: &mut dyn FnMut(&Lhs, &Test) -> Result<u32, String>,
    ) -> Result<Self, Vec<String>> {
        let mut compiler = Compiler { weigh, problems: Vec::new(), leaves: 0 };
        let rule = compiler.rule(condition, at, 1, false);
        if compiler.leaves > RULE_LEAVES_MAX {
            compiler.problems.push(format!("{at} has more than {RULE_LEAVES_MAX} conditions"));
        }
        compiler.problems.extend(
            condition.inexact_numbers().into_iter().map(|problem| format!("{at}: {problem}")),
        );
        match rule {
            Some(rule) if compiler.problems.is_empty() => Ok(rule),
            _ => Err(compiler.problems),
        }
    }

    /// Visits the leaves in the order of the text.
    pub fn each_leaf<'r>(&'r self, visit: &mut dyn FnMut(&'r Leaf)) {
        match self {
            Self::All(rules) | Self::Any(rules) => {
                rules.iter().for_each(|rule| rule.each_leaf(visit));
            }
            Self::Leaf(leaf) => visit(leaf),
        }
    }

    pub fn leaves(&self) -> usize {
        let mut leaves = 0;
        self.each_leaf(&mut |_| leaves += 1);
        leaves
    }
}

struct Compiler<'a> {
    weigh: &'a mut dyn FnMut(&Lhs, &Test) -> Result<u32, String>,
    problems: Vec<String>,
    leaves: usize,
}

impl Compiler<'_> {
    fn rule(
        &mut self,
        condition: &Condition,
        at: &str,
        depth: usize,
        negated: bool,
    ) -> Option<Rule> {
        if depth > RULE_DEPTH_MAX {
            self.problems.push(format!("{at} is nested deeper than {RULE_DEPTH_MAX}"));
            return None;
        }
        match condition.operator.as_str() {
            "and" | "or" | "not" => self.group(condition, at, depth, negated),
            _ => self.leaf(condition, at, negated),
        }
    }

    fn group(
        &mut self,
        condition: &Condition,
        at: &str,
        depth: usize,
        negated: bool,
    ) -> Option<Rule> {
        let operator = condition.operator.as_str();
        if condition.lhs.is_some() || condition.rhs.is_some() {
            self.problems.push(format!("{at}: `{operator}` takes conditions, not lhs or rhs"));
        }

        let conditions = condition.conditions.as_deref().unwrap_or_default();
        if operator == "not" && conditions.len() != 1 {
            self.problems.push(format!("{at}: `not` needs exactly one condition"));
            return None;
        }
        if conditions.is_empty() {
            self.problems.push(format!("{at}: `{operator}` needs at least one condition"));
            return None;
        }

        let negated = negated != (operator == "not");
        let inner: Vec<Option<Rule>> = conditions
            .iter()
            .enumerate()
            .map(|(index, inner)| {
                self.rule(inner, &format!("{at}.conditions[{index}]"), depth + 1, negated)
            })
            .collect();

        let mut rules = inner.into_iter().collect::<Option<Vec<Rule>>>()?;
        Some(match (operator, negated) {
            ("not", _) => rules.remove(0),
            ("and", false) | ("or", true) => Rule::All(rules),
            _ => Rule::Any(rules),
        })
    }

    fn leaf(&mut self, condition: &Condition, at: &str, negated: bool) -> Option<Rule> {
        self.leaves += 1;
        if condition.conditions.is_some() {
            let operator = &condition.operator;
            self.problems.push(format!("{at}: `{operator}` takes lhs and rhs, not conditions"));
        }

        let written = condition.lhs.as_deref().unwrap_or_default();
        let lhs = Lhs::parse(written);
        if lhs.is_none() {
            self.problems.push(format!(
                "{at}.lhs `{written}` is unknown: use var.…, id, source, type, subject, time.…, count.…, usage.…, segment.…, \
                 table.….…, db.….… or http.….…"
            ));
        }

        let test = self.test(condition, at);
        if condition.rhs.as_ref().is_some_and(|rhs| longest(rhs) > RULE_CONSTANT_LEN_MAX) {
            self.problems
                .push(format!("{at}.rhs has a text of more than {RULE_CONSTANT_LEN_MAX} bytes"));
        }

        let lhs = lhs?;
        let test = test?;
        match (self.weigh)(&lhs, &test) {
            Ok(weight) => {
                let text = text_of(condition, &lhs);
                Some(Rule::Leaf(Leaf { lhs, test, negated, weight, text }))
            }
            Err(problem) => {
                self.problems.push(format!("{at}: {problem}"));
                None
            }
        }
    }

    fn test(&mut self, condition: &Condition, at: &str) -> Option<Test> {
        let rhs = condition.rhs.as_ref();
        let edge: fn(i64) -> Test = match condition.operator.as_str() {
            "reaches" => Test::Reaches,
            "every" => Test::Every,
            operator => {
                let parsed = Predicate::parse(operator, rhs);
                return parsed
                    .map(Test::Value)
                    .map_err(|problem| self.problems.push(format!("{at}{problem}")))
                    .ok();
            }
        };

        let count = rhs.and_then(Json::as_i64).filter(|count| (1..=EDGE_COUNT_MAX).contains(count));
        if count.is_none() {
            let operator = &condition.operator;
            self.problems.push(format!(
                "{at}.rhs of `{operator}` must be a whole number from 1 to {EDGE_COUNT_MAX}"
            ));
        }
        count.map(edge)
    }
}

fn longest(rhs: &Json) -> usize {
    match rhs {
        Json::String(text) => text.len(),
        Json::Array(values) => values.iter().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

/// The condition in one line, with negation left to the tree.
fn text_of(condition: &Condition, lhs: &Lhs) -> Box<str> {
    let operator = &condition.operator;
    match &condition.rhs {
        None => format!("{lhs} {operator}"),
        Some(Json::String(text)) => format!("{lhs} {operator} {text}"),
        Some(rhs) => format!("{lhs} {operator} {rhs}"),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(rule: Json) -> Result<Rule, Vec<String>> {
        let condition: Condition = serde_json::from_value(rule).unwrap();
        Rule::compile(&condition, "rule", &mut |_, _| Ok(1))
    }

    #[test]
    fn left_hand_sides_lead_back_to_their_text() {
        for text in [
            "var.country",
            "var.address.city",
            "id",
            "source",
            "type",
            "subject",
            "time.hour",
            "time.minute_of_day",
            "time.weekday",
            "time.date",
            "count.orders",
            "usage.reward",
            "segment.vip",
            "table.users.tier",
            "db.crm.tier",
            "http.risk.score.value",
        ] {
            assert_eq!(Lhs::parse(text).map(|lhs| lhs.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Lhs::parse("data.country"), Lhs::parse("var.country"));

        for wrong in [
            "",
            "country",
            "var",
            "var.",
            "time.year",
            "count.",
            "count.a b",
            "segment",
            "table.a",
            "table.a.b.c",
            "db.a",
            "http.a",
            "http.a..b",
            "http.a.",
        ] {
            assert_eq!(Lhs::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn negations_move_down_to_the_leaves() {
        let leaf = |lhs: &str| json!({"operator": "eq", "lhs": lhs, "rhs": 1});
        let rule = compile(json!({"operator": "not", "conditions": [
            {"operator": "and", "conditions": [
                leaf("var.a"),
                {"operator": "not", "conditions": [
                    {"operator": "or", "conditions": [leaf("var.b"), leaf("var.c")]}]}]}]}))
        .unwrap();

        let Rule::Any(outer) = &rule else { panic!("{rule:?}") };
        let Rule::Any(inner) = &outer[1] else { panic!("{rule:?}") };
        let negated: Vec<bool> = [&outer[0], &inner[0], &inner[1]]
            .into_iter()
            .map(|rule| matches!(rule, Rule::Leaf(leaf) if leaf.negated))
            .collect();
        assert_eq!(negated, [true, false, false]);
    }

    #[test]
    fn edges_hold_for_one_event() {
        let change = |before, after| Change { before, after };
        let reaches = Test::Reaches(3);
        assert_eq!(
            [change(2, 3), change(1, 9), change(3, 4), change(3, 3), change(3, 2)]
                .map(|change| reaches.holds_for(change)),
            [true, true, false, false, false]
        );

        let every = Test::Every(10);
        assert_eq!(
            [change(9, 10), change(10, 11), change(15, 41), change(-1, 0), change(10, 9)]
                .map(|change| every.holds_for(change)),
            [true, false, true, true, false]
        );
        assert!(!reaches.holds(Some(&Scalar::Number("3".into()))));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let problems = compile(json!({"operator": "and", "conditions": [
            {"operator": "like", "lhs": "var.a", "rhs": 1},
            {"operator": "eq", "lhs": "city", "rhs": null},
            {"operator": "reaches", "lhs": "count.a", "rhs": 0},
            {"operator": "eq", "lhs": "var.a", "rhs": "x".repeat(RULE_CONSTANT_LEN_MAX + 1)},
            {"operator": "eq", "lhs": "var.a", "rhs": 1.2345678901234567},
            {"operator": "not", "conditions": []},
            {"operator": "or", "conditions": []}]}))
        .unwrap_err();
        assert_eq!(problems.len(), 8, "{problems:#?}");
        assert!(problems.iter().all(|problem| problem.starts_with("rule")), "{problems:#?}");
    }

    #[test]
    fn leaves_and_depth_are_bounded() {
        let leaf = json!({"operator": "eq", "lhs": "var.a", "rhs": 1});
        let group =
            |count: usize| json!({"operator": "and", "conditions": vec![leaf.clone(); count]});
        assert_eq!(compile(group(RULE_LEAVES_MAX)).unwrap().leaves(), RULE_LEAVES_MAX);
        assert_eq!(compile(group(RULE_LEAVES_MAX + 1)).unwrap_err().len(), 1);

        let nested = |depth: usize| {
            (1..depth)
                .fold(leaf.clone(), |inner, _| json!({"operator": "or", "conditions": [inner]}))
        };
        assert!(compile(nested(RULE_DEPTH_MAX)).is_ok());
        assert_eq!(compile(nested(RULE_DEPTH_MAX + 1)).unwrap_err().len(), 1);
    }
}
