//! What is known of the writers of all partitions.

pub use crate::state::Part;
use crate::state::{Backfill, BackfillStatus};
use crate::worker::Writer;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::published::Published;

pub trait States: Send + Sync {
    /// Which configurations of a counter counted what, in each partition.
    fn parts(&self, counter: u32) -> Vec<(Partition, Vec<Part>)>;

    /// The newest backfill of a counter, in each partition.
    fn backfills(&self, counter: u32) -> Vec<(Partition, Backfill)>;
}

impl States for Writer {
    fn parts(&self, counter: u32) -> Vec<(Partition, Vec<Part>)> {
        self.parts(counter).into_iter().map(|parts| (self.partition(), parts)).collect()
    }

    fn backfills(&self, counter: u32) -> Vec<(Partition, Backfill)> {
        self.backfill(counter).into_iter().map(|backfill| (self.partition(), backfill)).collect()
    }
}

/// The newest backfill as one over all partitions that have it: offsets and counts are added up, and it runs until it has
/// ended in each.
pub fn together(backfills: &[(Partition, Backfill)]) -> Option<Backfill> {
    let generation = backfills.iter().map(|(_, backfill)| backfill.generation).max()?;
    let mut newest =
        backfills.iter().map(|(_, backfill)| backfill).filter(|backfill| backfill.generation == generation);
    let mut whole = newest.next()?.clone();
    for part in newest {
        whole.from += part.from;
        whole.position += part.position;
        whole.counted += part.counted;
        whole.ended_at = whole.ended_at.max(part.ended_at);
        whole.status = match (whole.status, part.status) {
            (BackfillStatus::Running, _) | (_, BackfillStatus::Running) => BackfillStatus::Running,
            (BackfillStatus::Cancelled, _) | (_, BackfillStatus::Cancelled) => BackfillStatus::Cancelled,
            _ => BackfillStatus::Finished,
        };
    }
    if whole.status == BackfillStatus::Running {
        whole.ended_at = 0;
    }
    Some(whole)
}

/// How far the newest backfill of a counter is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Over all partitions.
    pub backfill: Backfill,
    /// Where the log ended when this was asked.
    pub end: Offset,
    /// The part of the log that it has read, from 0 to 1.
    pub share: f64,
}

/// How far the newest backfill of a counter is; none when it has had none.
pub fn progress(states: &dyn States, published: &Published, counter: u32) -> Option<Progress> {
    let backfills = states.backfills(counter);
    let backfill = together(&backfills)?;
    let ends = backfills.iter().map(|(partition, backfill)| published.applied(*partition).max(backfill.position));
    let end: Offset = ends.sum();
    let share = (backfill.position - backfill.from) as f64 / (end - backfill.from).max(1) as f64;
    Some(Progress { backfill, end, share })
}
