//! Ranges of members: by rank, by score and by name, forward and back, to reply, to store and to
//! remove.

use std::ops::Range;

use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::sorted::{LexRange, Members, ScoreRange};
use raingauge_values::{Blob, Collection, Sorted, Value};

use super::reply_members;
use crate::commands::ranges::{self, limited, positions, positions_back};
use crate::notify::Class;
use crate::turn::{Expiry, Outcome, Turn};

/// What the ends of a range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ranks,
    Scores,
    Names,
}

/// The ends of a range.
#[derive(Debug, Clone, Copy)]
enum Ends<'a> {
    Ranks(i64, i64),
    Scores(ScoreRange),
    Names(LexRange<'a>),
}

/// A range as a command asks for it.
#[derive(Debug, Clone, Copy)]
struct Selection<'a> {
    ends: Ends<'a>,
    back: bool,
    with_scores: bool,
    offset: i64,
    count: i64,
}

/// What the name of a command says about its range already.
#[derive(Debug, Clone, Copy)]
struct Form {
    kind: Option<Kind>,
    back: Option<bool>,
    stores: bool,
}

const BY_OPTIONS: Form = Form { kind: None, back: None, stores: false };

impl<'a> Selection<'a> {
    /// Reads the two ends that follow the key at an index, and the options behind them.
    fn parse(arguments: Arguments<'a>, key: usize, form: Form) -> Result<Selection<'a>, Failure> {
        let Form { mut kind, mut back, stores } = form;
        let mut with_scores = false;
        let mut offset = 0;
        let mut count = -1;

        let mut index = key + 3;
        while index < arguments.len() {
            let left = arguments.len() - index - 1;
            if !stores && arguments.is(index, "withscores") {
                with_scores = true;
            } else if arguments.is(index, "limit") && left >= 2 {
                offset = arguments.integer(index + 1)?;
                count = arguments.integer(index + 2)?;
                index += 2;
            } else if back.is_none() && arguments.is(index, "rev") {
                back = Some(true);
            } else if kind.is_none() && arguments.is(index, "bylex") {
                kind = Some(Kind::Names);
            } else if kind.is_none() && arguments.is(index, "byscore") {
                kind = Some(Kind::Scores);
            } else {
                return Err(Failure::Syntax);
            }
            index += 1;
        }

        let kind = kind.unwrap_or(Kind::Ranks);
        let back = back.unwrap_or(false);
        check_options(kind, with_scores, count)?;
        let ends = Ends::parse(kind, back, arguments.at(key + 1), arguments.at(key + 2))?;
        Ok(Selection { ends, back, with_scores, offset, count })
    }

    /// The ranks of the members, the lowest first whatever the direction.
    fn ranks(&self, sorted: &Sorted) -> Range<usize> {
        let ranks = match self.ends {
            Ends::Ranks(start, stop) if self.back => {
                return positions_back(start, stop, sorted.len());
            }
            Ends::Ranks(start, stop) => return positions(start, stop, sorted.len()),
            Ends::Scores(range) => sorted.ranks_by_score(range),
            Ends::Names(range) => sorted.ranks_by_name(range),
        };

        limited(ranks, self.offset, self.count, self.back)
    }

    fn members<'s>(&self, sorted: &'s Sorted) -> Members<'s> {
        let ranks = self.ranks(sorted);

        if self.back { sorted.range_back(ranks) } else { sorted.range(ranks) }
    }
}

fn check_options(kind: Kind, with_scores: bool, count: i64) -> Result<(), Failure> {
    if count != -1 && kind == Kind::Ranks {
        let line = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE \
                    or BYLEX";
        return Err(Failure::text(line));
    }
    if with_scores && kind == Kind::Names {
        let line = "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
        return Err(Failure::text(line));
    }

    Ok(())
}

impl<'a> Ends<'a> {
    /// Parses two ends, of which the greater comes first on the way back.
    fn parse(
        kind: Kind,
        back: bool,
        first: &'a [u8],
        second: &'a [u8],
    ) -> Result<Ends<'a>, Failure> {
        let (min, max) = if back { (second, first) } else { (first, second) };

