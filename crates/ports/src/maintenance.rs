//! What maintenance needs of an engine: its nodes, and a major compaction of one of them.

use crate::BoxFuture;
use std::time::Duration;

/// A failure, in a sentence that says what to do where that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// A node of an engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Nodes of one rack hold no two copies of the same data where there are enough racks: while one rack is busy, the
    /// others answer.
    pub rack: String,
    pub name: String,
}

/// How far a node has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    /// What is counted, such as `bytes`.
    pub unit: String,
}

/// Merges what an engine has on disk into as few files as it likes to have.
pub trait Compactor: Send + Sync {
    /// The nodes, in any order.
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, Error>>;

    /// Compacts one node; ends when that is done. Whoever drops the future no longer waits, but the node may go on until
    /// it is told to [`stop`](Self::stop).
    fn compact<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>>;

    /// Whether a compaction that has begun can be ended early. Where it cannot, it is waited for.
    fn can_stop(&self) -> bool;

    /// Ends what a node still does of a compaction whose future was dropped. What was not finished is thrown away by the
    /// engine and loses nothing.
    fn stop<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>>;

    /// How far the compaction of a node has come, where the engine tells.
    fn progress<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<Option<Progress>, Error>>;
}

/// How long a lease lasts that nobody renews.
pub const LEASE_TTL: Duration = Duration::from_secs(60);

/// The right to do maintenance, which one process of a cluster has at a time.
pub trait Lease: Send + Sync {
    /// Takes the lease or keeps it. `false` when another process has it.
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// Gives it back, so that others need not wait until it has run out.
    fn release(&self) -> BoxFuture<'_, Result<(), Error>>;
}

/// The lease of an engine that belongs to one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Lease for Alone {
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(true) })
    }

    fn release(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}
