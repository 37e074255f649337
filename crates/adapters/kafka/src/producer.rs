//! Sends messages with an idempotent producer, and reports when a whole batch is confirmed.

use crate::context::{self, Connection};
use crate::error::{self, Error};
use crate::options::Options;
use parking_lot::{Mutex, RwLock};
use raingauge_ports::log::Partition;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{
    BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer,
};
use rdkafka::{ClientContext, Message};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A message to send.
pub struct Outgoing<'a> {
    pub topic: &'a str,
    /// `None` lets the key choose.
    pub partition: Option<Partition>,
    pub key: Option<&'a [u8]>,
    pub payload: Option<&'a [u8]>,
    pub headers: OwnedHeaders,
}

/// The result for a ticket: for each partition the offset after its last message, or the first
/// failure.
pub type Outcome = Result<BTreeMap<i32, i64>, KafkaError>;

type Done = Box<dyn FnOnce(Outcome) + Send>;

/// Resolves when the last message that holds it has been confirmed or has failed.
pub struct Ticket {
    outcome: Mutex<Outcome>,
    done: Mutex<Option<Done>>,
}

impl Ticket {
    pub fn new(done: impl FnOnce(Outcome) + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            outcome: Mutex::new(Ok(BTreeMap::new())),
            done: Mutex::new(Some(Box::new(done))),
        })
    }

    /// Notes that a message could not be enqueued.
    pub fn fail(&self, error: KafkaError) {
        let mut outcome = self.outcome.lock();
        if outcome.is_ok() {
            *outcome = Err(error);
        }
    }

    fn note(&self, result: &DeliveryResult<'_>) {
        let mut outcome = self.outcome.lock();
        match (result, &mut *outcome) {
            (Ok(message), Ok(ends)) => {
                // A broker that already had the message from a first attempt confirms it without
                // its offset.
                let end = if message.offset() < 0 { i64::MAX } else { message.offset() + 1 };
                let known = ends.entry(message.partition()).or_insert(end);
                *known = end.max(*known);
            }
            (Err((error, _)), Ok(_)) => *outcome = Err(error.clone()),
            (_, Err(_)) => {}
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(done) = self.done.get_mut().take() {
            done(std::mem::replace(self.outcome.get_mut(), Ok(BTreeMap::new())));
        }
    }
}

/// Partitions whose messages keep timing out while none is confirmed.
#[derive(Default)]
struct Stalls {
    /// Whether there are any, so that sends need not take the lock.
    some: AtomicBool,
    /// When the first and last message of each timed out, by topic and partition.
    timed_out: Mutex<BTreeMap<(String, i32), (Instant, Instant)>>,
}

impl Stalls {
    fn confirmed(&self, topic: &str, partition: i32) {
        if self.some.load(Ordering::Relaxed) {
            let mut timed_out = self.timed_out.lock();
            timed_out.remove(&(topic.to_owned(), partition));
            self.some.store(!timed_out.is_empty(), Ordering::Relaxed);
        }
    }

    fn timed_out(&self, topic: &str, partition: i32, now: Instant) {
        let mut timed_out = self.timed_out.lock();
        timed_out.entry((topic.to_owned(), partition)).or_insert((now, now)).1 = now;
        self.some.store(true, Ordering::Relaxed);
    }

    /// Returns a partition of which nothing was confirmed for longer than `limit`, despite
    /// attempts.
    fn longer_than(&self, limit: Duration) -> Option<(String, i32)> {
        if !self.some.load(Ordering::Relaxed) {
            return None;
        }
        let timed_out = self.timed_out.lock();
        timed_out
            .iter()
            .find(|(_, (first, last))| *last - *first >= limit)
            .map(|(place, _)| place.clone())
    }
}

pub struct Deliveries {
    connection: Arc<Connection>,
    stalls: Stalls,
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::note(&self.connection, &error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Arc<Ticket>;

    fn delivery(&self, result: &DeliveryResult<'_>, ticket: Arc<Ticket>) {
        match result {
            Ok(message) => {
                self.connection.restored();
                self.stalls.confirmed(message.topic(), message.partition());
            }
            Err((error, message))
                if error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageTimedOut) =>
            {
                self.stalls.timed_out(message.topic(), message.partition(), Instant::now());
            }
            Err(_) => {}
        }
        ticket.note(result);
    }
}

pub type Native = ThreadedProducer<Deliveries>;

pub struct Producer {
    options: Options,
    connection: Arc<Connection>,
    native: RwLock<Arc<Native>>,
    renewals: AtomicU64,
}

