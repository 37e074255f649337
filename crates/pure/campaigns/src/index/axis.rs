//! Which rows a value allows, for every value that one slot can hold.
//!
//! The constants of all conditions on a slot cut the ordered values of a kind into positions: the
//! gap before the first constant, the first constant itself, the gap behind it, and so on. No
//! condition can tell two values of one position apart. So each position has one set of rows:
//!
//! ```text
//!              10        50
//!  ────────────┼─────────┼────────────▶  numbers
//!   0          1    2    3    4          positions
//! ```
//!
//! A set is stored whole at some positions, and as the rows that flip from each position to the
//! next. A value costs a search among the constants, and flips of a few rows at most.

use super::bits;
use super::rows::Condition;
use crate::values::Values;
use hashbrown::HashMap;
use raingauge_core::field::Scalar;
use raingauge_core::filter::{Constant, Predicate};
use rust_decimal::Decimal;
use std::cmp::Ordering;

/// The sets of rows of one slot. A row without a condition on the slot is in each of them.
#[derive(Clone, Debug)]
pub struct Axis {
    missing: Box<[u64]>,
    /// Numbers of more digits than can be compared.
    inexact: Box<[u64]>,
    bools: [Box<[u64]>; 2],
    texts: Line<Box<[u8]>>,
    /// Constants by their text, which finds most values faster than a search does.
    text_places: HashMap<Box<[u8]>, u32>,
    /// Whether all texts that are no constant allow the same rows.
    texts_alike: bool,
    numbers: Line<Decimal>,
}

/// The sets along the ordered values of one kind.
#[derive(Clone, Debug)]
struct Line<C> {
    constants: Vec<C>,
    /// Rows that flip, in the order of positions.
    flips: Vec<u32>,
    /// For each position, how many flips lead up to it.
    ends: Vec<u32>,
    /// Sets that are stored whole, one after the other.
    sets: Vec<u64>,
    /// For each position, the last whole set at or before it, and how many flips lead up to that.
    starts: Vec<(u32, u32)>,
}

/// A position, as a condition sees it.
enum Place<'a> {
    Missing,
    Inexact,
    Bool(bool),
    Text(Spot<'a, Box<[u8]>>),
    Number(Spot<'a, Decimal>),
}

/// At a constant, or in the gap behind one; `None` is the gap before the first.
enum Spot<'a, C> {
    At(&'a C),
    Behind(Option<&'a C>),
}

impl<C: Ord> Spot<'_, C> {
    /// How the values here stand to a constant of the line.
    fn order_to(&self, constant: &C) -> Ordering {
        match self {
            Self::At(at) => (*at).cmp(constant),
            Self::Behind(Some(before)) if *before >= constant => Ordering::Greater,
            Self::Behind(_) => Ordering::Less,
        }
    }
}

impl Condition {
    fn holds_at(&self, place: &Place<'_>) -> bool {
        match self {
            Self::All(conditions) => conditions.iter().all(|inner| inner.holds_at(place)),
            Self::Any(conditions) => conditions.iter().any(|inner| inner.holds_at(place)),
            Self::Test { predicate, negated } => predicate_holds(predicate, place) != *negated,
        }
    }

    fn each_predicate<'c>(&'c self, visit: &mut dyn FnMut(&'c Predicate)) {
        match self {
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().for_each(|inner| inner.each_predicate(visit));
            }
            Self::Test { predicate, .. } => visit(predicate),
        }
    }
}

fn predicate_holds(predicate: &Predicate, place: &Place<'_>) -> bool {
    match predicate {
        Predicate::Exists(expected) => !matches!(place, Place::Missing) == *expected,
        Predicate::Prefix(prefix) => match place {
            Place::Text(Spot::At(text) | Spot::Behind(Some(text))) => {
                text.starts_with(prefix.as_bytes())
            }
            _ => false,
        },
        Predicate::In(one_of) => match place {
            Place::Text(Spot::At(text)) => {
                std::str::from_utf8(text).is_ok_and(|text| one_of.texts.contains(text))
            }
            Place::Number(Spot::At(number)) => one_of.numbers.contains(*number),
            Place::Bool(flag) => one_of.bools[usize::from(*flag)],
            _ => false,
        },
        Predicate::Eq(constant) => order(constant, place) == Some(Ordering::Equal),
        Predicate::Ne(constant) => order(constant, place) != Some(Ordering::Equal),
        Predicate::Order(comparison, constant) => {
            order(constant, place).is_some_and(|order| comparison.holds(order))
        }
    }
}

