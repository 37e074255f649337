//! Entries that the log dropped before they were counted. A worker stops before them, so that
//! nothing is lost silently.

use crate::worker::Error;
use raingauge_consumers::Overtaken;
use raingauge_ports::buckets::{BucketWriter, Checkpoint};
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{self, EventLog};

/// How much later the stamp of the checkpoint that skips lost entries is than the previous one, so
/// that it wins over anything that the last writer stored under that one without getting further.
const STAMP_STEP_US: i64 = 1_000_000;

/// Returns what counting has lost of a partition; `None` when the log still has everything that is
/// not counted. Blocks the thread.
pub fn find(log: &dyn EventLog, store: &dyn BucketWriter) -> Result<Option<Overtaken>, Error> {
    let position = store.checkpoint()?.position;
    // A log that began again starts after the old one's offsets, and has lost nothing.
    match log.read(position, 1) {
        Err(log::Error::Trimmed { start, .. }) => {
            let consumer = Name::counting();
            Ok(Some(Overtaken { consumer, partition: log.partition(), position, start }))
        }
        read => Ok(read.map(|_| None)?),
    }
}

/// Lets counting continue after the lost entries. No worker can count the partition before that.
/// Blocks the thread.
pub fn skip(store: &dyn BucketWriter, lost: &Overtaken) -> Result<(), Error> {
    let stored = store.checkpoint()?;
    let stamp_us = stored.stamp_us + STAMP_STEP_US;
    let skipped = Checkpoint { position: lost.start, stamp_us, progress: None, ..stored };
    Ok(store.commit(&skipped)?)
}
