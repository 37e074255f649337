//! The protocol of Redis, without a socket: requests, replies, and facts about each command.
//!
//! A [`Parser`] turns the bytes of a connection into a [`Drain`]: all commands that are complete,
//! their [`Arguments`] being ranges of one buffer. The table ([`find`], [`Spec`]) says how many
//! arguments a command takes, where its keys stand and who may run it; a [`Gate`] checks that.
//! Replies are written in the protocol of their connection by [`Replies`].
//!
//! ```text
//! bytes ─▶ Parser ─▶ Drain ─▶ Command ─▶ Gate ─▶ service ─▶ Replies ─▶ buffers
//! ```

mod arguments;
mod buffers;
mod command;
mod drain;
mod failure;
mod gate;
pub mod glob;
mod id;
mod inline;
pub mod limits;
pub mod number;
mod parser;
mod protocol;
mod replies;
pub mod slot;
mod slots;
mod spec;
mod table;
mod tips;

pub use arguments::Arguments;
pub use command::{Command, Lookup};
pub use drain::Drain;
pub use failure::Failure;
pub use gate::Gate;
pub use id::Id;
pub use parser::{Parser, ParserLimits};
pub use protocol::Protocol;
pub use replies::{Mark, Replies};
pub use slots::{SlotNode, Slots};
pub use spec::{Access, Categories, Find, Flags, KeySpec, Rights, Room, Scope, Spec};
pub use table::{all, commands, find, find_sub, subcommands};

/// Runs the commands of a door in the middle of a transaction, whose other commands another part
/// of the process runs.
pub trait Controls: Send {
    /// Runs one command of [`Room::Door`]. Never waits for anything.
    fn control(&mut self, command: Command<'_>, replies: &mut Replies) -> Result<(), Failure>;

    /// Notes that a command ran: how long, in microseconds, and whether it was refused.
    fn ran(&mut self, spec: &'static Spec, duration_us: u64, failed: bool);
}
