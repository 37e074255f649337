//! Strings as a whole: get, set, with conditions and lifetimes.

use raingauge_resp::{Arguments, Failure, Id, Replies};
use raingauge_values::text::SHARED_LEN_MIN;
use raingauge_values::{Text, Value, head};

use super::expiry::expire_at;
use super::lifetimes::{Lifetime, Unit};
use crate::notify::Class;
use crate::turn::{Expiry, Handler, Outcome, Turn};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Get, get),
    (Id::Set, set),
    (Id::Setnx, setnx),
    (Id::Setex, setex),
    (Id::Psetex, psetex),
    (Id::Getset, getset),
    (Id::Getdel, getdel),
    (Id::Getex, getex),
    (Id::Mget, mget),
    (Id::Mset, mset),
    (Id::Msetnx, msetnx),
    (Id::Strlen, strlen),
    (Id::Delifeq, delifeq),
];

const TOO_LONG: Failure =
    Failure::text("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

/// When `SET` writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    Always,
    Absent,
    Present,
    Equal(&'a [u8]),
}

struct SetOptions<'a> {
    condition: Condition<'a>,
    /// Whether the reply is the former value.
    get: bool,
    lifetime: Lifetime<'a>,
}

impl<'a> SetOptions<'a> {
    fn parse(arguments: Arguments<'a>) -> Result<SetOptions<'a>, Failure> {
        let mut options =
            SetOptions { condition: Condition::Always, get: false, lifetime: Lifetime::Unchanged };
        let mut index = 3;

        while index < arguments.len() {
            let next = arguments.get(index + 1);
            if arguments.is(index, "nx") {
                options.demand(Condition::Absent)?;
            } else if arguments.is(index, "xx") {
                options.demand(Condition::Present)?;
            } else if arguments.is(index, "ifeq") {
                options.demand(Condition::Equal(next.ok_or(Failure::Syntax)?))?;
                index += 1;
            } else if arguments.is(index, "get") {
                options.get = true;
            } else if arguments.is(index, "keepttl") {
                options.lifetime.demand(Lifetime::Keep)?;
            } else {
                let lifetime = Lifetime::parse(arguments, index).ok_or(Failure::Syntax)?;
                options.lifetime.demand(lifetime)?;
                index += 1;
            }
            index += 1;
        }
        Ok(options)
    }

    /// Two conditions contradict each other, unless they are the same word.
    fn demand(&mut self, condition: Condition<'a>) -> Result<(), Failure> {
        if self.condition != Condition::Always && self.condition != condition {
            return Err(Failure::Syntax);
        }
        self.condition = condition;
        Ok(())
    }
}

/// A value as it is kept: a large one shares the buffer that it arrived in, and a smaller one is
/// copied once for memory and store.
pub(super) fn text_of(arguments: Arguments<'_>, index: usize) -> Text {
    let bytes = arguments.at(index);
    if bytes.len() >= SHARED_LEN_MIN {
        Text::shared(arguments.bytes(index))
    } else {
        head::text_of(bytes)
    }
}

/// Replies with a string. A large one is not copied.
pub(super) fn reply_text(replies: &mut Replies, text: &Text) {
    match text.as_shared() {
        Some(bytes) => replies.shared(bytes.clone()),
        None => replies.bulk(&text.bytes()),
    }
}

/// Refuses a string that would be longer than the limit.
pub(super) fn check_len(turn: &Turn<'_>, len: usize) -> Result<(), Failure> {
    if len as u64 > turn.limits().value_bytes_max as u64 { Err(TOO_LONG) } else { Ok(()) }
}

fn reply_get(turn: &Turn<'_>, key: &[u8], replies: &mut Replies) -> Result<(), Failure> {
    match turn.text(key)? {
        Some(text) => reply_text(replies, text),
        None => replies.null(),
    }
    Ok(())
}

fn get(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    reply_get(turn, arguments.at(1), replies)
}

fn set(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let options = SetOptions::parse(arguments)?;
    let key = arguments.at(1);
    check_len(turn, arguments.at(2).len())?;
    let expiry = options.lifetime.expiry("set", turn.now_ms())?;

    // The former value goes out first: the order of errors is that of the checks.
    if options.get {
        reply_get(turn, key, replies)?;
    }
    let met = match options.condition {
        Condition::Always => true,
        Condition::Absent => !turn.exists(key),
        Condition::Present => turn.exists(key),
        Condition::Equal(expected) => {
            turn.text(key)?.is_some_and(|text| *text.bytes() == *expected)
        }
    };
    if !met {
        if !options.get {
            replies.null();
        }
        return Ok(());
    }

    write(turn, arguments, 2, expiry);
    if !options.get {
        replies.ok();
    }
    Ok(())
}

/// Puts the value at `index` under the key of the command, and notifies of it.
fn write(turn: &mut Turn<'_>, arguments: Arguments<'_>, index: usize, expiry: Expiry) {
    let key = arguments.at(1);
    let expires = matches!(expiry, Expiry::At(_));
    let is_there = turn.put(key, Value::Text(text_of(arguments, index)), expiry);
    turn.notify(Class::Text, "set", key);
    if expires {
        turn.notify(Class::Generic, "expire", key);
    }
    if !is_there {
        turn.notify(Class::Expired, "expired", key);
    }
}

fn setnx(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    check_len(turn, arguments.at(2).len())?;
    let absent = !turn.exists(arguments.at(1));
    if absent {
        write(turn, arguments, 2, Expiry::Clear);
    }
    replies.integer(i64::from(absent));
    Ok(())
}

fn setex(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    set_expiring(turn, arguments, Unit::Seconds, "setex", replies)
}

fn psetex(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    set_expiring(turn, arguments, Unit::Milliseconds, "psetex", replies)
}

fn set_expiring(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    unit: Unit,
    command: &'static str,
    replies: &mut Replies,
) -> Outcome {
    check_len(turn, arguments.at(3).len())?;
    let expiry = Lifetime::In(unit, arguments.at(2)).expiry(command, turn.now_ms())?;
    write(turn, arguments, 3, expiry);
    replies.ok();
    Ok(())
}

fn getset(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    reply_get(turn, arguments.at(1), replies)?;
    check_len(turn, arguments.at(2).len())?;
    write(turn, arguments, 2, Expiry::Clear);
    Ok(())
}

fn getdel(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    reply_get(turn, key, replies)?;
    if turn.remove(key) {
        turn.notify(Class::Generic, "del", key);
    }
    Ok(())
}

fn getex(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let mut lifetime = Lifetime::Unchanged;
    let mut index = 2;
    while index < arguments.len() {
        if arguments.is(index, "persist") {
            lifetime.demand(Lifetime::Persist)?;
        } else {
            lifetime.demand(Lifetime::parse(arguments, index).ok_or(Failure::Syntax)?)?;
            index += 1;
        }
        index += 1;
    }

    reply_get(turn, key, replies)?;
    let Some(held) = turn.expires_ms(key) else {
        return Ok(());
    };
    match lifetime {
        Lifetime::Unchanged | Lifetime::Keep => {}
        Lifetime::Persist => {
            if held.is_some() && turn.set_expiry(key, None) {
                turn.notify(Class::Generic, "persist", key);
            }
        }
        Lifetime::In(..) | Lifetime::At(..) => {
            expire_at(turn, key, lifetime.at_ms("getex", turn.now_ms())?);
        }
    }
    Ok(())
}

fn mget(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    replies.array(arguments.len() - 1);
    for key in arguments.from(1).iter() {
        match turn.get(key).map(|object| &object.value) {
            Some(Value::Text(text)) => reply_text(replies, text),
            _ => replies.null(),
        }
    }
    Ok(())
}

fn mset(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    set_pairs(turn, arguments, "mset")?;
    replies.ok();
    Ok(())
}

fn msetnx(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::Arity("msetnx"));
    }
    let taken = (1..arguments.len()).step_by(2).any(|index| turn.exists(arguments.at(index)));
    if !taken {
        set_pairs(turn, arguments, "msetnx")?;
    }
    replies.integer(i64::from(!taken));
    Ok(())
}

fn set_pairs(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    command: &'static str,
) -> Result<(), Failure> {
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::Arity(command));
    }
    for index in (2..arguments.len()).step_by(2) {
        check_len(turn, arguments.at(index).len())?;
    }
    for index in (1..arguments.len()).step_by(2) {
        let key = arguments.at(index);
        turn.put(key, Value::Text(text_of(arguments, index + 1)), Expiry::Clear);
        turn.notify(Class::Text, "set", key);
    }
    Ok(())
}

fn strlen(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let len = turn.text(arguments.at(1))?.map_or(0, |text| text.len());
    replies.integer(len as i64);
    Ok(())
}

/// Deletes a string that equals an expected one: the release of a lock by its owner.
fn delifeq(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let equal = turn.text(key)?.is_some_and(|text| *text.bytes() == *arguments.at(2));
    if equal {
        turn.remove(key);
        turn.notify(Class::Generic, "del", key);
    }
    replies.integer(i64::from(equal));
    Ok(())
}