fn order(constant: &Constant, place: &Place<'_>) -> Option<Ordering> {
    match (constant, place) {
        (Constant::Text(text), Place::Text(spot)) => {
            Some(spot.order_to(&Box::from(text.as_bytes())))
        }
        (Constant::Number(number), Place::Number(spot)) => Some(spot.order_to(number)),
        (Constant::Bool(constant), Place::Bool(flag)) => Some(flag.cmp(constant)),
        _ => None,
    }
}

/// Where the texts with a prefix end: the first text behind them all.
fn end_of(prefix: &str) -> Option<Box<[u8]>> {
    let mut end = prefix.as_bytes().to_vec();
    // A byte of UTF-8 is never the largest byte.
    *end.last_mut()? += 1;
    Some(end.into())
}

/// Texts and numbers that a condition compares with, each of which may cut a line.
type Constants = (Vec<Box<[u8]>>, Vec<Decimal>);

fn constants_of(condition: &Condition) -> Constants {
    let mut texts: Vec<Box<[u8]>> = Vec::new();
    let mut numbers = Vec::new();
    condition.each_predicate(&mut |predicate| match predicate {
        Predicate::Exists(_) => {}
        Predicate::Prefix(prefix) => {
            texts.push(prefix.as_bytes().into());
            texts.extend(end_of(prefix));
        }
        Predicate::In(one_of) => {
            texts.extend(one_of.texts.iter().map(|text| Box::from(text.as_bytes())));
            numbers.extend(&one_of.numbers);
        }
        Predicate::Eq(constant) | Predicate::Ne(constant) | Predicate::Order(_, constant) => {
            match constant {
                Constant::Text(text) => texts.push(text.as_bytes().into()),
                Constant::Number(number) => numbers.push(*number),
                Constant::Bool(_) => {}
            }
        }
    });
    (texts, numbers)
}

impl Axis {
    /// The sets for the conditions of some rows, of `rows` altogether.
    pub fn new(conditions: &[(usize, &Condition)], rows: usize) -> Self {
        let everything = {
            let mut words = vec![0; bits::words_for(rows)];
            (0..rows).for_each(|row| bits::set(&mut words, row));
            words.into_boxed_slice()
        };
        let whole = |place: Place<'_>| {
            let mut words = everything.clone();
            for (row, condition) in conditions {
                if !condition.holds_at(&place) {
                    bits::flip(&mut words, *row);
                }
            }
            words
        };

        let own: Vec<Constants> =
            conditions.iter().map(|(_, condition)| constants_of(condition)).collect();
        let texts = sorted(own.iter().flat_map(|(texts, _)| texts.iter().cloned()));
        let numbers = sorted(own.iter().flat_map(|(_, numbers)| numbers.iter().copied()));

        let mut texts_alike = true;
        let mut text_line = LineBuilder::new(texts, whole(Place::Text(Spot::Behind(None))));
        let mut number_line = LineBuilder::new(numbers, whole(Place::Number(Spot::Behind(None))));
        for ((row, condition), (texts, numbers)) in conditions.iter().zip(&own) {
            let alike = text_line.add(*row, texts, &|spot| condition.holds_at(&Place::Text(spot)));
            texts_alike &= alike;
            number_line.add(*row, numbers, &|spot| condition.holds_at(&Place::Number(spot)));
        }

        let text_places =
            (0..).zip(&text_line.constants).map(|(place, text)| (text.clone(), place)).collect();
        Self {
            missing: whole(Place::Missing),
            inexact: whole(Place::Inexact),
            bools: [false, true].map(|flag| whole(Place::Bool(flag))),
            text_places,
            texts_alike,
            texts: text_line.build(),
            numbers: number_line.build(),
        }
    }

    /// Keeps those of `alive` that the value in a slot allows. `scratch` is memory of the same
    /// length.
    pub fn keep(&self, values: &Values<'_>, slot: usize, alive: &mut [u64], scratch: &mut [u64]) {
        match &values[slot] {
            None => bits::keep(alive, &self.missing),
            Some(Scalar::Bool(flag)) => bits::keep(alive, &self.bools[usize::from(*flag)]),
            Some(Scalar::Text(text)) => {
                self.texts.keep(self.position_of(text.as_bytes()), alive, scratch);
            }
            Some(Scalar::Number(_)) => match values.number(slot) {
                None => bits::keep(alive, &self.inexact),
                Some(number) => {
                    let position = position(self.numbers.constants.binary_search(&number));
                    self.numbers.keep(position, alive, scratch);
                }
            },
        }
    }

    fn position_of(&self, text: &[u8]) -> usize {
        if let Some(place) = self.text_places.get(text) {
            return position(Ok(*place as usize));
        }
        if self.texts_alike {
            return 0;
        }
        position(self.texts.constants.binary_search_by(|constant| (**constant).cmp(text)))
    }
}

