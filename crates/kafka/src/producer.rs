//! Sending: an idempotent producer, and tickets that are called in when every message of a batch is confirmed.

use crate::context::{self, Connection};
use crate::error::{self, Error};
use crate::options::Options;
use parking_lot::{Mutex, RwLock};
use raingauge_ports::log::Partition;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Message};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One message on its way.
pub struct Outgoing<'a> {
    pub topic: &'a str,
    /// Wherever the key leads to when it is left out.
    pub partition: Option<Partition>,
    pub key: Option<&'a [u8]>,
    pub payload: Option<&'a [u8]>,
    pub headers: OwnedHeaders,
}

/// What became of the messages of a ticket: of each partition, the offset behind the last one, or the first failure.
pub type Outcome = Result<BTreeMap<i32, i64>, KafkaError>;

type Done = Box<dyn FnOnce(Outcome) + Send>;

/// Called in when the last message that holds it has been confirmed, or has failed.
pub struct Ticket {
    outcome: Mutex<Outcome>,
    done: Mutex<Option<Done>>,
}

impl Ticket {
    pub fn new(done: impl FnOnce(Outcome) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { outcome: Mutex::new(Ok(BTreeMap::new())), done: Mutex::new(Some(Box::new(done))) })
    }

    fn note(&self, result: &DeliveryResult<'_>) {
        let mut outcome = self.outcome.lock();
        match (result, &mut *outcome) {
            (Ok(message), Ok(ends)) => {
                // A broker that already had the message, from a first try, confirms it without its offset.
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

struct Deliveries {
    connection: Arc<Connection>,
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
        if result.is_ok() {
            self.connection.restored();
        }
        ticket.note(result);
    }
}

type Native = ThreadedProducer<Deliveries>;

pub struct Producer {
    options: Options,
    connection: Arc<Connection>,
    native: RwLock<Arc<Native>>,
}

impl Producer {
    pub fn new(options: &Options, connection: Arc<Connection>) -> Result<Self, Error> {
        let native = RwLock::new(Arc::new(start(options, &connection)?));
        Ok(Self { options: options.clone(), connection, native })
    }

    /// Hands a message over; it is sent in the background.
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

    /// An idempotent producer that lost the broker's trust is of no use any more: begins another one.
    pub fn renew_when_broken(&self) -> Result<(), Error> {
        let broken = |native: &Native| native.client().fatal_error();
        if broken(&self.native.read()).is_none() {
            return Ok(());
        }
        let mut native = self.native.write();
        if let Some((code, reason)) = broken(&native) {
            tracing::warn!(%code, reason, "the producer failed for good; beginning another one");
            *native = Arc::new(start(&self.options, &self.connection)?);
        }
        Ok(())
    }

    /// The offset behind a partition's last message, asked of the broker. Blocks the thread.
    pub fn end(&self, partition: i32) -> Result<i64, KafkaError> {
        let native = Arc::clone(&self.native.read());
        let watermarks = native.client().fetch_watermarks(&self.options.topic, partition, self.options.request_timeout);
        watermarks.map(|(_, end)| end)
    }

    /// What a failure means to whoever sent.
    pub fn sentence(&self, error: &KafkaError) -> String {
        let brokers = self.options.place();
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageTimedOut) => format!(
                "the brokers at {brokers} did not confirm within {} s that they have the events: send them again, \
                 repetitions are not counted twice",
                self.options.delivery_timeout.as_secs_f64()
            ),
            _ => format!(
                "the brokers at {brokers} refused the events: {error}: send them again, repetitions are not counted twice"
            ),
        }
    }
}

fn start(options: &Options, connection: &Arc<Connection>) -> Result<Native, Error> {
    let context = Deliveries { connection: Arc::clone(connection) };
    options.producer_config().create_with_context(context).map_err(error::settings)
}

/// How long whoever meets a full queue is told to wait.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