impl Producer {
    pub fn new(options: &Options, connection: Arc<Connection>) -> Result<Self, Error> {
        let native = RwLock::new(Arc::new(start(options, &connection)?));
        Ok(Self { options: options.clone(), connection, native, renewals: AtomicU64::new(0) })
    }

    /// Number of producers that replaced this one. Messages sent before a replacement may arrive
    /// after those sent since.
    pub fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Acquire)
    }

    /// Enqueues a message, which is sent in the background.
    pub fn send(&self, outgoing: Outgoing<'_>, ticket: &Arc<Ticket>) -> Result<(), KafkaError> {
        let record = BaseRecord {
            topic: outgoing.topic,
            partition: outgoing.partition.map(i32::from),
            payload: outgoing.payload,
            key: outgoing.key,
            timestamp: None,
            headers: Some(outgoing.headers),
            delivery_opaque: Arc::clone(ticket),
        };
        let native = Arc::clone(&self.native.read());
        native.send(record).map_err(|(error, _)| error)
    }

    /// Replaces a producer that no longer works: it lost the brokers' trust, or it waits forever
    /// for answers from before an outage and lets all new messages time out.
    pub fn renew_when_broken(&self) -> Result<(), Error> {
        if self.broken(&self.native.read()).is_none() {
            return Ok(());
        }
        let mut native = self.native.write();
        if let Some(reason) = self.broken(&native) {
            tracing::warn!(reason, "the producer failed; starting another one");
            let old =
                std::mem::replace(&mut *native, Arc::new(start(&self.options, &self.connection)?));
            self.renewals.fetch_add(1, Ordering::AcqRel);

            let patience = self.options.delivery_timeout;

            // Its messages may still be confirmed, or time out.
            std::thread::Builder::new()
                .name("kafka-producer-end".to_owned())
                .spawn(move || drop(old.flush(patience)))
                .map_err(|error| {
                    Error::Settings(format!("a thread could not be started: {error}"))
                })?;
        }

        Ok(())
    }

    fn broken(&self, native: &Native) -> Option<String> {
        if let Some((code, reason)) = native.client().fatal_error() {
            return Some(format!("{code}: {reason}"));
        }
        let limit = self.options.delivery_timeout;
        let (topic, partition) = native.context().stalls.longer_than(limit)?;
        Some(format!(
            "for {} s nothing was confirmed of partition {partition} of topic {topic}, although it was tried",
            limit.as_secs_f64()
        ))
    }

    /// Asks the broker for the offset after a partition's last message. Blocks the thread.
    pub fn end(&self, partition: i32) -> Result<i64, KafkaError> {
        let native = Arc::clone(&self.native.read());
        let watermarks = native.client().fetch_watermarks(
            &self.options.topic,
            partition,
            self.options.request_timeout,
        );
        watermarks.map(|(_, end)| end)
    }

    /// Explains a failure to the sender.
    pub fn sentence(&self, error: &KafkaError) -> String {
        let brokers = self.options.place();
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageTimedOut) => format!(
                "the brokers at {brokers} did not confirm the events within {} s: send them again, \
                 repetitions are not counted twice",
                self.options.delivery_timeout.as_secs_f64()
            ),
            _ => format!(
                "the brokers at {brokers} refused the events: {error}: send them again; repetitions are not counted twice"
            ),
        }
    }
}

fn start(options: &Options, connection: &Arc<Connection>) -> Result<Native, Error> {
    create(&options.producer_config(), connection).map_err(error::settings)
}

pub fn create(config: &ClientConfig, connection: &Arc<Connection>) -> Result<Native, KafkaError> {
    let context = Deliveries { connection: Arc::clone(connection), stalls: Stalls::default() };
    config.create_with_context(context)
}

/// How long a sender should wait when the queue is full.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_stalled_when_it_was_tried_for_long_and_nothing_was_confirmed() {
        let stalls = Stalls::default();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let limit = Duration::from_secs(5);

        stalls.timed_out("events", 2, at(0));
        stalls.timed_out("events", 3, at(0));
        stalls.timed_out("events", 2, at(4));
        assert_eq!(stalls.longer_than(limit), None);
        stalls.confirmed("events", 2);
        stalls.timed_out("events", 2, at(6));
        assert_eq!(
            stalls.longer_than(limit),
            None,
            "a confirmation ends the first stall, and the other was not tried again"
        );
        stalls.timed_out("events", 3, at(6));
        stalls.confirmed("changes", 3);
        assert_eq!(stalls.longer_than(limit), Some(("events".to_owned(), 3)));
        stalls.confirmed("events", 3);
        stalls.confirmed("events", 2);
        assert_eq!((stalls.longer_than(limit), stalls.some.load(Ordering::Relaxed)), (None, false));
    }
}
