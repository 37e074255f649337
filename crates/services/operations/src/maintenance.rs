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

use raingauge_settings::{Reader, settings, words};
use std::time::Duration;

settings! {
    /// How maintenance is done. The node in progress is stopped after the longest duration, if the
    /// engine can stop it, so that compaction has ended before the traffic of the day begins.
    pub struct Options in "maintenance" checked by Options::check {
        /// When all nodes are compacted: cron expressions (minute, hour, day, month, weekday) with
        /// semicolons; empty for never.
        schedule: String = text("");
        /// Time zone of the schedule, by its IANA name, such as Asia/Singapore.
        timezone: String = text("UTC");
        /// How long after its beginning a compaction of all nodes may still be at work.
        max_duration as "max_duration_minutes": Duration = minutes(240, 1..=10_080);
        /// Rest between two nodes.
        pause as "pause_s": Duration = seconds(30, 0..=86_400);
        /// Whether the other nodes are compacted when one fails.
        on_failure: OnFailure = one_of(OnFailure::WORDS);
    } with {
        /// The schedule in its time zone.
        schedules: Schedules = Schedules::none();
    }
}

impl Options {
    fn check(&mut self, reader: &mut Reader) {
        match Schedules::parse(&self.schedule, &self.timezone) {
            Ok(schedules) => self.schedules = schedules,
            Err(error @ Error::Zone(_)) => reader.refuse(
                "maintenance.timezone",
                error.to_string(),
                "Give the IANA name of a time zone; the default is UTC",
            ),
            Err(error) => reader.refuse(
                "maintenance.schedule",
                error.to_string(),
                "Give cron expressions such as \"0 3 * * *; 0 14 * * 1-5\", or none",
            ),
        }
    }
}

words! {
    /// What a run does when a node fails.
    pub enum OnFailure {
        /// The other nodes are still compacted.
        Continue = "continue",
        Stop = "stop",
    }
}
