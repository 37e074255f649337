//! The stream of tiles that were written, from writers to the readers that keep them in memory.
//!
//! ```text
//! tile       ┌──────┬────────┬────────┬──────────┬─────────┬─────┬─────────────┐
//!            │ 0 u8 │ period │ writer │ included │ key len │ key │ packed tile │
//!            └──────┴────────┴────────┴──────────┴─────────┴─────┴─────────────┘
//! heartbeat  ┌──────┬───────────┬──────────┬───────┐
//!            │ 1 u8 │ partition │ position │ at ms │
//!            └──────┴───────────┴──────────┴───────┘
//! gap        ┌──────┐
//!            │ 2 u8 │
//!            └──────┘
//! resumed    ┌──────┬───────────┬──────────┐
//!            │ 3 u8 │ partition │ position │
//!            └──────┴───────────┴──────────┘
//! ```
//!
//! Numbers are little-endian. A period is a day, or a span of days with its highest bit set. A
//! message of a kind that a reader does not know is a gap to it.

use crate::error::Error;
use crate::producer::{Outgoing, Producer, Ticket};
use crate::stream::{self, Listening, StreamMessage, take};
use crate::topic::Topic;
use parking_lot::Mutex;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::log::Partition;
use raingauge_ports::tiles::{Part, TileChanges, TileFeed};
use rdkafka::message::OwnedHeaders;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SPAN_FLAG: u32 = 1 << 31;

/// Publishes the tiles that this process's writers store.
pub struct Feed {
    topic: String,
    producer: Arc<Producer>,
    /// Number of messages that could not be sent.
    losses: Arc<AtomicU64>,
    /// For each partition, the number of losses that its readers have already been notified of.
    told: Mutex<HashMap<Partition, u64>>,
}

impl Feed {
    pub fn new(topic: &Topic) -> Result<Self, Error> {
        let producer = topic.producer()?;
        let topic = topic.options().changes_topic();
        Ok(Self { topic, producer, losses: Arc::default(), told: Mutex::default() })
    }

    fn send(&self, partition: Partition, change: &TileChanges) {
        let losses = Arc::clone(&self.losses);
        let ticket = Ticket::new(move |outcome| {
            if outcome.is_err() {
                losses.fetch_add(1, Ordering::AcqRel);
            }
        });

        let payload = encode(change);
        let partition = Some(partition);
        let headers = OwnedHeaders::new();
        let outgoing =
            Outgoing { topic: &self.topic, partition, key: None, payload: Some(&payload), headers };
        if self.producer.send(outgoing, &ticket).is_err() {
            self.losses.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns whether readers of a partition must drop their tiles before the next message.
    fn has_gap(&self, partition: Partition) -> bool {
        let troubles = self.losses.load(Ordering::Acquire) + self.producer.renewals();
        self.told.lock().insert(partition, troubles).unwrap_or(0) != troubles
    }
}

impl TileFeed for Feed {
    fn publish(&self, partition: Partition, change: TileChanges) {
        if self.has_gap(partition) {
            self.send(partition, &TileChanges::Gap);
        }
        self.send(partition, &change);
    }
}

/// Calls `apply` with every tile published from now on, and with gaps.
pub fn listen(
    topic: &Topic,
    apply: impl Fn(TileChanges) + Send + 'static,
) -> Result<Listening, Error> {
    stream::listen(topic, &topic.options().changes_topic(), topic.partitions(), apply)
}

fn encode(change: &TileChanges) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    match change {
        TileChanges::Tile { key, part } => {
            let span = if part.id.is_span() { SPAN_FLAG } else { 0 };
            bytes.push(0);
            bytes.extend_from_slice(&(part.id.period() | span).to_le_bytes());
            bytes.extend_from_slice(&part.writer.to_le_bytes());
            bytes.extend_from_slice(&part.included.to_le_bytes());
            bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(part.tile.as_bytes());
        }
        TileChanges::Heartbeat { partition, position, at_ms } => {
            bytes.push(1);
            bytes.extend_from_slice(&partition.to_le_bytes());
            bytes.extend_from_slice(&position.to_le_bytes());
            bytes.extend_from_slice(&at_ms.to_le_bytes());
        }
        TileChanges::Gap => bytes.push(2),
        TileChanges::Resumed { partition, position } => {
            bytes.push(3);
            bytes.extend_from_slice(&partition.to_le_bytes());
            bytes.extend_from_slice(&position.to_le_bytes());
        }
    }

    bytes
}

impl StreamMessage for TileChanges {
    const GAP: Self = Self::Gap;

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match kind {
            0 => {
                let period = u32::from_le_bytes(take(&mut rest)?);
                let writer = i64::from_le_bytes(take(&mut rest)?);
                let included = u64::from_le_bytes(take(&mut rest)?);
                let key_len = u16::from_le_bytes(take(&mut rest)?);
                let (key, tile) = rest.split_at_checked(key_len.into())?;
                let key = std::str::from_utf8(key).ok()?.to_owned();

                let id = TileId::of_period(period & SPAN_FLAG != 0, period & !SPAN_FLAG);
                let part = Part { id, writer, included, tile: Tile::from_bytes(tile).ok()? };
                Some(Self::Tile { key, part })
            }
            1 => {
                let partition = Partition::from_le_bytes(take(&mut rest)?);
                let position = u64::from_le_bytes(take(&mut rest)?);
                Some(Self::Heartbeat {
                    partition,
                    position,
                    at_ms: i64::from_le_bytes(take(&mut rest)?),
                })
            }
            2 => Some(Self::Gap),
            3 => {
                let partition = Partition::from_le_bytes(take(&mut rest)?);
                Some(Self::Resumed { partition, position: u64::from_le_bytes(take(&mut rest)?) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lead_back() {
        let mut tile = Tile::default();
        tile.add(3, 70_000);

        let part = |id| Part { id, writer: 34 << 28 | 5, included: 77, tile: tile.clone() };
        let messages = [
            TileChanges::Tile { key: "a:é".to_owned(), part: part(TileId::day(20_000)) },
            TileChanges::Tile { key: String::new(), part: part(TileId::span(20_000)) },
            TileChanges::Heartbeat { partition: 3, position: 1 << 50, at_ms: -1 },
            TileChanges::Gap,
            TileChanges::Resumed { partition: 3, position: 1 << 50 },
        ];

        for message in messages {
            let bytes = encode(&message);
            assert_eq!(TileChanges::decode(&bytes), Some(message));
            (0..bytes.len()).for_each(|len| drop(TileChanges::decode(&bytes[..len])));
        }

        assert_eq!(TileChanges::decode(&[9]), None);
    }
}
