//! Runs one command, of a client or of one that waited.

use crate::admission;
use crate::commands::handler;
use crate::failures;
use crate::keyspace::Keyspace;
use crate::once;
use crate::turn::Turn;
use raingauge_resp::{Arguments, Command, Failure, Id, Replies, Spec};

/// What came of a command whose keys are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executed {
    /// It replied, and this database is selected now.
    Done { database: u8 },
    /// It replied with a failure, and changed nothing.
    Refused,
    /// It found nothing, and waits for a number of milliseconds, 0 for ever. It did not reply.
    Waits { timeout_ms: i64 },
}

/// Runs one command whose keys are in memory.
pub(crate) fn execute(
    keyspace: &mut Keyspace,
    database: u8,
    spec: &'static Spec,
    arguments: Arguments<'_>,
    weight: usize,
    out: &mut Replies,
) -> Executed {
    let mark = out.mark();
    let mut run = || {
        // RAIN.ONCE looks at the command within it, unless that has run already.
        let handler = match spec.id {
            Id::RainOnce => None,
            id => Some(handler(id).ok_or_else(|| Command::of(arguments).unknown())?),
        };
        if spec.denies_oom() && handler.is_some() {
            admission::check_growth(keyspace, spec, arguments, weight)?;
        }

        let bytes_max = keyspace.together_bytes_max();
        if spec.is_readonly() {
            out.bound(bytes_max);
        }
        let mut turn = Turn::new(keyspace, database);
        let handled = match handler {
            Some(handler) => handler(&mut turn, arguments, out),
            None => once::run(&mut turn, arguments, weight, out),
        };
        if out.unbound() {
            return Err(failures::answer_too_large(bytes_max));
        }
        handled?;
        Ok(match turn.take_wait() {
            Some(timeout_ms) => Executed::Waits { timeout_ms },
            None => Executed::Done { database: turn.database() },
        })
    };

    let executed: Result<Executed, Failure> = run();
    match executed {
        Ok(executed) => {
            keyspace.end_command();
            executed
        }
        Err(failure) => {
            keyspace.undo_command();
            out.roll_back(mark);
            out.fail(&failure);
            Executed::Refused
        }
    }
}
