//! What the services need to run as several processes: which process counts which partition, and
//! the progress of each.

mod checkpoints;
mod membership;
mod partitions;

pub use checkpoints::Checkpoints;
pub use membership::Membership;
pub use partitions::Partitions;

use crate::log::{Offset, Partition};

/// A failure that the caller reports before it tries again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// How far the bucket store includes a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPosition {
    pub partition: Partition,
    pub position: Offset,
    /// Changes when the writer's state does.
    pub state_version: i64,
}
