//! What the services need to be several processes: who counts which partition, and how far each has
//! come.

mod checkpoints;
mod membership;
mod partitions;

pub use checkpoints::Checkpoints;
pub use membership::Membership;
pub use partitions::Partitions;

use crate::log::{Offset, Partition};

/// A failure that the caller reports and tries again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// How far a partition is included in the bucket store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Included {
    pub partition: Partition,
    pub position: Offset,
    /// Changes when the writer's state does.
    pub state_version: i64,
}
