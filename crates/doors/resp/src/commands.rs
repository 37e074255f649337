//! The commands of the door: about connections, and about the server.

mod acl;
mod catalog;
mod clients;
mod cluster;
mod configuration;
mod connection;
mod help;
mod info;
mod latency;
pub(crate) mod listening;
mod operations;
mod slots;

use futures_util::future::BoxFuture;
use raingauge_objects::Session;
use raingauge_resp::{Arguments, Command, Controls, Failure, Gate, Id, Replies, Spec};

use crate::desk::Desk;

/// Runs a command of the door, after the gate let it through. Never waits: what a command waits
/// for, [`prepare`] waited for before.
pub(crate) fn run(
    desk: &mut Desk,
    command: Command<'_>,
    gate: &Gate,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let spec = gate.admit(&command)?;

    dispatch(desk, spec, command.arguments, replies)
}

/// Whether a command tells which keys there are, so that its reply waits for all groups so far.
pub(crate) fn shows_keys(command: Command<'_>) -> bool {
    match command.spec().map(|spec| spec.id) {
        Some(Id::Info) => info::shows_keys(command.arguments),
        Some(Id::ClusterCountkeysinslot | Id::ClusterGetkeysinslot) => true,
        _ => false,
    }
}

/// What a command waits for before it runs, so that it answers at once afterwards; `None` for one
/// that waits for nothing.
pub(crate) fn prepare<'a>(
    desk: &'a mut Desk,
    session: &'a Session,
    command: Command<'a>,
) -> Option<BoxFuture<'a, ()>> {
    let arguments = command.arguments;
    Some(match command.spec()?.id {
        Id::Info => Box::pin(info::prepare(desk)),
        Id::Waitaof => Box::pin(operations::prepare_waitaof(desk, session, arguments)),
        Id::Save | Id::Bgsave | Id::Bgrewriteaof => Box::pin(operations::prepare_save(desk)),
        Id::ClusterCountkeysinslot | Id::ClusterGetkeysinslot => {
            Box::pin(slots::prepare(desk, arguments))
        }
        _ => return None,
    })
}

/// Commands of the door inside a transaction.
impl Controls for Desk {
    fn control(&mut self, command: Command<'_>, replies: &mut Replies) -> Result<(), Failure> {
        let spec = command.check()?;

        // A command of EXEC has one reply; each name of a subscription is confirmed by a message.
        if spec.id == Id::ClientReply {
            return Err(Failure::text("ERR CLIENT REPLY is not allowed inside a transaction"));
        }
        if listening::confirms_names(spec) && command.arguments.len() != 2 {
            return Err(Failure::text("ERR subscriptions inside a transaction name one channel"));
        }
        dispatch(self, spec, command.arguments, replies)
    }

    fn ran(&mut self, spec: &'static Spec, duration_us: u64, failed: bool) {
        self.server.usage.ran(spec, duration_us, failed);
    }
}

fn dispatch(
    desk: &mut Desk,
    spec: &'static Spec,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match spec.container().unwrap_or(spec.group) {
        "connection" => connection::run(desk, spec.id, arguments, replies),
        "pubsub" => listening::run(desk, spec.id, arguments, replies),
        "acl" => acl::run(desk, spec.id, arguments, replies),
        "client" => clients::run(desk, spec.id, arguments, replies),
        "cluster" => cluster::run(desk, spec.id, arguments, replies),
        "command" => catalog::run(spec.id, arguments, replies),
        "config" => configuration::run(desk, spec.id, arguments, replies),
        "latency" => latency::run(desk, spec.id, arguments, replies),

        "server" if spec.id == Id::Info => {
            info::run(desk, arguments, replies);
            Ok(())
        }
        "server" if spec.id == Id::Command => {
            catalog::all(replies);
            Ok(())
        }
        _ => operations::run(desk, spec.id, arguments, replies),
    }
}
