//! The leases of readers that answer from tiles in memory, in a topic of one partition.
//!
//! ```text
//! held       ┌──────┬────────┬─────┬────────┬───
//!            │ 0 u8 │ reader │ len │ offset │ …     numbers are little-endian
//!            └──────┴────────┴─────┴────────┴───
//! ended      ┌──────┬────────┐
//!            │ 1 u8 │ reader │
//!            └──────┴────────┘
//! barrier    ┌──────┬─────────┬────────┬─────────┐
//!            │ 2 u8 │ process │ number │ sent ms │
//!            └──────┴─────────┴────────┴─────────┘
//! ```

use crate::error::Error;
use crate::producer::{Outgoing, Producer, Ticket};
use crate::stream::{self, Listening, StreamMessage, take};
use crate::topic::Topic;
use raingauge_ports::leases::{LeaseMessage, LeaseTopic, Sent};
use rdkafka::message::OwnedHeaders;
use std::sync::Arc;

/// The topic through which readers and acknowledging processes exchange leases.
pub struct Leases {
    topic: Topic,
    name: String,
    producer: Arc<Producer>,
}

impl Leases {
    /// Returns once the topic exists.
    pub async fn open(topic: &Topic) -> Result<Self, Error> {
        let name = topic.options().leases_topic();
        let producer = topic.producer()?;
        topic.look_for(&name).await?;
        Ok(Self { topic: topic.clone(), name, producer })
    }

    /// Calls `apply` with everything sent from now on, and with gaps.
    pub fn listen(
        &self,
        apply: impl Fn(LeaseMessage) + Send + 'static,
    ) -> Result<Listening, Error> {
        stream::listen(&self.topic, &self.name, 1, apply)
    }
}

impl LeaseTopic for Leases {
    fn send(&self, message: &LeaseMessage, sent: Sent) {
        let ticket = Ticket::new(move |outcome| sent(outcome.is_ok_and(|ends| !ends.is_empty())));
        let payload = encode(message);
        let headers = OwnedHeaders::new();
        let outgoing = Outgoing {
            topic: &self.name,
            partition: Some(0),
            key: None,
            payload: Some(&payload),
            headers,
        };

        if let Err(error) = self.producer.send(outgoing, &ticket) {
            tracing::debug!(%error, "a lease could not be sent");
        }
    }
}

fn encode(message: &LeaseMessage) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    match message {
        LeaseMessage::Held { reader, heard } => {
            bytes.push(0);
            bytes.extend_from_slice(&reader.to_le_bytes());
            bytes.extend_from_slice(&(heard.len() as u16).to_le_bytes());
            heard.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_le_bytes()));
        }
        LeaseMessage::Ended { reader } => {
            bytes.push(1);
            bytes.extend_from_slice(&reader.to_le_bytes());
        }
        LeaseMessage::Barrier { process, number, sent_ms } => {
            bytes.push(2);
            bytes.extend_from_slice(&process.to_le_bytes());
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&sent_ms.to_le_bytes());
        }
        LeaseMessage::Gap => bytes.push(3),
    }

    bytes
}

impl StreamMessage for LeaseMessage {
    const GAP: Self = Self::Gap;

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match kind {
            0 => {
                let reader = u64::from_le_bytes(take(&mut rest)?);
                let len = u16::from_le_bytes(take(&mut rest)?);
                let heard = (0..len)
                    .map(|_| take(&mut rest).map(u64::from_le_bytes))
                    .collect::<Option<_>>()?;

                Some(Self::Held { reader, heard })
            }
            1 => Some(Self::Ended { reader: u64::from_le_bytes(take(&mut rest)?) }),
            2 => {
                let process = u64::from_le_bytes(take(&mut rest)?);
                let number = u64::from_le_bytes(take(&mut rest)?);
                Some(Self::Barrier {
                    process,
                    number,
                    sent_ms: i64::from_le_bytes(take(&mut rest)?),
                })
            }
            3 => Some(Self::Gap),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lead_back() {
        let messages = [
            LeaseMessage::Held { reader: u64::MAX, heard: vec![0, 1 << 50, 7] },
            LeaseMessage::Held { reader: 1, heard: Vec::new() },
            LeaseMessage::Ended { reader: 5 },
            LeaseMessage::Barrier { process: 3, number: 9, sent_ms: -1 },
            LeaseMessage::Gap,
        ];

        for message in messages {
            let bytes = encode(&message);
            (0..bytes.len()).for_each(|len| {
                assert_ne!(LeaseMessage::decode(&bytes[..len]), Some(message.clone()))
            });
            assert_eq!(LeaseMessage::decode(&bytes), Some(message));
        }

        assert_eq!(LeaseMessage::decode(&[9]), None);
    }
}
