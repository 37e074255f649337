//! The log as the ingest path appends to it.

use super::{Answer, Appended, Batch, Error, Offset, Partition};

/// The payload of a control entry for each partition.
pub type PayloadOf = Box<dyn Fn(Partition) -> Vec<u8> + Send + Sync>;

/// Takes events in. Appending completes when the events are durable.
pub trait EventSink: Send + Sync {
    /// Number of partitions.
    fn partitions(&self) -> Partition;

    /// Whether events are accepted at the moment. [`Error::Closed`] is final; any other error may
    /// pass.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Appends events. Duplicates are dropped here, or by [`EventLog::read`](super::EventLog::read)
    /// when only a reader can detect them.
    fn append(&self, batch: Batch) -> Answer<'_, Appended>;

    /// Appends a control entry to a partition and returns the offset behind it.
    fn append_control(&self, partition: Partition, payload: Vec<u8>) -> Answer<'_, Offset>;

    /// Appends a control entry to all partitions, or, with [`Error::NotTaken`], to none. After any
    /// other error it may be in all or in none. Returns the offsets behind the entries. A log with
    /// one partition need not implement it.
    fn append_to_all(&self, payload_of: PayloadOf) -> Answer<'_, Vec<(Partition, Offset)>> {
        Box::pin(async move {
            let mut ends = Vec::new();
            for partition in 0..self.partitions() {
                let end = self.append_control(partition, payload_of(partition)).await?;
                ends.push((partition, end));
            }
            Ok(ends)
        })
    }
}
