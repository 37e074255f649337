//! The store as the keyspace uses it.

use super::{Error, Group, Key, OBJECT_SCAN_HEAD_LEN, Progress};
use crate::BoxFuture;
use bytes::Bytes;

/// How much a group has to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    Written,
    /// A power cut.
    Synced,
}

/// A part of the entries of a wide object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// Names and values, in order of the names.
    pub entries: Vec<(Bytes, Bytes)>,
    /// Whether entries may follow behind the last of these.
    pub has_more: bool,
}

/// How many heads a database has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCount {
    pub keys: u64,
    /// Those of them that expire.
    pub expiring: u64,
}

/// A key with the beginning of its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHead {
    pub name: Bytes,
    /// The first [`OBJECT_SCAN_HEAD_LEN`] bytes, fewer if there are no more: a scan of everything
    /// copies no values.
    pub head: Bytes,
}

impl FoundHead {
    /// Cuts a head.
    pub fn new(name: Bytes, head: &[u8]) -> Self {
        let len = head.len().min(OBJECT_SCAN_HEAD_LEN);
        Self { name, head: Bytes::copy_from_slice(&head[..len]) }
    }
}

/// The objects of one process. Reads include every group that was submitted before the call;
/// of a later one they include all or nothing within a record, and any part of it between records.
pub trait ObjectStore: Send + Sync {
    /// Returns the heads of the first keys, in their order, expired ones too: at least one, and no
    /// further one when these have more than `bytes_max` bytes.
    fn heads(
        &self,
        keys: Vec<Key>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Option<Bytes>>, Error>>;

    /// Returns entries of a wide object behind a name: at least one, if there is one, and about
    /// `bytes_max` bytes of them. One that was killed or never existed has none.
    fn entries(
        &self,
        database: u8,
        id: u64,
        after: Option<Bytes>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<EntryPage, Error>>;

    /// Returns at most `len_max` keys behind a name, in order of the names, expired ones too.
    fn scan(
        &self,
        database: u8,
        after: Option<Bytes>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<FoundHead>, Error>>;

    /// Counts the heads of a database exactly, expired ones too.
    fn count(&self, database: u8) -> BoxFuture<'_, Result<KeyCount, Error>>;

    /// Returns at most `len_max` keys whose heads expire at or before `until_ms`, in milliseconds
    /// since 1970. They are returned again until the caller drops them. An engine may be late, by a
    /// sixteenth of the time that a key had to live, and at least two seconds.
    fn due(&self, until_ms: i64, len_max: usize) -> BoxFuture<'_, Result<Vec<Key>, Error>>;

    /// Takes a group, in the order of the calls, and returns its stamp: the number of the group,
    /// growing. Never waits for the disk.
    fn submit(&self, group: Group) -> Result<u64, Error>;

    /// Waits until a group is as durable as required. While the disk does not keep up, it waits
    /// longer than that, which slows the callers down.
    fn durable(&self, stamp: u64, durability: Durability) -> BoxFuture<'_, Result<(), Error>>;

    /// How far the groups have come.
    fn progress(&self) -> &Progress;
}
