//! The topic of entries of points.
//!
//! A message is a CloudEvent in binary mode, like an event of the log, and its key is the member:
//! librdkafka sends the messages of a key to the same partition, in their order.

use crate::error::Error;
use crate::message;
use crate::migrate;
use crate::options::Options;
use crate::producer::{Outcome, Outgoing, Producer, RETRY_AFTER};
use crate::room::Room;
use crate::topic::Topic;
use raingauge_ports::BoxFuture;
use raingauge_ports::log::{self, Batch};
use raingauge_ports::points::EntryStream;
use raingauge_ports::record::{self, Entry};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::sync::oneshot;

/// Publishes events to a topic of its own, with a producer of its own: a topic that takes nothing
/// must not hold the events that come in.
pub struct EntryTopic {
    options: Options,
    producer: Producer,
    room: Room,
}

impl EntryTopic {
    /// Finds the topic, and checks whether it keeps all entries.
    pub async fn open(topic: &Topic, name: &str) -> Result<Self, Error> {
        topic.look_for(name).await?;
        migrate::check_entries(topic.options(), name).await?;
        let options = Options { topic: name.to_owned(), ..topic.options().clone() };
        let producer = Producer::new(&options, topic.connection())?;
        let room = Room::new(options.queue_bytes_max);
        Ok(Self { options, producer, room })
    }

    /// Enqueues the whole batch.
    fn send(&self, batch: &Batch) -> Result<oneshot::Receiver<Outcome>, log::Error> {
        self.producer.renew_when_broken()?;
        let (ticket, answer) = self.room.ticket_for(batch.bytes.len())?;
        let mut rest = &batch.bytes[..];

        for _ in &batch.entries {
            let entry = record::split_entry(&mut rest).and_then(record::parse);
            let Some(Entry::Event(event)) = entry else {
                return Err(log::Error::Corrupt("a batch holds what is not an event".to_owned()));
            };
            let outgoing = Outgoing {
                topic: &self.options.topic,
                partition: None,
                key: event.subject.as_deref().map(str::as_bytes),
                payload: Some(event.data.as_bytes()),
                headers: message::headers_of(&event),
            };
            self.producer.send(outgoing, &ticket).map_err(|error| self.refused(&error))?;
        }
        Ok(answer)
    }

    fn refused(&self, error: &KafkaError) -> log::Error {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) {
            return log::Error::Busy { retry_after: RETRY_AFTER };
        }
        let Options { topic, .. } = &self.options;
        let place = self.options.place();
        let why = format!("the brokers at {place} did not confirm entries for {topic}: {error}");
        log::Error::Io(std::io::Error::other(why))
    }
}

impl EntryStream for EntryTopic {
    fn publish(&self, batch: Batch) -> BoxFuture<'_, Result<(), log::Error>> {
        Box::pin(async move {
            let stopped = |_| log::Error::Closed("the producer was stopped".to_owned());
            let outcome = self.send(&batch)?.await.map_err(stopped)?;
            outcome.map(drop).map_err(|error| self.refused(&error))
        })
    }
}
