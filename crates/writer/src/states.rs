//! What is known of the writers of all partitions.

use crate::state::{Backfill, BackfillStatus, Part};
use crate::worker::Writer;
use raingauge_ports::log::Partition;

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
        whole.status = match (whole.status, part.status) {
            (BackfillStatus::Running, _) | (_, BackfillStatus::Running) => BackfillStatus::Running,
            (BackfillStatus::Cancelled, _) | (_, BackfillStatus::Cancelled) => BackfillStatus::Cancelled,
            _ => BackfillStatus::Finished,
        };
    }
    Some(whole)
}
