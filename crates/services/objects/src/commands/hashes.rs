//! Hashes.

use raingauge_resp::number::Real;
use raingauge_resp::{Arguments, Failure, Id, Protocol, Replies};
use raingauge_values::number::parse_i64;
use raingauge_values::{Collection, Hash};

use super::picks::Picks;
use super::walk::{self, Walk};
use crate::notify::Class;
use crate::turn::{Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Hset, hset),
    (Id::Hmset, hmset),
    (Id::Hsetnx, hsetnx),
    (Id::Hget, hget),
    (Id::Hmget, hmget),
    (Id::Hgetall, hgetall),
    (Id::Hkeys, hkeys),
    (Id::Hvals, hvals),
    (Id::Hlen, hlen),
    (Id::Hstrlen, hstrlen),
    (Id::Hexists, hexists),
    (Id::Hdel, hdel),
    (Id::Hincrby, hincrby),
    (Id::Hincrbyfloat, hincrbyfloat),
    (Id::Hrandfield, hrandfield),
    (Id::Hscan, hscan),
];

fn hset(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let added = set_pairs(turn, arguments, "hset")?;
    replies.integer(added);
    Ok(())
}

fn hmset(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    set_pairs(turn, arguments, "hmset")?;
    replies.ok();
    Ok(())
}

/// Sets fields. Returns how many are new.
fn set_pairs(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    command: &'static str,
) -> Result<i64, Failure> {
    if arguments.len() % 2 == 1 {
        return Err(Failure::Arity(command));
    }
    let key = arguments.at(1);
    turn.hash(key)?;
    for index in (2..arguments.len()).step_by(2) {
        super::check_name(arguments.at(index))?;
    }

    let hash = turn.hash_or_new(key)?;
    let mut added = 0;
    for index in (2..arguments.len()).step_by(2) {
        added += i64::from(hash.set(arguments.at(index), arguments.at(index + 1)));
    }
    turn.notify(Class::Hash, "hset", key);
    Ok(added)
}

fn hsetnx(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let field = arguments.at(2);
    let absent = !turn.hash(key)?.is_some_and(|hash| hash.contains(field));
    if absent {
        super::check_name(field)?;
        turn.hash_or_new(key)?.set(field, arguments.at(3));
        turn.notify(Class::Hash, "hset", key);
    }
    replies.integer(i64::from(absent));
    Ok(())
}

fn reply_field(hash: Option<&Hash>, field: &[u8], replies: &mut Replies) {
    match hash.and_then(|hash| hash.get(field)) {
        Some(value) => replies.bulk(value),
        None => replies.null(),
    }
}

fn hget(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    reply_field(turn.hash(arguments.at(1))?, arguments.at(2), replies);
    Ok(())
}

fn hmget(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let hash = turn.hash(arguments.at(1))?;
    replies.array(arguments.len() - 2);
    for field in arguments.from(2).iter() {
        reply_field(hash, field, replies);
    }
    Ok(())
}

fn hgetall(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let hash = turn.hash(arguments.at(1))?;
    replies.map(hash.map_or(0, |hash| hash.len()));
    for (field, value) in hash.iter().flat_map(|hash| hash.iter()) {
        replies.bulk(field);
        replies.bulk(value);
    }
    Ok(())
}

fn hkeys(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let hash = turn.hash(arguments.at(1))?;
    replies.array(hash.map_or(0, |hash| hash.len()));
    for (field, _) in hash.iter().flat_map(|hash| hash.iter()) {
        replies.bulk(field);
    }
    Ok(())
}

fn hvals(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let hash = turn.hash(arguments.at(1))?;
    replies.array(hash.map_or(0, |hash| hash.len()));
    for (_, value) in hash.iter().flat_map(|hash| hash.iter()) {
        replies.bulk(value);
    }
    Ok(())
}

fn hlen(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let len = turn.hash(arguments.at(1))?.map_or(0, |hash| hash.len());
    replies.integer(len as i64);
    Ok(())
}

fn hstrlen(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let value = turn.hash(arguments.at(1))?.and_then(|hash| hash.get(arguments.at(2)));
    replies.integer(value.map_or(0, |value| value.len() as i64));
    Ok(())
}

