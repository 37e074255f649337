//! Objects: what the doors for other protocols keep, larger than memory and durable.
//!
//! ```text
//!   keyspace ── group of effects ──▶ ObjectStore::submit ──▶ stamp ──▶ durable(stamp) ──▶ reply
//!      ▲
//!      └── a miss ── heads, then the entries of a wide object ◀── ObjectStore
//! ```
//!
//! A key has one record, its *head*: a whole string, a small collection, or the description of a
//! *wide* one, whose entries are records of their own. The bytes of heads and entries belong to the
//! service; an engine stores them and knows three things beside them: when a head expires, which
//! wide object it leads to, and whether its key had one before that expired or stayed.
//!
//! Effects are absolute. A group that is applied twice, in its place of the order, leaves what it
//! left the first time.

mod control;
mod effects;
mod limits;
mod progress;
mod store;

pub use control::{ObjectControl, Status, SyncMode};
pub use effects::{Effect, Group, Key, Old};
pub use limits::{
    OBJECT_ENTRY_LEN_MAX, OBJECT_GROUP_BYTES_MAX, OBJECT_NAME_LEN_MAX, OBJECT_READS_MAX,
    OBJECT_REMOVAL_RESERVE_DIVISOR, OBJECT_SCAN_HEAD_LEN, OBJECT_VALUE_LEN_MAX,
};
pub use progress::Progress;
pub use store::{Durability, EntryPage, FoundHead, KeyCount, ObjectStore};

/// Databases of a client, from 0 on.
pub const DATABASES: u8 = 16;
/// The database of the service itself, which no client selects and nobody flushes.
pub const INTERNAL_DATABASE: u8 = 16;

/// The result of a store that could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The group contradicts a limit, which is a defect. Nothing was written.
    #[error("the group is invalid: {0}")]
    Invalid(String),
    /// The disk does not keep up. Nothing was written, and the caller may try again.
    #[error("{pending_bytes} bytes wait for the disk of the objects, which does not keep up")]
    Busy { pending_bytes: u64 },
    /// The disk is almost full. Nothing was written, and the caller may try again when there is
    /// more room. Groups that only remove are taken longer than others: see
    /// [`OBJECT_REMOVAL_RESERVE_DIVISOR`].
    #[error(
        "the disk of the objects has {free_bytes} bytes left, and the last {reserve_bytes} are kept in reserve: \
         make room on it"
    )]
    Full { free_bytes: u64, reserve_bytes: u64 },
    /// A write failed, and whether it is in the store is unknown until it is opened again. It takes
    /// nothing until then, and confirms nothing that was not durable before.
    #[error("the object store takes no more writes: {0}")]
    Closed(String),
    #[error("the object store is damaged: {0}")]
    Corrupt(String),
    #[error("the object store could not be read or written: {0}")]
    Io(String),
    /// Another process has the data folder open.
    #[error("the data folder is in use by another raingauge: stop it, or ask it over HTTP")]
    Locked,
}
