use super::*;
use crate::rule::{Lhs, Test};
use proptest::prelude::*;
use raingauge_core::field::{Field, Scalar};
use raingauge_core::filter::Predicate;
use serde_json::{Value as Json, json};

const SLOTS: usize = 3;
/// A leaf on this slot is not seen by the index.
const UNSEEN: usize = SLOTS;
/// Leaves on this slot and the next are edges of counts.
const EDGES: usize = SLOTS + 1;

/// A leaf whose weight is its slot.
fn leaf(slot: usize, test: Test, negated: bool) -> Rule {
    let lhs = Lhs::Field(Field::Id);
    Rule::Leaf(Leaf { lhs, test, negated, weight: slot as u32, text: "".into() })
}

fn value(slot: usize, operator: &str, rhs: Json) -> Rule {
    leaf(slot, Test::Value(Predicate::parse(operator, Some(&rhs)).unwrap()), false)
}

fn sight(leaf: &Leaf) -> Sight {
    match leaf.weight as usize {
        slot @ 0..SLOTS => Sight::Slot(slot),
        UNSEEN => Sight::None,
        other => Sight::Count(other - EDGES),
    }
}

fn index_of(rules: &[Rule]) -> Index {
    let mut builder = Builder::default();
    for (number, rule) in rules.iter().enumerate() {
        builder.add(number as u32, rule, &sight);
    }
    builder.build()
}

fn found(index: &Index, values: &[Option<Scalar<'_>>], changes: &[Change]) -> Vec<u32> {
    let mut found = Vec::new();
    let changes = changes.iter().copied().enumerate();
    let values = Values::new(values.to_vec());
    index.candidates(&values, changes, &mut Scratch::default(), |rule| found.push(rule));
    found
}

fn text(text: &str) -> Option<Scalar<'_>> {
    Some(Scalar::Text(text.into()))
}

fn number(number: &str) -> Option<Scalar<'_>> {
    Some(Scalar::Number(number.into()))
}

#[test]
fn rules_of_a_type_are_distinguished() {
    let rules = [
        Rule::All(vec![value(0, "eq", json!("sg")), value(1, "gte", json!(10))]),
        Rule::All(vec![value(0, "in", json!(["sg", "my"])), value(1, "lt", json!(10))]),
        Rule::Any(vec![value(0, "prefix", json!("s")), value(2, "exists", json!(false))]),
        leaf(EDGES, Test::Reaches(3), false),
        Rule::Any(vec![value(0, "eq", json!("id")), leaf(UNSEEN, Test::Reaches(1), false)]),
    ];
    let index = index_of(&rules);
    let change = |before, after| [Change { before, after }];

    let sg_12 = [text("sg"), number("12.0"), None];
    assert_eq!(found(&index, &sg_12, &change(2, 3)), [0, 2, 3, 4]);
    assert_eq!(found(&index, &sg_12, &change(3, 4)), [0, 2, 4]);
    let my_9 = [text("my"), number("9.99"), Some(Scalar::Bool(true))];
    assert_eq!(found(&index, &my_9, &change(0, 1)), [1, 4]);
    assert_eq!(found(&index, &[None, None, None], &[]), [2, 4]);
}

/// An alternative of the same slot is one row, and one that is too wide is left out.
#[test]
fn rows_are_few() {
    let on = |slot: usize, count: i64| {
        Rule::Any((0..count).map(|rhs| value(slot, "eq", json!(rhs))).collect())
    };
    assert_eq!(index_of(&[Rule::All(vec![on(0, 9), on(1, 9), on(2, 9)])]).rows(), 1);

    let wide = Rule::Any(vec![on(0, 1), on(1, 1), on(2, 1)]);
    let index = index_of(&[Rule::All(vec![wide.clone(), wide.clone(), wide, on(0, 1)])]);
    assert_eq!(index.rows(), 9);
    let nine = number("9");
    assert_eq!(found(&index, &[nine.clone(), nine.clone(), nine], &[]), [0; 0]);
}

/// Conditions with more constants than the index takes stay candidates.
#[test]
fn long_lists_are_left_to_the_evaluation() {
    let list: Vec<i64> = (0..=crate::limits::INDEX_CONSTANTS_MAX as i64).collect();
    let index = index_of(&[value(0, "in", json!(list)), value(0, "in", json!(list[1..]))]);
    assert_eq!(found(&index, &[number("-1"), None, None], &[]), [0]);
    assert_eq!(found(&index, &[number("1"), None, None], &[]), [0, 1]);
}

/// Sets between those that are stored whole are found by flips.
#[test]
fn many_constants_keep_their_positions() {
    let rules: Vec<Rule> = (0..3_000)
        .map(|at| match at % 3 {
            0 => value(0, "eq", json!(at)),
            1 => value(0, "gte", json!(at)),
            _ => value(0, "lt", json!(at)),
        })
        .collect();
    let index = index_of(&rules);
    for probe in [-1, 0, 1, 2, 3, 64, 777, 1_500, 1_501, 2_998, 2_999, 3_000] {
        let written = probe.to_string();
        let values = [number(&written), None, None];
        let expected: Vec<u32> = (0..3_000)
            .filter(|at| match at % 3 {
                0 => probe == *at,
                1 => probe >= *at,
                _ => probe < *at,
            })
            .map(|at| at as u32)
            .collect();
        assert_eq!(found(&index, &values, &[]), expected, "{probe}");
    }
}

