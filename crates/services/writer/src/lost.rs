//! What the log dropped before it was counted. A worker does not go on behind it by itself: nothing is lost silently.

use crate::worker::Error;
use raingauge_ports::buckets::{BucketWriter, Checkpoint};
use raingauge_ports::log::{self, EventLog, Offset, Partition};
use std::fmt;

/// The checkpoint that skips what is lost has a stamp so much later than the one before, so that it wins over whatever the
/// last writer stored under that one without getting further.
const STAMP_STEP_US: i64 = 1_000_000;

/// The entries of a partition in `[position, start)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub partition: Partition,
    /// What lies before this is counted.
    pub position: Offset,
    /// The log begins here.
    pub start: Offset,
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, position, start } = self;
        write!(
            formatter,
            "partition {partition} of the event log is counted up to offset {position}, and begins at offset {start}: what lay \
             between has been dropped, and is lost"
        )
    }
}

impl Lost {
    pub fn entries(&self) -> u64 {
        self.start - self.position
    }
}

/// What a partition has lost; none when everything that is not counted is still there. Blocks the thread.
pub fn find(log: &dyn EventLog, store: &dyn BucketWriter) -> Result<Option<Lost>, Error> {
    let position = store.checkpoint()?.position;
    // A log that was begun anew starts behind the old one's offsets, and has lost nothing.
    match log.read(position, 1) {
        Err(log::Error::Trimmed { start, .. }) => {
            Ok(Some(Lost { partition: log.partition(), position, start }))
        }
        read => Ok(read.map(|_| None)?),
    }
}

/// Lets counting go on behind what is lost. Nobody may be counting the partition, and nobody can. Blocks the thread.
pub fn skip(store: &dyn BucketWriter, lost: &Lost) -> Result<(), Error> {
    let Checkpoint { state, stamp_us, .. } = store.checkpoint()?;
    let (position, stamp_us) = (lost.start, stamp_us + STAMP_STEP_US);
    Ok(store.commit(&Checkpoint { position, state, stamp_us, progress: None })?)
}