/// The position of a value by what the search for it among the constants found.
fn position(found: Result<usize, usize>) -> usize {
    match found {
        Ok(place) => 2 * place + 1,
        Err(place) => 2 * place,
    }
}

fn sorted<C: Ord>(constants: impl Iterator<Item = C>) -> Vec<C> {
    let mut constants: Vec<C> = constants.collect();
    constants.sort_unstable();
    constants.dedup();
    constants
}

impl<C> Line<C> {
    fn keep(&self, position: usize, alive: &mut [u64], scratch: &mut [u64]) {
        let (set, start) = self.starts[position];
        let from = set as usize * alive.len();
        let whole = &self.sets[from..from + alive.len()];
        let flips = &self.flips[start as usize..self.ends[position] as usize];
        if flips.is_empty() {
            return bits::keep(alive, whole);
        }

        scratch.copy_from_slice(whole);
        for row in flips {
            bits::flip(scratch, *row as usize);
        }
        bits::keep(alive, scratch);
    }
}

struct LineBuilder<C> {
    constants: Vec<C>,
    first: Box<[u64]>,
    /// Rows that flip on the way to a position from the one before.
    flips: Vec<(u32, u32)>,
}

impl<C: Ord + Clone> LineBuilder<C> {
    fn new(constants: Vec<C>, first: Box<[u64]>) -> Self {
        Self { constants, first, flips: Vec::new() }
    }

    fn spot(&self, position: usize) -> Spot<'_, C> {
        match position {
            0 => Spot::Behind(None),
            _ if position % 2 == 1 => Spot::At(&self.constants[position / 2]),
            _ => Spot::Behind(Some(&self.constants[position / 2 - 1])),
        }
    }

    /// Adds the flips of one row, whose condition changes at its `own` constants alone. Answers
    /// whether all gaps are alike to it.
    fn add(&mut self, row: usize, own: &[C], holds_at: &dyn Fn(Spot<'_, C>) -> bool) -> bool {
        let mut places: Vec<usize> = own
            .iter()
            .map(|constant| self.constants.binary_search(constant).expect("a constant of the line"))
            .collect();
        places.sort_unstable();
        places.dedup();

        let in_first_gap = holds_at(self.spot(0));
        let mut before = in_first_gap;
        let mut alike = true;
        for position in
            places.into_iter().flat_map(|place| [2 * place, 2 * place + 1, 2 * place + 2])
        {
            let now = holds_at(self.spot(position));
            if now != before {
                self.flips.push((position as u32, row as u32));
            }
            before = now;
            alike &= position % 2 == 1 || now == in_first_gap;
        }
        alike
    }

    fn build(mut self) -> Line<C> {
        self.flips.sort_unstable();
        let words = self.first.len();
        let flips_max = (words / 2).max(4);
        let mut set = self.first.to_vec();
        let mut line = Line {
            flips: Vec::with_capacity(self.flips.len()),
            ends: Vec::new(),
            sets: set.clone(),
            starts: Vec::new(),
            constants: self.constants,
        };

        let mut rest = self.flips.iter().peekable();
        let mut start = (0, 0);
        for position in 0..=2 * line.constants.len() {
            while let Some((_, row)) = rest.next_if(|(at, _)| *at as usize == position) {
                bits::flip(&mut set, *row as usize);
                line.flips.push(*row);
            }

            let end = line.flips.len() as u32;
            if (end - start.1) as usize > flips_max {
                start = (start.0 + 1, end);
                line.sets.extend_from_slice(&set);
            }
            line.ends.push(end);
            line.starts.push(start);
        }
        line
    }
}
