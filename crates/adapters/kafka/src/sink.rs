//! Sends events to the topic.

use crate::context::Connection;
use crate::control;
use crate::error::Error;
use crate::message;
use crate::options::Options;
use crate::producer::{Outcome, Outgoing, Producer, RETRY_AFTER};
use crate::room::Room;
use crate::topic::Topic;
use crate::transactions::{Ends, Transactions};
use parking_lot::Mutex;
use raingauge_ports::log::{
    self, Answer, Appended, Batch, EventSink, Offset, Partition, PayloadOf,
};
use raingauge_ports::record::{self, Entry};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Sends events to the partitions of their identities, and returns when the brokers have confirmed
/// all of them.
///
/// It does not recognize repetitions, not even within a batch: all events are `accepted`, and
/// readers count each once. An error claims nothing: some of the batch may be in the topic, and the
/// caller sends all of it again.
pub struct Sink {
    producer: Arc<Producer>,
    topic: Arc<str>,
    partitions: Partition,
    base: Offset,
    options: Arc<Options>,
    connection: Arc<Connection>,
    /// Started when first needed.
    transactions: Mutex<Option<Arc<Transactions>>>,
    room: Room,
}

impl Sink {
    pub fn new(topic: &Topic) -> Result<Self, Error> {
        Ok(Self {
            producer: topic.producer()?,
            topic: topic.name(),
            partitions: topic.partitions(),
            base: topic.options().base(),
            options: Arc::new(topic.options().clone()),
            connection: topic.connection(),
            transactions: Mutex::default(),
            room: Room::new(topic.options().queue_bytes_max),
        })
    }

    /// Enqueues the whole batch.
    fn send(&self, batch: &Batch) -> Result<oneshot::Receiver<Outcome>, log::Error> {
        self.producer.renew_when_broken()?;
        let (ticket, answer) = self.room.ticket_for(batch.bytes.len())?;
        let mut rest = &batch.bytes[..];

        for (_, identity) in &batch.entries {
            let entry = record::split_entry(&mut rest).and_then(record::parse);
            let Some(Entry::Event(event)) = entry else {
                return Err(log::Error::Corrupt("a batch holds what is not an event".to_owned()));
            };
            let key = message::key_of(*identity);
            let outgoing = Outgoing {
                topic: &self.topic,
                partition: Some(message::partition_of(*identity, self.partitions)),
                key: Some(key.as_bytes()),
                payload: Some(event.data.as_bytes()),
                headers: message::headers_of(&event),
            };

            self.producer.send(outgoing, &ticket).map_err(|error| self.refused(&error))?;
        }

        Ok(answer)
    }

    fn transactions(&self) -> Result<Arc<Transactions>, Error> {
        let mut transactions = self.transactions.lock();
        if let Some(begun) = &*transactions {
            return Ok(Arc::clone(begun));
        }
        let begun = Transactions::start(
            Arc::clone(&self.options),
            Arc::clone(&self.connection),
            self.partitions,
        )?;
        Ok(Arc::clone(transactions.insert(Arc::new(begun))))
    }

    fn refused(&self, error: &KafkaError) -> log::Error {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::QueueFull) => log::Error::Busy { retry_after: RETRY_AFTER },
            _ => log::Error::Closed(self.producer.sentence(error)),
        }
    }

    /// Waits for the confirmations and returns the ends as the ports count them.
    async fn confirmed(
        &self,
        answer: oneshot::Receiver<Outcome>,
    ) -> Result<Vec<(Partition, Offset)>, log::Error> {
        let outcome =
            answer.await.map_err(|_| log::Error::Closed("the producer was stopped".to_owned()))?;
        self.ends_of(outcome.map_err(|error| self.refused(&error))?).await
    }

    async fn ends_of(&self, confirmed: Ends) -> Result<Vec<(Partition, Offset)>, log::Error> {
        let mut ends = Vec::new();
        for (partition, end) in confirmed {
            let end = if end == i64::MAX { self.end_of(partition).await? } else { end };
            ends.push((partition as Partition, self.base + end as Offset));
        }
        Ok(ends)
    }

    /// The partition's current end, at or after a message that was confirmed without an offset.
    async fn end_of(&self, partition: i32) -> Result<i64, log::Error> {
        let producer = Arc::clone(&self.producer);
        let asked = tokio::task::spawn_blocking(move || producer.end(partition)).await;
        let end = asked.map_err(|_| log::Error::Closed("raingauge is stopping".to_owned()))?;
        end.map_err(|error| self.refused(&error))
    }
}

impl EventSink for Sink {
    fn partitions(&self) -> Partition {
        self.partitions
    }

    fn append(&self, batch: Batch) -> Answer<'_, Appended> {
        let sent = self.send(&batch);
        let accepted = batch.len();
        Box::pin(async move {
            Ok(Appended { accepted, duplicates: 0, ends: self.confirmed(sent?).await? })
        })
    }

    fn append_control(&self, partition: Partition, payload: Vec<u8>) -> Answer<'_, Offset> {
        Box::pin(async move {
            self.producer.renew_when_broken()?;
            let (ticket, answer) = self.room.ticket_for(payload.len())?;
            let outgoing = Outgoing {
                topic: &self.topic,
                partition: Some(partition),
                key: None,
                payload: Some(&payload),
                headers: message::control_headers(
                    control::signature(&self.options, partition, &payload).as_deref(),
                ),
            };

            self.producer.send(outgoing, &ticket).map_err(|error| self.refused(&error))?;
            drop(ticket);

            let ends = self.confirmed(answer).await?;
            ends.first()
                .map(|(_, end)| *end)
                .ok_or_else(|| log::Error::Closed("nothing was confirmed".to_owned()))
        })
    }

    fn append_to_all(&self, payload_of: PayloadOf) -> Answer<'_, Vec<(Partition, Offset)>> {
        Box::pin(async move {
            // A single message needs no transaction.
            if self.partitions == 1 {
                return Ok(vec![(0, self.append_control(0, payload_of(0)).await?)]);
            }
            let answer = self.transactions()?.append(payload_of)?;
            let ended =
                |_| log::Error::Closed("the thread of its transactions has ended".to_owned());
            self.ends_of(answer.await.map_err(ended)??).await
        })
    }
}
