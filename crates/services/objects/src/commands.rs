//! The handlers of all commands that run in a turn.

mod bitfields;
mod bits;
mod channels;
mod databases;
mod description;
mod expiry;
mod hashes;
mod keys;
mod lifetimes;
mod lists;
mod picks;
mod ranges;
mod sets;
mod sets_algebra;
mod sorted;
mod strings;
mod strings_edit;
#[cfg(test)]
mod tests;
mod timeouts;
mod walk;

use crate::turn::Handler;
use raingauge_ports::objects::OBJECT_ENTRY_LEN_MAX;
use raingauge_resp::{Failure, Id, Replies};
use std::sync::LazyLock;

/// The handlers of each file.
const TABLES: &[&[(Id, Handler)]] = &[
    keys::COMMANDS,
    expiry::COMMANDS,
    description::COMMANDS,
    databases::COMMANDS,
    channels::COMMANDS,
    strings::COMMANDS,
    strings_edit::COMMANDS,
    bits::COMMANDS,
    bitfields::COMMANDS,
    hashes::COMMANDS,
    sets::COMMANDS,
    sets_algebra::COMMANDS,
    sorted::COMMANDS,
    lists::COMMANDS,
];

/// The handlers by the numbers of their commands.
static HANDLERS: LazyLock<Vec<Option<Handler>>> = LazyLock::new(|| {
    let mut handlers = Vec::new();
    for (id, handler) in TABLES.iter().copied().flatten() {
        let number = *id as usize;
        if handlers.len() <= number {
            handlers.resize(number + 1, None);
        }
        handlers[number] = Some(*handler);
    }
    handlers
});

/// The handler of a command that runs in a turn.
pub(crate) fn handler(id: Id) -> Option<Handler> {
    HANDLERS.get(id as usize).copied().flatten()
}

/// Refuses a field or member that a wide object could not hold.
fn check_name(name: &[u8]) -> Result<(), Failure> {
    if name.len() > OBJECT_ENTRY_LEN_MAX {
        return Err(Failure::owned(format!(
            "ERR a field or member has at most {OBJECT_ENTRY_LEN_MAX} bytes"
        )));
    }
    Ok(())
}

/// Replies for a command that found nothing and does not wait for it, as in a transaction.
pub(crate) fn reply_nothing(id: Id, out: &mut Replies) {
    match id {
        Id::Blmove | Id::Brpoplpush => out.null(),
        _ => out.null_array(),
    }
}