/// Whether a rule can hold, by reading it as it stands. What the index does not see holds.
fn can_hold(rule: &Rule, values: &[Option<Scalar<'_>>], changes: &[Change]) -> bool {
    match rule {
        Rule::All(rules) => rules.iter().all(|rule| can_hold(rule, values, changes)),
        Rule::Any(rules) => rules.iter().any(|rule| can_hold(rule, values, changes)),
        Rule::Leaf(leaf) => match sight(leaf) {
            Sight::Slot(slot) => leaf.test.holds(values[slot].as_ref()) != leaf.negated,
            Sight::Count(count) => leaf.test.holds_for(changes[count]) != leaf.negated,
            Sight::None => true,
        },
    }
}

fn constants() -> impl Strategy<Value = Json> {
    prop_oneof![
        proptest::sample::select(vec!["", "a", "ab", "abc", "b", "ß", "b\u{10ffff}"])
            .prop_map(Json::from),
        proptest::sample::select(vec!["-1", "0", "1", "1.50", "2", "1e2"])
            .prop_map(|number| serde_json::from_str(number).unwrap()),
        any::<bool>().prop_map(Json::from),
    ]
}

fn predicates() -> impl Strategy<Value = Test> {
    let operators = vec!["eq", "ne", "gt", "gte", "lt", "lte"];
    let parse =
        |operator: &str, rhs: Json| Test::Value(Predicate::parse(operator, Some(&rhs)).unwrap());
    prop_oneof![
        4 => (proptest::sample::select(operators), constants())
            .prop_map(move |(operator, rhs)| parse(operator, rhs)),
        1 => proptest::collection::vec(constants(), 0..4)
            .prop_map(move |list| parse("in", Json::from(list))),
        1 => proptest::sample::select(vec!["", "a", "ab", "b", "ß"])
            .prop_map(move |prefix| parse("prefix", json!(prefix))),
        1 => any::<bool>().prop_map(move |exists| parse("exists", json!(exists))),
    ]
}

fn leaves() -> impl Strategy<Value = Rule> {
    let edge = (any::<bool>(), 1..5i64)
        .prop_map(|(reaches, at)| if reaches { Test::Reaches(at) } else { Test::Every(at) });
    prop_oneof![
        8 => (0..SLOTS, predicates(), any::<bool>())
            .prop_map(|(slot, test, negated)| leaf(slot, test, negated)),
        1 => (predicates(), any::<bool>()).prop_map(|(test, negated)| leaf(UNSEEN, test, negated)),
        1 => (0..2usize, edge, proptest::bool::weighted(0.2))
            .prop_map(|(count, test, negated)| leaf(EDGES + count, test, negated)),
    ]
}

fn rules() -> impl Strategy<Value = Rule> {
    leaves().prop_recursive(4, 8, 3, |inner| {
        (any::<bool>(), proptest::collection::vec(inner, 1..4))
            .prop_map(|(any, rules)| if any { Rule::Any(rules) } else { Rule::All(rules) })
    })
}

fn scalars() -> impl Strategy<Value = Option<Scalar<'static>>> {
    let texts = vec!["", "0", "a", "aa", "ab", "abb", "abcd", "b", "b\u{10ffff}x", "ß", "z"];
    let numbers = vec![
        "-2",
        "-1",
        "-0.0",
        "0.5",
        "1",
        "1.0",
        "1.5",
        "1.75",
        "2.000",
        "1e2",
        "100",
        "101",
        "123456789012345678901234567890123",
    ];
    prop_oneof![
        1 => Just(None),
        4 => proptest::sample::select(texts).prop_map(text),
        4 => proptest::sample::select(numbers).prop_map(number),
        1 => any::<bool>().prop_map(|flag| Some(Scalar::Bool(flag))),
    ]
}

/// Whether the index can answer for a rule exactly: nothing is unseen, or too wide, and there is
/// one edge at most, which is not negated.
fn is_exact(rule: &Rule) -> bool {
    let mut edges = 0;
    let mut seen = true;
    rule.each_leaf(&mut |leaf| match sight(leaf) {
        Sight::Slot(_) => {}
        Sight::Count(_) => {
            edges += 1;
            seen &= !leaf.negated;
        }
        Sight::None => seen = false,
    });
    seen && edges <= 1 && rule.leaves() <= 6
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The index finds every rule that can hold, and no other one where it sees everything.
    #[test]
    fn the_index_equals_reading_all_rules(
        rules in proptest::collection::vec(rules(), 1..80),
        events in proptest::collection::vec(
            (
                proptest::collection::vec(scalars(), SLOTS),
                [(-2..6i64, 0..4i64), (0..6i64, 0..4i64)],
            ),
            1..8,
        ),
    ) {
        let index = index_of(&rules);
        for (values, counts) in events {
            let changes = counts.map(|(before, more)| Change { before, after: before + more });
            let found = found(&index, &values, &changes);
            for (number, rule) in rules.iter().enumerate() {
                let is_found = found.contains(&(number as u32));
                let can_hold = can_hold(rule, &values, &changes);
                prop_assert!(is_found || !can_hold, "{rule:?} for {values:?} {changes:?}");
                prop_assert!(!is_found || can_hold || !is_exact(rule), "{rule:?} for {values:?}");
            }
        }
    }
}
