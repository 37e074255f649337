//! What is read of lists: lengths, ranges, single entries and their positions.

use raingauge_resp::{Arguments, Failure, Replies};
use raingauge_values::{Collection, List};

use super::position;
use crate::commands::ranges::{at_least, positions, symmetric};
use crate::turn::{Outcome, Turn};

pub(super) fn llen(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let list = turn.list(arguments.at(1))?;

    replies.integer(list.map_or(0, |list| list.len() as i64));
    Ok(())
}

pub(super) fn lrange(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let start = arguments.integer(2)?;
    let stop = arguments.integer(3)?;
    let Some(list) = turn.list(arguments.at(1))? else {
        replies.array(0);
        return Ok(());
    };

    let entries = list.range(positions(start, stop, list.len()));
    replies.array(entries.len());
    for entry in entries {
        replies.shared(entry.clone());
    }
    Ok(())
}

pub(super) fn lindex(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let Some(list) = turn.list(arguments.at(1))? else {
        replies.null();
        return Ok(());
    };

    let index = arguments.integer(2)?;
    match position(index, list.len()).and_then(|position| list.get(position)) {
        Some(entry) => replies.shared(entry.clone()),
        None => replies.null(),
    }
    Ok(())
}

/// What `LPOS` looks for.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// The first match that counts: 1 is the first of all, -1 the last one.
    rank: i64,
    /// Matches to reply, 0 for all of them. `None` replies one, and not as an array.
    count: Option<usize>,
    /// Entries to compare, 0 for all of them.
    compared_max: usize,
}

impl Search {
    fn parse(arguments: Arguments<'_>) -> Result<Search, Failure> {
        let mut search = Search { rank: 1, count: None, compared_max: 0 };
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);

        for index in (3..arguments.len()).step_by(2) {
            let value = index + 1;
            if value == arguments.len() {
                return Err(Failure::Syntax);
            }
            if arguments.is(index, "rank") {
                search.rank = parse_rank(arguments, value)?;
            } else if arguments.is(index, "count") {
                let count = at_least(arguments, value, 0, "ERR COUNT can't be negative")?;
                search.count = Some(size(count));
            } else if arguments.is(index, "maxlen") {
                let compared_max = at_least(arguments, value, 0, "ERR MAXLEN can't be negative")?;
                search.compared_max = size(compared_max);
            } else {
                return Err(Failure::Syntax);
            }
        }
        Ok(search)
    }

    /// The positions that match, in the order in which they are found.
    fn matches(&self, list: &List, sought: &[u8]) -> Vec<usize> {
        let unless_zero = |max: usize| if max == 0 { usize::MAX } else { max };
        let skipped = usize::try_from(self.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);

        let len = list.len();
        let walk = (0..len).map(|step| if self.rank < 0 { len - 1 - step } else { step });
        walk.take(unless_zero(self.compared_max))
            .filter(|position| list.get(*position).is_some_and(|entry| entry == sought))
            .skip(skipped)
            .take(self.count.map_or(1, unless_zero))
            .collect()
    }
}

fn parse_rank(arguments: Arguments<'_>, index: usize) -> Result<i64, Failure> {
    let rank = symmetric(arguments, index)?;
    if rank == 0 {
        let line = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second \
                    ... or use negative to start from the end of the list";
        return Err(Failure::text(line));
    }

    Ok(rank)
}

pub(super) fn lpos(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Outcome {
    let search = Search::parse(arguments)?;
    let list = turn.list(arguments.at(1))?;
    let found = list.map_or_else(Vec::new, |list| search.matches(list, arguments.at(2)));

    if search.count.is_some() {
        replies.array(found.len());
    } else if found.is_empty() {
        replies.null();
    }
    for position in found {
        replies.integer(position as i64);
    }
    Ok(())
}
