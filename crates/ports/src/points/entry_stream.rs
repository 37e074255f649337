//! The stream of entries, for consumers outside of raingauge.

use crate::BoxFuture;
use crate::log::{Batch, Error};

/// Publishes the events of entries. Consumers receive those of one subject, a member, in the order
/// in which they were published.
pub trait EntryStream: Send + Sync {
    /// Publishes events in their order, each under the key of its subject, and returns when all are
    /// durable. After an error some of them may be in the stream: the caller publishes all of them
    /// again, and consumers recognize repetitions by source and id.
    fn publish(&self, batch: Batch) -> BoxFuture<'_, Result<(), Error>>;
}