        match kind {
            Kind::Ranks => {
                let rank =
                    |text| raingauge_resp::number::parse_i64(text).ok_or(Failure::NotInteger);
                Ok(Ends::Ranks(rank(first)?, rank(second)?))
            }
            Kind::Scores => ranges::scores(min, max).map(Ends::Scores),
            Kind::Names => ranges::names(min, max).map(Ends::Names),
        }
    }
}

pub(super) fn zrange(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_range(turn, arguments, BY_OPTIONS, replies)
}

pub(super) fn zrevrange(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_range(turn, arguments, form(Kind::Ranks, true), replies)
}

pub(super) fn zrangebyscore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_range(turn, arguments, form(Kind::Scores, false), replies)
}

pub(super) fn zrevrangebyscore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_range(turn, arguments, form(Kind::Scores, true), replies)
}

pub(super) fn zrangebylex(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_range(turn, arguments, form(Kind::Names, false), replies)
}

pub(super) fn zrevrangebylex(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    reply_range(turn, arguments, form(Kind::Names, true), replies)
}

pub(super) fn zrangestore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let selection = Selection::parse(arguments, 2, Form { stores: true, ..BY_OPTIONS })?;
    let members = match turn.sorted(arguments.at(2))? {
        None => Vec::new(),
        Some(sorted) => {
            let copy = |(name, score)| (Blob::from_slice(name), score);
            selection.members(sorted).map(copy).collect()
        }
    };

    let target = arguments.at(1);
    replies.integer(members.len() as i64);
    store(turn, target, Sorted::from_scores(members), "zrangestore")
}

pub(super) fn zcount(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    count(turn, arguments, Kind::Scores, replies)
}

pub(super) fn zlexcount(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    count(turn, arguments, Kind::Names, replies)
}

pub(super) fn zremrangebyrank(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    remove_range(turn, arguments, Kind::Ranks, "zremrangebyrank", replies)
}

pub(super) fn zremrangebyscore(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    remove_range(turn, arguments, Kind::Scores, "zremrangebyscore", replies)
}

pub(super) fn zremrangebylex(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    remove_range(turn, arguments, Kind::Names, "zremrangebylex", replies)
}

/// Stores the result of a command in the place of what the key had; an empty one removes the key.
pub(super) fn store(
    turn: &mut Turn<'_>,
    key: &[u8],
    result: Sorted,
    event: &'static str,
) -> Outcome {
    if !result.is_empty() {
        turn.check_bytes(key, result.weight())?;
        turn.put(key, Value::Sorted(Box::new(result)), Expiry::Clear);
        turn.notify(Class::Sorted, event, key);
    } else if turn.remove(key) {
        turn.notify(Class::Generic, "del", key);
    }
    Ok(())
}

fn form(kind: Kind, back: bool) -> Form {
    Form { kind: Some(kind), back: Some(back), stores: false }
}

fn reply_range(
    turn: &Turn<'_>,
    arguments: Arguments<'_>,
    form: Form,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let selection = Selection::parse(arguments, 1, form)?;

    match turn.sorted(arguments.at(1))? {
        Some(sorted) => {
            reply_members(replies, selection.members(sorted), selection.with_scores);
        }
        None => replies.array(0),
    }
    Ok(())
}

/// The ranks of a range whose ends follow the key, and that has no options.
fn ranks_of(
    turn: &Turn<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
) -> Result<Range<usize>, Failure> {
    let ends = Ends::parse(kind, false, arguments.at(2), arguments.at(3))?;
    let selection = Selection { ends, back: false, with_scores: false, offset: 0, count: -1 };
    let sorted = turn.sorted(arguments.at(1))?;

    Ok(sorted.map_or(0..0, |sorted| selection.ranks(sorted)))
}

fn count(
    turn: &Turn<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    replies: &mut Replies,
) -> Result<(), Failure> {
    replies.integer(ranks_of(turn, arguments, kind)?.len() as i64);
    Ok(())
}

fn remove_range(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    event: &'static str,
    replies: &mut Replies,
) -> Outcome {
    let key = arguments.at(1);
    let ranks = ranks_of(turn, arguments, kind)?;
    replies.integer(ranks.len() as i64);

    if !ranks.is_empty()
        && let Some(sorted) = turn.sorted_mut(key)?
    {
        sorted.remove_range(ranks);
        turn.notify(Class::Sorted, event, key);
    }
    Ok(())
}
