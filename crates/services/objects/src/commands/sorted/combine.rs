//! Unions, intersections and differences of sorted sets, and of plain sets, whose members count as
//! 1.

use indexmap::IndexMap;
use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::{Blob, Collection, Set, Sorted, Value};

use super::range::store;
use super::reply_members;
use crate::commands::ranges::at_least;
use crate::turn::{Outcome, Turn};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of one member become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            // Opposite infinities are zero together.
            Aggregate::Sum => number_or_zero(left + right),
            Aggregate::Min => left.min(right),
            Aggregate::Max => left.max(right),
        }
    }
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// A key to combine, with the weight of its scores.
#[derive(Clone, Copy)]
struct Source<'a> {
    members: Members<'a>,
    weight: f64,
}

#[derive(Clone, Copy)]
enum Members<'a> {
    None,
    Sorted(&'a Sorted),
    Set(&'a Set),
}

impl<'a> Source<'a> {
    fn of(turn: &'a Turn<'_>, key: &[u8]) -> Result<Source<'a>, Failure> {
        let members = match turn.get(key).map(|object| &object.value) {
            None => Members::None,
            Some(Value::Sorted(sorted)) => Members::Sorted(sorted),
            Some(Value::Set(set)) => Members::Set(set),
            Some(_) => return Err(Failure::WrongType),
        };

        Ok(Source { members, weight: 1.0 })
    }

    fn len(&self) -> usize {
        match self.members {
            Members::None => 0,
            Members::Sorted(sorted) => sorted.len(),
            Members::Set(set) => set.len(),
        }
    }

    /// The weighed score of a member, which is not a number where an infinity weighs nothing.
    fn score(&self, member: &[u8]) -> Option<f64> {
        let score = match self.members {
            Members::None => None,
            Members::Sorted(sorted) => sorted.score(member),
            Members::Set(set) => set.contains(member).then_some(1.0),
        };

        score.map(|score| score * self.weight)
    }

    /// All members with their weighed scores, until the visitor returns false.
    fn each(&self, mut visit: impl FnMut(&'a [u8], f64) -> bool) {
        let weigh = |score: f64| number_or_zero(score * self.weight);

        match self.members {
            Members::None => true,
            Members::Sorted(sorted) => sorted.iter().all(|(name, score)| visit(name, weigh(score))),
            Members::Set(set) => set.iter().all(|name| visit(name, weigh(1.0))),
        };
    }
}

/// A command with its keys and options.
struct Request<'a> {
    operation: Operation,
    sources: Vec<Source<'a>>,
    aggregate: Aggregate,
    with_scores: bool,
}

impl<'a> Request<'a> {
    /// Reads the number of keys at an index, the keys and the options behind them.
    fn parse(
        turn: &'a Turn<'_>,
        arguments: Arguments<'_>,
        number: usize,
        operation: Operation,
        name: &'static str,
    ) -> Result<Request<'a>, Failure> {
        let (sources, first) = sources(turn, arguments, number, name)?;
        let stores = number > 1;
        let combines = operation != Operation::Difference;
        let mut request =
            Request { operation, sources, aggregate: Aggregate::Sum, with_scores: false };

        let mut index = first;
        while index < arguments.len() {
            let left = arguments.len() - index - 1;
            if combines && left >= request.sources.len() && arguments.is(index, "weights") {
                request.read_weights(arguments, index + 1)?;
                index += 1 + request.sources.len();
            } else if combines && left >= 1 && arguments.is(index, "aggregate") {
                request.aggregate = aggregate(arguments, index + 1)?;
                index += 2;
            } else if !stores && arguments.is(index, "withscores") {
                request.with_scores = true;
                index += 1;
            } else {
                return Err(Failure::Syntax);
            }
        }
        Ok(request)
    }

    fn read_weights(&mut self, arguments: Arguments<'_>, first: usize) -> Result<(), Failure> {
        for (source, index) in self.sources.iter_mut().zip(first..) {
            let refused = |_| Failure::text("ERR weight value is not a float");
            source.weight = arguments.float(index).map_err(refused)?;
        }

        Ok(())
    }

    fn run(mut self) -> Sorted {
        // Sums are made in this order, which a difference in the last digit could tell.
        if self.operation != Operation::Difference {
            self.sources.sort_by_key(Source::len);
        }

        match self.operation {
            Operation::Union => self.union(),
            Operation::Intersection => self.intersection(),
            Operation::Difference => self.difference(),
        }
    }

    fn union(&self) -> Sorted {
        let len = self.sources.iter().map(Source::len).max().unwrap_or(0);
        let mut scores: IndexMap<&[u8], f64, foldhash::fast::RandomState> =
            IndexMap::with_capacity_and_hasher(len, Default::default());

        for source in &self.sources {
            source.each(|name, score| {
                let sum = scores.entry(name);
                sum.and_modify(|sum| *sum = self.aggregate.of(*sum, score)).or_insert(score);
                true
            });
        }
        Sorted::from_scores(scores.into_iter().map(|(name, score)| (Blob::from_slice(name), score)))
    }

    fn intersection(&self) -> Sorted {
        let mut members = Vec::new();

        if let Some((first, others)) = self.sources.split_first() {
            first.each(|name, score| {
                let fold = |sum, other: &Source<'_>| {
                    other.score(name).map(|score| self.aggregate.of(sum, score))
                };
                if let Some(score) = others.iter().try_fold(score, fold) {
                    members.push((Blob::from_slice(name), score));
                }
                true
            });
        }
        Sorted::from_scores(members)
    }

    fn difference(&self) -> Sorted {
        let mut members = Vec::new();

        if let Some((first, others)) = self.sources.split_first() {
            first.each(|name, score| {
                if others.iter().all(|other| other.score(name).is_none()) {
                    members.push((Blob::from_slice(name), score));
                }
                true
            });
        }
        Sorted::from_scores(members)
    }
}

