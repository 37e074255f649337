use super::*;
use crate::rule::{Lhs, Test};
use proptest::prelude::*;
use raingauge_core::field::Field;
use raingauge_core::filter::Predicate;

fn leaf(name: &str, weight: u32, negated: bool) -> Rule {
    let test = Test::Value(Predicate::Exists(true));
    Rule::Leaf(Leaf { lhs: Lhs::Field(Field::Id), test, negated, weight, text: name.into() })
}

/// The example of the published description of Trident: `A & (B | C) & (D | E)`.
fn published_example() -> Rule {
    Rule::All(vec![
        leaf("A", 5, false),
        Rule::Any(vec![leaf("B", 1, false), leaf("C", 4, false)]),
        Rule::Any(vec![leaf("D", 2, false), leaf("E", 3, false)]),
    ])
}

#[test]
fn values_are_loaded_as_in_the_published_example() {
    let tree = Tree::new(&published_example());
    let mut progress = tree.start();
    let mut loaded = Vec::new();

    let waits = tree.advance(&mut progress, |leaf| {
        let name = &*tree.leaves()[leaf].text;
        loaded.push(name);
        Some(!matches!(name, "B" | "C"))
    });

    let named = |of: &dyn Fn(usize) -> bool| -> Vec<&str> {
        (0..5).filter(|leaf| of(*leaf)).map(|leaf| &*tree.leaves()[leaf].text).collect()
    };
    assert_eq!((waits, progress.result()), (None, Some(false)));
    assert_eq!(loaded, ["B", "D", "C"]);
    assert_eq!(named(&|leaf| progress.skips(leaf)), ["E", "A"]);
    let trace: Vec<(&str, bool)> =
        progress.trace().map(|(leaf, held)| (&*tree.leaves()[leaf].text, held)).collect();
    assert_eq!(trace, [("B", false), ("D", true), ("C", false)]);
}

/// E is passed over while the rule is open, and A because the rule is settled.
#[test]
fn a_group_that_is_settled_takes_its_leaves_out() {
    let tree = Tree::new(&published_example());
    let mut progress = tree.start();

    tree.note(&mut progress, 0, false);
    assert_eq!(tree.next(&progress), Some(1));
    tree.note(&mut progress, 1, true);
    assert!(progress.skips(2) && !progress.skips(4));
    assert_eq!(tree.next(&progress), Some(3));
    assert_eq!(progress.result(), None);
    tree.note(&mut progress, 3, true);
    assert_eq!(tree.next(&progress), Some(4));
    tree.note(&mut progress, 4, true);
    assert_eq!((tree.next(&progress), progress.result()), (None, Some(true)));
}

#[test]
fn a_rule_without_conditions_holds() {
    let tree = Tree::new(&Rule::All(vec![Rule::always(), Rule::always()]));
    let mut progress = tree.start();
    assert_eq!(tree.advance(&mut progress, |_| None), None);
    assert_eq!(progress.result(), Some(true));
}

/// The deepest tree of 64 leaves has 64 groups.
#[test]
fn the_largest_tree_fits() {
    let mut rule = leaf("0", 0, false);
    for number in 1..64 {
        let next = leaf(&number.to_string(), number % 7, number % 3 == 0);
        rule =
            if number % 2 == 0 { Rule::All(vec![next, rule]) } else { Rule::Any(vec![rule, next]) };
    }
    let tree = Tree::new(&rule);
    for seed in 0..64u64 {
        let values = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        assert_eq!(lazily(&tree, values).result(), Some(eagerly(&rule, values)));
    }
}

fn name_of(leaf: &Leaf) -> usize {
    leaf.text.parse().unwrap()
}

