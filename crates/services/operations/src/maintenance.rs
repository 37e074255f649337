//! Maintenance: major compaction of an engine, node by node, on a cron schedule or on request.
//!
//! ```text
//!   schedules ──due──┐
//!                    ├─▶ run ─▶ rack a: node 1, node 2 ─▶ rack b: node 3 … ─▶ result
//!   HTTP, command ───┘    ▲
//!                         └── ends early: stopped, window over, lease lost
//! ```
//!
//! One node at a time, all nodes of a rack before the next rack, and never two runs at once: within
//! this process by its state, in a cluster by a lease. A run that becomes due during another one is
//! skipped.

mod error;
mod keeper;
mod run;
mod schedule;
mod status;

pub use error::Error;
pub use keeper::Maintenance;
pub use schedule::{Due, Schedules};
pub use status::{Compaction, NodeState, Outcome, Run, Status, Trigger, Upcoming};

use std::time::Duration;

/// How maintenance is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub schedules: Schedules,
    /// Longest duration of a run. The node in progress is then stopped, if the engine can stop it,
    /// so that compaction has ended before the traffic of the day begins.
    pub max_duration: Duration,
    /// Pause between two nodes, for caches to warm up and for a look at the graphs.
    pub pause: Duration,
    pub on_failure: OnFailure,
}

/// What a run does when a node fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The other nodes are still compacted.
    Continue,
    Stop,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schedules: Schedules::none(),
            max_duration: Duration::from_secs(4 * 3_600),
            pause: Duration::from_secs(30),
            on_failure: OnFailure::Continue,
        }
    }
}