fn hexists(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let hash = turn.hash(arguments.at(1))?;
    replies.integer(i64::from(hash.is_some_and(|hash| hash.contains(arguments.at(2)))));
    Ok(())
}

fn hdel(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let fields = arguments.from(2);
    let Some(hash) = turn.hash_mut(key)? else {
        replies.integer(0);
        return Ok(());
    };

    let removed = fields.iter().filter(|field| hash.remove(field)).count();
    if removed > 0 {
        turn.notify(Class::Hash, "hdel", key);
    } else {
        turn.unchanged(key);
    }
    replies.integer(removed as i64);
    Ok(())
}

fn hincrby(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let field = arguments.at(2);
    let increment = arguments.integer(3)?;
    let held = match turn.hash(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => parse_i64(value).ok_or(Failure::text("ERR hash value is not an integer"))?,
        None => 0,
    };
    let sum = held.checked_add(increment).ok_or(Failure::Overflow)?;

    super::check_name(field)?;
    turn.hash_or_new(key)?.set(field, itoa::Buffer::new().format(sum).as_bytes());
    turn.notify(Class::Hash, "hincrby", key);
    replies.integer(sum);
    Ok(())
}

fn hincrbyfloat(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let field = arguments.at(2);
    let increment = Real::parse(arguments.at(3)).ok_or(Failure::NotFloat)?;
    if !arguments.float(3)?.is_finite() {
        return Err(Failure::text("ERR value is NaN or Infinity"));
    }
    let value = turn.hash(key)?.and_then(|hash| hash.get(field));
    let held = Real::parse(value.map_or(b"0", |value| value.as_slice()))
        .ok_or(Failure::text("ERR hash value is not a float"))?;
    let sum = held.plus(increment).ok_or(Failure::SumNotFinite)?.to_string();

    super::check_name(field)?;
    turn.hash_or_new(key)?.set(field, sum.as_bytes());
    turn.notify(Class::Hash, "hincrbyfloat", key);
    replies.bulk(sum.as_bytes());
    Ok(())
}

fn hrandfield(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    if arguments.len() == 2 {
        let len = turn.hash(key)?.map_or(0, |hash| hash.len());
        let positions = Picks::Repeated(1).positions(len, turn.random());
        let picked = positions.first().zip(turn.hash(key)?);
        match picked.and_then(|(position, hash)| hash.at(*position)) {
            Some((field, _)) => replies.bulk(field),
            None => replies.null(),
        }
        return Ok(());
    }

    let picks = Picks::parse(arguments, 2)?;
    let with_values = match arguments.len() {
        3 => false,
        4 if arguments.is(3, "withvalues") => true,
        _ => return Err(Failure::Syntax),
    };
    if with_values {
        Picks::parse_pairs(arguments, 2)?;
    }
    let len = turn.hash(key)?.map_or(0, |hash| hash.len());
    let positions = picks.positions(len, turn.random());
    reply_picked(turn.hash(key)?, &positions, with_values, replies);
    Ok(())
}

fn reply_picked(
    hash: Option<&Hash>,
    positions: &[usize],
    with_values: bool,
    replies: &mut Replies,
) {
    // Clients of the newer protocol get pairs, others a flat list.
    let nested = with_values && replies.protocol() == Protocol::Three;
    let flat = with_values && !nested;
    replies.array(positions.len() * (1 + usize::from(flat)));

    let picked = positions.iter().filter_map(|position| hash?.at(*position));
    for (field, value) in picked {
        if nested {
            replies.array(2);
        }
        replies.bulk(field);
        if with_values {
            replies.bulk(value);
        }
    }
}

fn hscan(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let cursor = arguments.cursor(2)?;
    let Some(hash) = turn.hash(key)? else {
        walk::reply_end(replies);
        return Ok(());
    };
    let walk = Walk::parse(arguments, 3)?;

    let mut found = Vec::new();
    let next = hash.scan(cursor, turn.load_number(key), walk.count, |field, value| {
        if walk.admits(field) {
            found.push((field.as_slice(), value.as_slice()));
        }
    });
    walk::reply_cursor(next, replies);
    replies.array(found.len() * 2);
    for (field, value) in found {
        replies.bulk(field);
        replies.bulk(value);
    }
    Ok(())
}
