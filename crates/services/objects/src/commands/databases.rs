//! Commands about whole databases.

use crate::admission::database_of;
use crate::turn::{Handler, Outcome, Turn};
use raingauge_ports::objects::DATABASES;
use raingauge_resp::{Arguments, Failure, Id, Replies};

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Select, select),
    (Id::Flushdb, flush_one),
    (Id::Flushall, flush_all),
    (Id::Swapdb, swap),
    (Id::Unwatch, unwatch),
];

const OUT_OF_RANGE: Failure = Failure::text("ERR DB index is out of range");

fn select(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    turn.select(database_at(arguments, 1)?);
    replies.ok();
    Ok(())
}

/// The database that an argument names.
pub(super) fn database_at(arguments: Arguments<'_>, index: usize) -> Result<u8, Failure> {
    arguments.integer(index)?;
    database_of(arguments, index).ok_or(OUT_OF_RANGE)
}

fn flush_one(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    check_flush(arguments)?;
    turn.flush(turn.database());
    replies.ok();
    Ok(())
}

fn flush_all(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    check_flush(arguments)?;
    (0..DATABASES).for_each(|database| turn.flush(database));
    replies.ok();
    Ok(())
}

/// ASYNC and SYNC are the same here: both take constant time.
fn check_flush(arguments: Arguments<'_>) -> Result<(), Failure> {
    match arguments.len() {
        1 => Ok(()),
        2 if arguments.is(1, "async") || arguments.is(1, "sync") => Ok(()),
        _ => Err(Failure::Syntax),
    }
}

fn swap(turn: &mut Turn<'_>, arguments: Arguments<'_>, replies: &mut Replies) -> Outcome {
    arguments.integer(1).map_err(|_| Failure::text("ERR invalid first DB index"))?;
    arguments.integer(2).map_err(|_| Failure::text("ERR invalid second DB index"))?;
    let a = database_of(arguments, 1).ok_or(OUT_OF_RANGE)?;
    let b = database_of(arguments, 2).ok_or(OUT_OF_RANGE)?;
    if a != b {
        turn.swap(a, b);
    }
    replies.ok();
    Ok(())
}

/// In a transaction, whose EXEC has forgotten the watched keys already.
fn unwatch(_: &mut Turn<'_>, _: Arguments<'_>, replies: &mut Replies) -> Outcome {
    replies.ok();
    Ok(())
}