pub(super) fn zunion(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply(turn, arguments, Operation::Union, "zunion", replies)
}

pub(super) fn zinter(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply(turn, arguments, Operation::Intersection, "zinter", replies)
}

pub(super) fn zdiff(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply(turn, arguments, Operation::Difference, "zdiff", replies)
}

pub(super) fn zunionstore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_stored(turn, arguments, Operation::Union, "zunionstore", replies)
}

pub(super) fn zinterstore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_stored(turn, arguments, Operation::Intersection, "zinterstore", replies)
}

pub(super) fn zdiffstore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_stored(turn, arguments, Operation::Difference, "zdiffstore", replies)
}

pub(super) fn zintercard(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let (mut sources, mut index) = sources(turn, arguments, 1, "zintercard")?;
    let mut limit = 0;
    while index < arguments.len() {
        if !arguments.is(index, "limit") || index + 1 == arguments.len() {
            return Err(Failure::Syntax);
        }
        limit = at_least(arguments, index + 1, 0, "ERR LIMIT can't be negative")?;
        index += 2;
    }

    sources.sort_by_key(Source::len);
    let mut found = 0;
    if let Some((first, others)) = sources.split_first() {
        first.each(|name, _| {
            found += i64::from(others.iter().all(|other| other.score(name).is_some()));
            limit == 0 || found < limit
        });
    }
    replies.integer(found);
    Ok(())
}

fn reply(
    turn: &Turn<'_>,
    arguments: Arguments<'_>,
    operation: Operation,
    name: &'static str,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let request = Request::parse(turn, arguments, 1, operation, name)?;
    let with_scores = request.with_scores;

    reply_members(replies, request.run().iter(), with_scores);
    Ok(())
}

fn reply_stored(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    operation: Operation,
    name: &'static str,
    replies: &mut Replies,
) -> Outcome {
    let result = Request::parse(turn, arguments, 2, operation, name)?.run();

    replies.integer(result.len() as i64);
    store(turn, arguments.at(1), result, name)
}

/// The keys behind their number at an index, and the index behind them.
fn sources<'a>(
    turn: &'a Turn<'_>,
    arguments: Arguments<'_>,
    number: usize,
    name: &'static str,
) -> Result<(Vec<Source<'a>>, usize), Failure> {
    let len = arguments.integer(number)?;
    if len < 1 {
        let line = format!("ERR at least 1 input key is needed for '{name}' command");
        return Err(Failure::owned(line));
    }
    let end = usize::try_from(len).ok().and_then(|len| len.checked_add(number + 1));
    let end = end.filter(|end| *end <= arguments.len()).ok_or(Failure::Syntax)?;

    let keys = (number + 1)..end;
    let sources =
        keys.map(|index| Source::of(turn, arguments.at(index))).collect::<Result<_, _>>()?;
    Ok((sources, end))
}

fn aggregate(arguments: Arguments<'_>, index: usize) -> Result<Aggregate, Failure> {
    let words = [("sum", Aggregate::Sum), ("min", Aggregate::Min), ("max", Aggregate::Max)];
    let word = words.into_iter().find(|(word, _)| arguments.is(index, word));

    word.map(|(_, aggregate)| aggregate).ok_or(Failure::Syntax)
}
