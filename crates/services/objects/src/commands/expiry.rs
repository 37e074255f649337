//! Commands about the time at which keys expire.

use crate::notify::Class;
use crate::turn::{Handler, Outcome, Turn};
use raingauge_resp::{Arguments, Failure, Id, Replies};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Expire, |turn, arguments, replies| {
        let base_ms = turn.now_ms();
        expire(turn, arguments, replies, (base_ms, 1_000), "expire")
    }),
    (Id::Pexpire, |turn, arguments, replies| {
        let base_ms = turn.now_ms();
        expire(turn, arguments, replies, (base_ms, 1), "pexpire")
    }),
    (Id::Expireat, |turn, arguments, replies| {
        expire(turn, arguments, replies, (0, 1_000), "expireat")
    }),
    (Id::Pexpireat, |turn, arguments, replies| {
        expire(turn, arguments, replies, (0, 1), "pexpireat")
    }),
    (Id::Ttl, |turn, arguments, replies| {
        let now_ms = turn.now_ms();
        time(turn, arguments, replies, |at_ms| rounded_s((at_ms - now_ms).max(0)))
    }),
    (Id::Pttl, |turn, arguments, replies| {
        let now_ms = turn.now_ms();
        time(turn, arguments, replies, |at_ms| (at_ms - now_ms).max(0))
    }),
    (Id::Expiretime, |turn, arguments, replies| time(turn, arguments, replies, rounded_s)),
    (Id::Pexpiretime, |turn, arguments, replies| time(turn, arguments, replies, |at_ms| at_ms)),
    (Id::Persist, persist),
];

/// When a new expiry takes the place of the one before.
#[derive(Default)]
struct Condition {
    /// Only if there is none.
    is_first: bool,
    /// Only if there is one.
    is_change: bool,
    /// Only if it is later.
    is_later: bool,
    /// Only if it is earlier; none is later than any.
    is_earlier: bool,
}

impl Condition {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Failure> {
        let mut condition = Self::default();
        for at in 3..arguments.len() {
            let option = match () {
                () if arguments.is(at, "nx") => &mut condition.is_first,
                () if arguments.is(at, "xx") => &mut condition.is_change,
                () if arguments.is(at, "gt") => &mut condition.is_later,
                () if arguments.is(at, "lt") => &mut condition.is_earlier,
                () => {
                    let option = String::from_utf8_lossy(arguments.at(at));
                    return Err(Failure::owned(format!("ERR Unsupported option {option}")));
                }
            };
            *option = true;
        }

        let Self { is_first, is_change, is_later, is_earlier } = condition;
        if is_first && (is_change || is_later || is_earlier) {
            return Err(Failure::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if is_later && is_earlier {
            return Err(Failure::text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(condition)
    }

    fn allows(&self, before: Option<i64>, at_ms: i64) -> bool {
        let is_refused = match before {
            Some(before) => {
                self.is_first
                    || self.is_later && at_ms <= before
                    || self.is_earlier && at_ms >= before
            }
            None => self.is_change || self.is_later,
        };
        !is_refused
    }
}

/// Sets an expiry. `scale` is the time that the number counts from, and the milliseconds of its
/// unit.
fn expire(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
    scale: (i64, i64),
    name: &'static str,
) -> Outcome {
    let (base_ms, unit_ms) = scale;
    let condition = Condition::parse(arguments)?;
    let number = arguments.integer(2)?;
    let at_ms = number.checked_mul(unit_ms).and_then(|after_ms| after_ms.checked_add(base_ms));
    let at_ms = at_ms.ok_or(Failure::InvalidExpire(name))?;

    let key = arguments.at(1);
    let is_allowed = turn.expires_ms(key).is_some_and(|before| condition.allows(before, at_ms));
    if is_allowed {
        expire_at(turn, key, at_ms);
    }
    replies.integer(i64::from(is_allowed));
    Ok(())
}

/// Sets the time at which a key that is there expires, or removes the key if that has passed.
pub(super) fn expire_at(turn: &mut Turn<'_>, key: &[u8], at_ms: i64) {
    if at_ms <= turn.now_ms() {
        turn.remove(key);
        turn.notify(Class::Generic, "del", key);
    } else {
        turn.set_expiry(key, Some(at_ms));
        turn.notify(Class::Generic, "expire", key);
    }
}

/// Replies with a number that follows from the expiry of a key: -1 without one, -2 without a key.
fn time(
    turn: &mut Turn<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies,
    number: impl FnOnce(i64) -> i64,
) -> Outcome {
    replies.integer(match turn.expires_ms(arguments.at(1)) {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => number(at_ms),
    });
    Ok(())
}

fn rounded_s(ms: i64) -> i64 {
    ms.saturating_add(500) / 1_000
}

fn persist(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    let key = arguments.at(1);
    let expires = turn.expires_ms(key).flatten().is_some();
    if expires {
        turn.set_expiry(key, None);
        turn.notify(Class::Generic, "persist", key);
    }
    replies.integer(i64::from(expires));
    Ok(())
}
