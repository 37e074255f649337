//! Sets.

use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::Collection;
use raingauge_values::number::parse_i64;
use rand::Rng;

use super::picks::Picks;
use super::walk::{self, Walk};
use crate::notify::Class;
use crate::turn::{Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Sadd, sadd),
    (Id::Srem, srem),
    (Id::Sismember, sismember),
    (Id::Smismember, smismember),
    (Id::Smembers, smembers),
    (Id::Scard, scard),
    (Id::Spop, spop),
    (Id::Srandmember, srandmember),
    (Id::Smove, smove),
    (Id::Sscan, sscan),
];

fn sadd(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let members = arguments.from(2);
    turn.set(key)?;
    members.iter().try_for_each(super::check_name)?;

    let set = turn.set_or_new(key)?;
    let added = members.iter().filter(|member| set.insert(member)).count();
    if added > 0 {
        turn.notify(Class::Set, "sadd", key);
    } else {
        turn.unchanged(key);
    }
    replies.integer(added as i64);
    Ok(())
}

fn srem(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let members = arguments.from(2);
    let Some(set) = turn.set_mut(key)? else {
        replies.integer(0);
        return Ok(());
    };

    let removed = members.iter().filter(|member| set.remove(member)).count();
    if removed > 0 {
        turn.notify(Class::Set, "srem", key);
    } else {
        turn.unchanged(key);
    }
    replies.integer(removed as i64);
    Ok(())
}

fn sismember(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = turn.set(arguments.at(1))?;
    replies.integer(i64::from(set.is_some_and(|set| set.contains(arguments.at(2)))));
    Ok(())
}

fn smismember(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = turn.set(arguments.at(1))?;
    replies.array(arguments.len() - 2);
    for member in arguments.from(2).iter() {
        replies.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

fn smembers(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let set = turn.set(arguments.at(1))?;
    replies.set(set.map_or(0, |set| set.len()));
    for member in set.iter().flat_map(|set| set.iter()) {
        replies.bulk(member);
    }
    Ok(())
}

fn scard(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let len = turn.set(arguments.at(1))?.map_or(0, |set| set.len());
    replies.integer(len as i64);
    Ok(())
}

fn spop(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    match arguments.len() {
        2 => {}
        3 => return spop_many(turn, arguments, replies),
        _ => return Err(Failure::Syntax),
    }

    let len = turn.set(key)?.map_or(0, |set| set.len());
    if len == 0 {
        replies.null();
        return Ok(());
    }
    let position = turn.random().random_range(0..len);
    match turn.set_or_new(key)?.take_at(position) {
        Some(member) => replies.bulk(&member),
        None => replies.null(),
    }
    turn.notify(Class::Set, "spop", key);
    Ok(())
}

fn spop_many(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let count = arguments.integer(2).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(Failure::NotPositive)?;
    let len = turn.set(key)?.map_or(0, |set| set.len());
    let count = count.min(len);
    replies.set(count);
    if count == 0 {
        return Ok(());
    }

    // Each draw is one of the members that the draws before it left.
    let random = turn.random();
    let draws: Vec<usize> = (0..count).map(|drawn| random.random_range(0..len - drawn)).collect();
    let set = turn.set_or_new(key)?;
    for position in draws {
        if let Some(member) = set.take_at(position) {
            replies.bulk(&member);
        }
    }
    turn.notify(Class::Set, "spop", key);
    Ok(())
}

fn srandmember(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let picks = match arguments.len() {
        2 => Picks::Repeated(1),
        3 => Picks::parse(arguments, 2)?,
        _ => return Err(Failure::Syntax),
    };
    let len = turn.set(key)?.map_or(0, |set| set.len());
    let positions = picks.positions(len, turn.random());
    let set = turn.set(key)?;
    let mut picked = positions.iter().filter_map(|position| set?.at(*position));

    if arguments.len() == 2 {
        match picked.next() {
            Some(member) => replies.bulk(member),
            None => replies.null(),
        }
    } else {
        replies.array(positions.len());
        picked.for_each(|member| replies.bulk(member));
    }
    Ok(())
}

fn smove(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let source = arguments.at(1);
    let destination = arguments.at(2);
    let member = arguments.at(3);
    if !turn.exists(source) {
        replies.integer(0);
        return Ok(());
    }
    let held = turn.set(source)?;
    let found = held.is_some_and(|set| set.contains(member));
    let last = held.is_some_and(|set| set.len() == 1);
    let known = turn.set(destination)?.is_some_and(|set| set.contains(member));
    if !found || source == destination {
        replies.integer(i64::from(found));
        return Ok(());
    }
    if !known {
        turn.check_entry(destination, member.len())?;
    }

    turn.notify(Class::Set, "srem", source);
    if last {
        turn.remove(source);
        turn.notify(Class::Generic, "del", source);
    } else {
        turn.set_or_new(source)?.remove(member);
    }
    if !known {
        turn.set_or_new(destination)?.insert(member);
        turn.notify(Class::Set, "sadd", destination);
    }
    replies.integer(1);
    Ok(())
}

fn sscan(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let cursor = arguments.cursor(2)?;
    let Some(set) = turn.set(key)? else {
        walk::reply_end(replies);
        return Ok(());
    };
    let walk = Walk::parse(arguments, 3)?;

    let mut found = Vec::new();
    let next = set.scan(cursor, turn.load_number(key), walk.count, |member| {
        if walk.admits(member) {
            found.push(member.as_slice());
        }
    });
    // Clients know small sets of integers in their order.
    if set.encoding() == "intset" {
        found.sort_by_cached_key(|member| parse_i64(member));
    }
    walk::reply_cursor(next, replies);
    replies.array(found.len());
    for member in found {
        replies.bulk(member);
    }
    Ok(())
}
