//! What maintenance needs of an engine: its nodes, and a major compaction of one of them.

mod compactor;
mod lease;

pub use compactor::Compactor;
pub use lease::{LEASE_TTL, Lease};

/// A failure, as a sentence that says what to do where that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// A node of an engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// With enough racks, nodes of one rack hold no two copies of the same data: while one rack is
    /// busy, the others answer.
    pub rack: String,
    pub name: String,
}

/// Progress of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    /// The unit of the numbers, such as `bytes`.
    pub unit: String,
}
