//! Listens to everything published in a topic from now on.

use crate::context::Context;
use crate::error::{self, Error};
use crate::topic::Topic;
use raingauge_ports::log::Partition;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Message, Offset, TopicPartitionList};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread checks whether it must end.
const POLL: Duration = Duration::from_millis(100);

/// A message of such a topic.
pub trait StreamMessage: Sized {
    /// Stands for missing messages.
    const GAP: Self;

    /// `None` for a kind that this version does not know.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// Listens until it is dropped.
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

/// Calls `apply` with everything published in a topic from now on, and with gaps.
pub fn listen<M: StreamMessage>(
    topic: &Topic,
    name: &str,
    partitions: Partition,
    apply: impl Fn(M) + Send + 'static,
) -> Result<Listening, Error> {
    let context = Context { connection: topic.connection() };
    let consumer: BaseConsumer<Context> = topic
        .options()
        .cursor_config(POLL)
        .create_with_context(context)
        .map_err(error::settings)?;

    let mut places = TopicPartitionList::new();
    for partition in 0..partitions {
        places
            .add_partition_offset(name, partition.into(), Offset::End)
            .map_err(error::settings)?;
    }

    consumer.assign(&places).map_err(error::settings)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let topic = name.to_owned();
    let thread = std::thread::Builder::new().name("kafka-stream".to_owned()).spawn(move || {
        let mut next = HashMap::<i32, i64>::new();
        while !stopped.load(Ordering::Acquire) {
            match consumer.poll(POLL) {
                // A listener at the end has missed nothing.
                None | Some(Err(KafkaError::PartitionEOF(_))) => {}
                Some(Err(error)) => {
                    tracing::debug!(%error, topic, "a stream is interrupted");
                    apply(M::GAP);

                    if is_place_lost(&error) {
                        next.clear();
                        if let Err(error) = consumer.assign(&places) {
                            tracing::warn!(%error, topic, "a stream cannot be followed: counts are read from storage");
                        }
                    }
                }
                Some(Ok(message)) => {
                    // Also before the first message: earlier ones were published while the end was
                    // looked up.
                    let offset = message.offset();
                    if next.insert(message.partition(), offset + 1) != Some(offset) {
                        apply(M::GAP);
                    }
                    apply(message.payload().and_then(M::decode).unwrap_or(M::GAP));
                }
            }
        }
    })?;

    Ok(Listening { stop, thread: Some(thread) })
}

/// Returns whether the next messages have expired because the listener was away for too long. The
/// client would not continue by itself.
fn is_place_lost(error: &KafkaError) -> bool {
    let code = error.rdkafka_error_code();
    matches!(code, Some(RDKafkaErrorCode::OffsetOutOfRange | RDKafkaErrorCode::AutoOffsetReset))
}

/// Takes the next bytes of a message.
pub fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}
