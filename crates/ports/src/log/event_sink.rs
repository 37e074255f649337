//! The log as the ingest path appends to it.

use super::{Appended, Batch, Error, Offset, Partition};
use crate::BoxFuture;

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
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, Error>>;

    /// Appends a control entry to a partition and returns the offset behind it.
    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, Error>>;

    /// Appends a control entry to all partitions, or, with [`Error::NotTaken`], to none. After any
    /// other error it may be in all or in none. Returns the offsets behind the entries. A log with
    /// one partition need not implement it.
    fn append_to_all(
        &self,
        payload_of: PayloadOf,
    ) -> BoxFuture<'_, Result<Vec<(Partition, Offset)>, Error>> {
        Box::pin(async move {
            let mut ends = Vec::new();
            for partition in 0..self.partitions() {
                ends.push((
                    partition,
                    self.append_control(partition, payload_of(partition)).await?,
                ));
            }
            Ok(ends)
        })
    }
}