/// Evaluates the whole tree; `values` has a bit for each leaf by its name.
fn eagerly(rule: &Rule, values: u64) -> bool {
    match rule {
        Rule::All(rules) => rules.iter().all(|rule| eagerly(rule, values)),
        Rule::Any(rules) => rules.iter().any(|rule| eagerly(rule, values)),
        Rule::Leaf(leaf) => (values >> name_of(leaf) & 1 == 1) != leaf.negated,
    }
}

fn lazily(tree: &Tree, values: u64) -> Progress {
    let mut progress = tree.start();
    tree.advance(&mut progress, |leaf| Some(values >> name_of(&tree.leaves()[leaf]) & 1 == 1));
    progress
}

/// Rules of at most eight leaves, named by their place in the text.
fn rules() -> impl Strategy<Value = Rule> {
    let unnamed = (0..4u32, any::<bool>()).prop_map(|(weight, negated)| leaf("", weight, negated));
    let nested = unnamed.prop_recursive(4, 8, 3, |inner| {
        (any::<bool>(), proptest::collection::vec(inner, 1..4))
            .prop_map(|(any, rules)| if any { Rule::Any(rules) } else { Rule::All(rules) })
    });
    nested.prop_filter("too many leaves", |rule| rule.leaves() <= 8).prop_map(|mut rule| {
        number(&mut rule, &mut 0);
        rule
    })
}

fn number(rule: &mut Rule, next: &mut usize) {
    match rule {
        Rule::All(rules) | Rule::Any(rules) => {
            rules.iter_mut().for_each(|rule| number(rule, next));
        }
        Rule::Leaf(leaf) => {
            leaf.text = next.to_string().into();
            *next += 1;
        }
    }
}

/// Whether some values of the leaves that are not `fixed` make the result depend on `leaf`.
fn matters(rule: &Rule, leaves: usize, leaf: usize, fixed: u64, values: u64) -> bool {
    (0..1u64 << leaves)
        .filter(|free| free & fixed == values & fixed)
        .any(|free| eagerly(rule, free | 1 << leaf) != eagerly(rule, free & !(1 << leaf)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lazy_evaluation_equals_eager_evaluation(rule in rules()) {
        let tree = Tree::new(&rule);
        for values in 0..1 << rule.leaves() {
            prop_assert_eq!(lazily(&tree, values).result(), Some(eagerly(&rule, values)));
        }
    }

    /// What is loaded can change the result, and nothing cheaper can.
    #[test]
    fn only_the_cheapest_leaf_that_matters_is_loaded(rule in rules(), values in any::<u64>()) {
        let tree = Tree::new(&rule);
        let leaves = tree.leaves().len();
        let mut progress = tree.start();
        let mut fixed = 0;

        while let Some(next) = tree.next(&progress) {
            let loaded = &tree.leaves()[next];
            prop_assert!(matters(&rule, leaves, name_of(loaded), fixed, values), "{rule:?}");
            for other in tree.leaves() {
                let cheaper = other.weight < loaded.weight && fixed >> name_of(other) & 1 == 0;
                prop_assert!(!cheaper || !matters(&rule, leaves, name_of(other), fixed, values));
            }
            fixed |= 1 << name_of(loaded);
            tree.note(&mut progress, next, values >> name_of(loaded) & 1 == 1);
        }
    }

    /// The change makes the rule hold, and no smaller one does.
    #[test]
    fn the_nearest_change_is_the_smallest(rule in rules(), values in any::<u64>()) {
        let tree = Tree::new(&rule);
        let held: u64 = (0..tree.leaves().len())
            .map(|number| (values >> name_of(&tree.leaves()[number]) & 1) << number)
            .sum();
        let change: u64 =
            ones(tree.nearest(held)).map(|number| 1 << name_of(&tree.leaves()[number])).sum();

        prop_assert!(eagerly(&rule, values ^ change));
        for smaller in 0..1u64 << tree.leaves().len() {
            let is_smaller = smaller.count_ones() < change.count_ones();
            prop_assert!(!is_smaller || !eagerly(&rule, values ^ smaller));
        }
    }
}
