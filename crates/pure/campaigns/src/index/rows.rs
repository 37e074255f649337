//! What must hold for a rule to hold, as far as an index can tell, as rows of conjunctions.
//!
//! A leaf whose value the index does not see may hold or not, negated or not, and so drops out.
//! What is left is *necessary*. It is brought to at most [`INDEX_ROWS_MAX`] conjunctions, with one
//! condition for each field, however many leaves name it.

use crate::limits::{INDEX_CONSTANTS_MAX, INDEX_ROWS_MAX};
use crate::rule::{Leaf, Rule, Test};
use raingauge_core::filter::Predicate;

/// How the index sees a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The value is at hand for every event, in this slot.
    Slot(usize),
    /// A count of this number, whose changes come with the event.
    Count(usize),
    /// The value has to be loaded.
    None,
}

/// A condition on the value of one slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Test { predicate: Predicate, negated: bool },
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// An edge that a count has to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub count: usize,
    /// Of `reaches`; otherwise of `every`.
    pub reaches: bool,
    pub at: i64,
}

/// A conjunction: conditions on different slots in ascending order, and one edge at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub conditions: Vec<(usize, Condition)>,
    pub edge: Option<Edge>,
}

/// What a part of a rule needs.
enum Need {
    /// Nothing that the index can see.
    Nothing,
    On(usize, Condition),
    Edge(Edge),
    All(Vec<Need>),
    Any(Vec<Need>),
}

/// The rows of a rule: when the rule holds, at least one of them does.
pub fn rows_of(rule: &Rule, sight: &dyn Fn(&Leaf) -> Sight) -> Vec<Row> {
    conjunctions(needs(rule, sight))
}

fn needs(rule: &Rule, sight: &dyn Fn(&Leaf) -> Sight) -> Need {
    match rule {
        Rule::Leaf(leaf) => leaf_needs(leaf, sight(leaf)),
        Rule::All(rules) => {
            let members = rules.iter().map(|rule| needs(rule, sight));
            let seen: Vec<Need> = members.filter(|need| !matches!(need, Need::Nothing)).collect();
            joined(seen, Condition::All, Need::All)
        }
        Rule::Any(rules) => {
            let members: Vec<Need> = rules.iter().map(|rule| needs(rule, sight)).collect();
            if members.iter().any(|need| matches!(need, Need::Nothing)) {
                return Need::Nothing;
            }
            joined(members, Condition::Any, Need::Any)
        }
    }
}

fn leaf_needs(leaf: &Leaf, sight: Sight) -> Need {
    match (sight, &leaf.test) {
        (Sight::Slot(slot), Test::Value(predicate)) => {
            let condition = Condition::Test { predicate: predicate.clone(), negated: leaf.negated };
            if condition.constants() > INDEX_CONSTANTS_MAX {
                return Need::Nothing;
            }
            Need::On(slot, condition)
        }
        (Sight::Count(count), Test::Reaches(at)) if !leaf.negated => {
            Need::Edge(Edge { count, reaches: true, at: *at })
        }
        (Sight::Count(count), Test::Every(at)) if !leaf.negated => {
            Need::Edge(Edge { count, reaches: false, at: *at })
        }
        _ => Need::Nothing,
    }
}

/// Members of a group, of which those on the same slot become one.
fn joined(
    members: Vec<Need>,
    join: fn(Vec<Condition>) -> Condition,
    group: fn(Vec<Need>) -> Need,
) -> Need {
    let mut slots: Vec<(usize, Vec<Condition>)> = Vec::new();
    let mut others = Vec::new();
    for member in members {
        let Need::On(slot, condition) = member else {
            others.push(member);
            continue;
        };
        match slots.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, conditions)) => conditions.push(condition),
            None => slots.push((slot, vec![condition])),
        }
    }

    let on_slots = slots.into_iter().map(|(slot, mut conditions)| {
        let condition = if conditions.len() == 1 { conditions.remove(0) } else { join(conditions) };
        Need::On(slot, condition)
    });
    let mut all: Vec<Need> = on_slots.chain(others).collect();
    match all.len() {
        0 => Need::Nothing,
        1 => all.remove(0),
        _ => group(all),
    }
}

fn conjunctions(need: Need) -> Vec<Row> {
    match need {
        Need::Nothing => vec![Row::default()],
        Need::On(slot, condition) => {
            vec![Row { conditions: vec![(slot, condition)], edge: None }]
        }
        Need::Edge(edge) => vec![Row { conditions: Vec::new(), edge: Some(edge) }],
        Need::Any(members) => {
            let rows: Vec<Row> = members.into_iter().flat_map(conjunctions).collect();
            if rows.len() > INDEX_ROWS_MAX { vec![Row::default()] } else { rows }
        }
        Need::All(members) => {
            let mut factors: Vec<Vec<Row>> = members.into_iter().map(conjunctions).collect();
            factors.sort_by_key(Vec::len);
            factors.into_iter().fold(vec![Row::default()], |rows, factor| {
                // A factor that would make too many rows drops out: the rest is still necessary.
                let fits = rows.len() * factor.len() <= INDEX_ROWS_MAX;
                if fits { product(&rows, &factor) } else { rows }
            })
        }
    }
}

fn product(left: &[Row], right: &[Row]) -> Vec<Row> {
    left.iter().flat_map(|one| right.iter().map(|other| one.and(other))).collect()
}

impl Row {
    fn and(&self, other: &Self) -> Self {
        let mut row = self.clone();
        row.edge = row.edge.or(other.edge);
        for (slot, condition) in &other.conditions {
            match row.conditions.iter_mut().find(|(known, _)| known == slot) {
                Some((_, known)) => {
                    let both = vec![known.clone(), condition.clone()];
                    *known = Condition::All(both);
                }
                None => row.conditions.push((*slot, condition.clone())),
            }
        }

        // Conditions with many constants would cost more memory than they save time.
        row.conditions.retain(|(_, condition)| condition.constants() <= INDEX_CONSTANTS_MAX);
        row
    }
}

impl Condition {
    /// How many constants it compares with.
    pub fn constants(&self) -> usize {
        match self {
            Self::Test { predicate: Predicate::In(one_of), .. } => {
                one_of.texts.len() + one_of.numbers.len()
            }
            Self::Test { .. } => 1,
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().map(Self::constants).sum()
            }
        }
    }
}
