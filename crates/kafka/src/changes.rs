//! The stream of tiles that were written, from writers to the readers that keep them in memory.
//!
//! ```text
//! tile       ┌──────┬────────┬────────┬──────────┬─────────┬─────┬─────────────┐
//!            │ 0 u8 │ period │ writer │ included │ key len │ key │ packed tile │
//!            └──────┴────────┴────────┴──────────┴─────────┴─────┴─────────────┘
//! heartbeat  ┌──────┬───────────┬──────────┬───────┐        numbers are little-endian; a period is a day,
//!            │ 1 u8 │ partition │ position │ at ms │        or a span of days with its highest bit set
//!            └──────┴───────────┴──────────┴───────┘
//! gap        ┌──────┐
//!            │ 2 u8 │
//!            └──────┘
//! ```

use crate::context::Context;
use crate::error::{self, Error};
use crate::producer::{Outgoing, Producer, Ticket};
use crate::topic::KafkaTopic;
use raingauge_core::tile::Tile;
use raingauge_core::tile::id::TileId;
use raingauge_ports::log::Partition;
use raingauge_ports::tiles::{Part, TileChanges, TileFeed};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::{Message, Offset, TopicPartitionList};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);
const SPAN_FLAG: u32 = 1 << 31;

/// Where the writers of this process publish.
pub struct KafkaFeed {
    topic: String,
    producer: Arc<Producer>,
    /// Something could not be sent: readers are to know before they hear more.
    lost: Arc<AtomicBool>,
}

impl KafkaFeed {
    pub fn new(topic: &KafkaTopic) -> Result<Self, Error> {
        Ok(Self { topic: topic.options().changes_topic(), producer: topic.producer()?, lost: Arc::default() })
    }

    fn send(&self, partition: Partition, change: &TileChanges) {
        let lost = Arc::clone(&self.lost);
        let ticket = Ticket::new(move |outcome| {
            if outcome.is_err() {
                lost.store(true, Ordering::Release);
            }
        });
        let payload = encode(change);
        let (partition, headers) = (Some(partition), OwnedHeaders::new());
        let outgoing = Outgoing { topic: &self.topic, partition, key: None, payload: Some(&payload), headers };
        if self.producer.send(outgoing, &ticket).is_err() {
            self.lost.store(true, Ordering::Release);
        }
    }
}

impl TileFeed for KafkaFeed {
    fn publish(&self, partition: Partition, change: TileChanges) {
        if self.lost.swap(false, Ordering::AcqRel) {
            self.send(partition, &TileChanges::Gap);
        }
        self.send(partition, &change);
    }
}

/// Listens to the stream until it is dropped.
pub struct Listening {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tells `apply` everything that is published from now on, and of gaps.
pub fn listen(topic: &KafkaTopic, apply: impl Fn(TileChanges) + Send + 'static) -> Result<Listening, Error> {
    let (options, name) = (topic.options(), topic.options().changes_topic());
    let context = Context { connection: topic.connection() };
    let consumer: BaseConsumer<Context> =
        options.cursor_config(POLL).create_with_context(context).map_err(error::settings)?;
    let mut places = TopicPartitionList::new();
    for partition in 0..topic.partitions() {
        places.add_partition_offset(&name, partition.into(), Offset::End).map_err(error::settings)?;
    }
    consumer.assign(&places).map_err(error::settings)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = std::thread::Builder::new().name("kafka-changes".to_owned()).spawn(move || {
        let mut next = HashMap::<i32, i64>::new();
        while !stopped.load(Ordering::Acquire) {
            match consumer.poll(POLL) {
                // Whoever has heard everything has missed nothing.
                None | Some(Err(KafkaError::PartitionEOF(_))) => {}
                Some(Err(error)) => {
                    tracing::debug!(%error, "the stream of tiles is interrupted");
                    apply(TileChanges::Gap);
                    if is_place_lost(&error) {
                        next.clear();
                        if let Err(error) = consumer.assign(&places) {
                            tracing::warn!(%error, "the stream of tiles cannot be followed: counts are read from storage");
                        }
                    }
                }
                Some(Ok(message)) => {
                    // The first one too: what stands before it was published while the end was looked for.
                    if next.insert(message.partition(), message.offset() + 1) != Some(message.offset()) {
                        apply(TileChanges::Gap);
                    }
                    apply(message.payload().and_then(decode).unwrap_or(TileChanges::Gap));
                }
            }
        }
    })?;
    Ok(Listening { stop, thread: Some(thread) })
}

/// Whether the messages that come next are gone, since nobody listened for as long as they are kept. The client would not
/// read on by itself.
fn is_place_lost(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code();
    matches!(code, Some(RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::AutoOffsetReset))
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
    }
    bytes
}

/// `None` for what this program does not know.
fn decode(bytes: &[u8]) -> Option<TileChanges> {
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
            Some(TileChanges::Tile { key, part })
        }
        1 => {
            let partition = Partition::from_le_bytes(take(&mut rest)?);
            let position = u64::from_le_bytes(take(&mut rest)?);
            Some(TileChanges::Heartbeat { partition, position, at_ms: i64::from_le_bytes(take(&mut rest)?) })
        }
        2 => Some(TileChanges::Gap),
        _ => None,
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
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
        ];
        for message in messages {
            let bytes = encode(&message);
            assert_eq!(decode(&bytes), Some(message));
            (0..bytes.len()).for_each(|len| drop(decode(&bytes[..len])));
        }
        assert_eq!(decode(&[9]), None);
    }
}
