//! The stream of entries in memory, of a single partition.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::log::{Batch, Error};
use raingauge_ports::points;
use std::future::ready;

/// Keeps every batch, also those that are published again.
#[derive(Default)]
pub struct EntryStream(Mutex<Vec<u8>>);

impl EntryStream {
    /// The events so far as entries of the log, one behind the other.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().clone()
    }
}

impl points::EntryStream for EntryStream {
    fn publish(&self, batch: Batch) -> BoxFuture<'_, Result<(), Error>> {
        self.0.lock().extend(batch.bytes);
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::contract::entry_stream::{ReceivedEvent, suite};
    use raingauge_ports::record::{self, Entry};

    fn received(bytes: &[u8]) -> Vec<ReceivedEvent> {
        let mut rest = bytes;
        let mut events = Vec::new();
        while let Some(entry) = record::split_entry(&mut rest) {
            let Some(Entry::Event(event)) = record::parse(entry) else { panic!("an event") };
            let subject = event.subject.expect("a member").into_owned();
            events.push(ReceivedEvent {
                key: subject.clone(),
                subject,
                source: event.source.into_owned(),
                id: event.id.into_owned(),
                kind: event.kind.into_owned(),
                time_ms: event.time_ms,
                data: event.data.to_owned(),
            });
        }
        events
    }

    #[tokio::test]
    async fn the_contract_is_kept() {
        let stream = EntryStream::default();
        suite(&stream, async |_| received(&stream.bytes())).await;
    }
}
