//! The log, as it is appended to.

use super::{Appended, Batch, Error, Offset, Partition};
use crate::BoxFuture;

/// What each partition is told.
pub type PayloadOf = Box<dyn Fn(Partition) -> Vec<u8> + Send + Sync>;

/// Where events come in. Appending answers when what was appended is durable.
pub trait EventSink: Send + Sync {
    /// How many partitions there are.
    fn partitions(&self) -> Partition;

    /// Whether events are taken at the moment. [`Error::Closed`] is final; any other error may
    /// pass.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Appends events. Duplicates are left out here, or by
    /// [`EventLog::read`](super::EventLog::read) when only a reader can tell them.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, Error>>;

    /// Appends a control entry to a partition and answers the offset behind it.
    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, Error>>;

    /// Appends a control entry to every partition: to all of them, or, with [`Error::NotTaken`], to
    /// none. After another error it may be in all or in none. Answers the offsets behind the
    /// entries. For a log with one partition there is nothing else to see to.
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
