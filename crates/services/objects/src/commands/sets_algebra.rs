//! Intersections, unions and differences of sets.

use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::{Blob, Collection, Set, Value};

use crate::notify::Class;
use crate::turn::{Expiry, Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Sinter, sinter),
    (Id::Sintercard, sintercard),
    (Id::Sinterstore, sinterstore),
    (Id::Sunion, sunion),
    (Id::Sunionstore, sunionstore),
    (Id::Sdiff, sdiff),
    (Id::Sdiffstore, sdiffstore),
];

/// Members up to which a set may have an encoding of its own.
const SMALL_LEN_MAX: usize = 512;

/// The sets of some keys, in order. A key that is not there is an empty set, `None`.
fn sets<'t>(turn: &'t Turn<'_>, keys: Arguments<'_>) -> Result<Vec<Option<&'t Set>>, Failure> {
    keys.iter().map(|key| turn.set(key)).collect()
}

/// Members of all sets, at most `limit`.
fn intersection<'t>(sets: &[Option<&'t Set>], limit: usize) -> Vec<&'t Blob> {
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<&Set>>>() else {
        return Vec::new();
    };
    // The smallest set is walked, and the next smaller ones miss members soonest.
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else {
        return Vec::new();
    };
    let common = |member: &&Blob| others.iter().all(|set| set.contains(member));
    smallest.iter().filter(common).take(limit).collect()
}

/// Members of any set, each once.
fn union(sets: &[Option<&Set>]) -> Set {
    // A copy of the largest set spares hashing its members again. A small one is built member by
    // member, for its encoding is that of the members it has, not of those that it once had.
    let mut sets: Vec<&Set> = sets.iter().copied().flatten().collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let Some((largest, others)) = sets.split_first() else {
        return Set::new();
    };
    let mut union = if largest.len() > SMALL_LEN_MAX {
        (*largest).clone()
    } else {
        largest.iter().map(|member| member.as_slice()).collect()
    };
    for member in others.iter().flat_map(|set| set.iter()) {
        union.insert(member);
    }
    union
}

/// Members of the first set that no other has.
fn difference<'t>(sets: &[Option<&'t Set>]) -> Vec<&'t Blob> {
    let Some((Some(first), others)) = sets.split_first() else {
        return Vec::new();
    };
    let others: Vec<&Set> = others.iter().copied().flatten().collect();
    let own = |member: &&Blob| !others.iter().any(|set| set.contains(member));
    first.iter().filter(own).collect()
}

fn reply<'t>(members: impl ExactSizeIterator<Item = &'t Blob>, replies: &mut Replies) {
    replies.set(members.len());
    for member in members {
        replies.bulk(member);
    }
}

/// Puts a set in place of whatever the destination held; an empty one removes the key.
fn store(
    turn: &mut Turn<'_>,
    destination: &[u8],
    set: Set,
    event: &'static str,
    replies: &mut Replies,
) -> Outcome {
    let len = set.len();
    if len > 0 {
        turn.check_bytes(destination, set.weight())?;
        turn.put(destination, Value::Set(Box::new(set)), Expiry::Clear);
        turn.notify(Class::Set, event, destination);
    } else if turn.remove(destination) {
        turn.notify(Class::Generic, "del", destination);
    }
    replies.integer(len as i64);
    Ok(())
}

fn set_of(members: Vec<&Blob>) -> Set {
    members.into_iter().map(|member| member.as_slice()).collect()
}

fn sinter(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let members = intersection(&sets(turn, arguments.from(1))?, usize::MAX);
    reply(members.into_iter(), replies);
    Ok(())
}

fn sinterstore(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = set_of(intersection(&sets(turn, arguments.from(2))?, usize::MAX));
    store(turn, arguments.at(1), set, "sinterstore", replies)
}

fn sintercard(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let number = arguments.integer(1).ok().and_then(|number| usize::try_from(number).ok());
    let number = number
        .filter(|number| *number > 0)
        .ok_or(Failure::text("ERR numkeys should be greater than 0"))?;
    if number > arguments.len() - 2 {
        return Err(Failure::text("ERR Number of keys can't be greater than number of args"));
    }

    let mut limit = 0;
    let mut index = 2 + number;
    while index < arguments.len() {
        if !arguments.is(index, "limit") || index + 1 == arguments.len() {
            return Err(Failure::Syntax);
        }
        let number = arguments.integer(index + 1).ok();
        limit = number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or(Failure::text("ERR LIMIT can't be negative"))?;
        index += 2;
    }

    let keys: Result<Vec<_>, Failure> =
        (2..2 + number).map(|index| turn.set(arguments.at(index))).collect();
    // Zero is no limit.
    let limit = if limit == 0 { usize::MAX } else { limit };
    replies.integer(intersection(&keys?, limit).len() as i64);
    Ok(())
}

fn sunion(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = union(&sets(turn, arguments.from(1))?);
    reply(set.iter(), replies);
    Ok(())
}

fn sunionstore(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = union(&sets(turn, arguments.from(2))?);
    store(turn, arguments.at(1), set, "sunionstore", replies)
}

fn sdiff(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let members = difference(&sets(turn, arguments.from(1))?);
    reply(members.into_iter(), replies);
    Ok(())
}

fn sdiffstore(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = set_of(difference(&sets(turn, arguments.from(2))?));
    store(turn, arguments.at(1), set, "sdiffstore", replies)
}
