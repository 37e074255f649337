//! Commands about keys of any type.

use super::databases::database_at;
use crate::notify::Class;
use crate::turn::{Handler, Outcome, Turn};
use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::{Object, Value};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Del, del),
    (Id::Unlink, del),
    (Id::Exists, exists),
    (Id::Touch, exists),
    (Id::Type, kind),
    (Id::Rename, rename),
    (Id::Renamenx, rename_to_free),
    (Id::Copy, copy),
    (Id::Move, to_database),
];

const SAME_OBJECT: Failure = Failure::text("ERR source and destination objects are the same");

fn del(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let mut removed = 0;
    for key in arguments.iter().skip(1) {
        if turn.remove(key) {
            turn.notify(Class::Generic, "del", key);
            removed += 1;
        }
    }
    replies.integer(removed);
    Ok(())
}

fn exists(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let count = arguments.iter().skip(1).filter(|key| turn.exists(key)).count();
    replies.integer(count as i64);
    Ok(())
}

fn kind(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let object = turn.get(arguments.at(1));
    replies.simple(object.map_or("none", |object| object.value.kind().name()));
    Ok(())
}

fn rename(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let (from, to) = (arguments.at(1), arguments.at(2));
    if !turn.exists(from) {
        return Err(Failure::NoSuchKey);
    }

    if from != to {
        move_name(turn, from, to);
    }
    replies.ok();
    Ok(())
}

fn rename_to_free(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let (from, to) = (arguments.at(1), arguments.at(2));
    if !turn.exists(from) {
        return Err(Failure::NoSuchKey);
    }

    let is_free = !turn.exists(to);
    if is_free {
        move_name(turn, from, to);
    }
    replies.integer(i64::from(is_free));
    Ok(())
}

fn move_name(turn: &mut Turn<'_>, from: &[u8], to: &[u8]) {
    let Some(object) = turn.take(from) else { return };
    turn.replace_in(turn.database(), to, object);
    turn.notify(Class::Generic, "rename_from", from);
    turn.notify(Class::Generic, "rename_to", to);
}

fn copy(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let (from, to) = (arguments.at(1), arguments.at(2));
    let mut target = turn.database();
    let mut replaces = false;
    let mut at = 3;
    while at < arguments.len() {
        if arguments.is(at, "replace") {
            replaces = true;
            at += 1;
        } else if arguments.is(at, "db") && at + 1 < arguments.len() {
            target = database_at(arguments, at + 1)?;
            at += 2;
        } else {
            return Err(Failure::Syntax);
        }
    }

    if target == turn.database() && from == to {
        return Err(SAME_OBJECT);
    }
    let is_free = turn.get_in(target, to).is_none();
    let Some(object) = turn.get(from).filter(|_| is_free || replaces) else {
        replies.integer(0);
        return Ok(());
    };

    let object = Object { expires_ms: object.expires_ms, ..Object::new(object.value.clone()) };
    turn.replace_in(target, to, object);
    turn.notify_in(Class::Generic, "copy_to", target, to);
    replies.integer(1);
    Ok(())
}

fn to_database(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let source = turn.database();
    let target = database_at(arguments, 2)?;
    if source == target {
        return Err(SAME_OBJECT);
    }
    if !turn.exists(key) || turn.get_in(target, key).is_some() {
        replies.integer(0);
        return Ok(());
    }

    let Some(object) = turn.take(key) else {
        return Err(Failure::NoSuchKey);
    };
    turn.put_in(target, key, without_number(object));
    turn.notify_in(Class::Generic, "move_from", source, key);
    turn.notify_in(Class::Generic, "move_to", target, key);
    replies.integer(1);
    Ok(())
}

/// An object without the number of its entries, which are written again in another database.
fn without_number(object: Object) -> Object {
    let Object { mut value, expires_ms, .. } = object;
    if let Some(collection) = Value::collection_mut(&mut value) {
        collection.untrack();
    }
    Object { expires_ms, ..Object::new(value) }
}
