//! Appends a control entry to every partition or to none, using Kafka transactions.
//!
//! ```text
//!   requests ──▶ a thread: begin, one entry for each partition, commit ──▶ answers
//! ```
//!
//! Waiting requests share a transaction. While it is open, readers stop before its first message.
//! So it is kept short, and the brokers end the transaction of a dead process.

use crate::context::Connection;
use crate::control;
use crate::error::Error;
use crate::message;
use crate::options::Options;
use crate::producer::{self, Native, Outcome, RETRY_AFTER, Ticket};
use raingauge_ports::log::{self, Partition, PayloadOf};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, Producer as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Longest time for which a transaction may be open.
pub const TRANSACTION_MAX: Duration = Duration::from_secs(10);
/// Longest time until its messages are confirmed.
const DELIVERY_MAX: Duration = Duration::from_secs(5);
/// Bytes after which a transaction takes no more requests, and the limit of unconfirmed bytes.
const GROUP_BYTES: usize = 16 << 20;
/// Maximum number of waiting requests.
const WAITING_MAX: usize = 256;

/// For each partition the offset after the entry; `i64::MAX` if the brokers did not report it.
pub type Ends = BTreeMap<i32, i64>;

struct Request {
    payload_of: PayloadOf,
    answer: oneshot::Sender<Result<Ends, log::Error>>,
}

/// A request in an open transaction, and the ticket of its messages.
struct Sent {
    answer: oneshot::Sender<Result<Ends, log::Error>>,
    outcome: Receiver<Outcome>,
}

struct Failure {
    error: KafkaError,
    /// Whether it is certain that nothing is in the log.
    is_taken_back: bool,
}

pub struct Transactions {
    requests: SyncSender<Request>,
}

impl Transactions {
    pub fn start(
        options: Arc<Options>,
        connection: Arc<Connection>,
        partitions: Partition,
    ) -> Result<Self, Error> {
        let (requests, waiting) = sync_channel(WAITING_MAX);
        // A process with the same id would end this one's transactions.
        let id = format!("{}-all-{:016x}", options.topic, rand::random::<u64>());
        let sender = Sender { options, connection, partitions, id, native: None, waiting };
        std::thread::Builder::new()
            .name("kafka-transactions".to_owned())
            .spawn(move || sender.run())?;
        Ok(Self { requests })
    }

    /// Returns when every partition has its entry, or none has.
    pub fn append(
        &self,
        payload_of: PayloadOf,
    ) -> Result<oneshot::Receiver<Result<Ends, log::Error>>, log::Error> {
        let (answer, answered) = oneshot::channel();
        self.requests.try_send(Request { payload_of, answer }).map_err(|error| match error {
            TrySendError::Full(_) => log::Error::Busy { retry_after: RETRY_AFTER },
            TrySendError::Disconnected(_) => {
                log::Error::Closed("the thread of its transactions has ended".to_owned())
            }
        })?;
        Ok(answered)
    }
}

/// The sending thread.
struct Sender {
    options: Arc<Options>,
    connection: Arc<Connection>,
    partitions: Partition,
    id: String,
    /// Created when first needed, and again after it failed.
    native: Option<Native>,
    waiting: Receiver<Request>,
}

impl Sender {
    fn run(mut self) {
        while let Ok(first) = self.waiting.recv() {
            let mut group = Vec::new();
            let done = self.transact(first, &mut group).map_err(|failure| self.explain(&failure));

            for Sent { answer, outcome } in group {
                let ends = match &done {
                    Ok(()) => outcome
                        .recv_timeout(DELIVERY_MAX)
                        .ok()
                        .and_then(Result::ok)
                        .unwrap_or_default(),
                    Err(_) => Ends::new(),
                };
                // The request may have been abandoned.
                drop(answer.send(done.as_ref().map(|()| self.completed(ends)).map_err(said_again)));
            }
        }
    }

    /// Sends a request, and those that wait behind it, in one transaction.
    fn transact(&mut self, first: Request, group: &mut Vec<Sent>) -> Result<(), Failure> {
        let (first, ticket) = taken(first, group);
        let native = self.producer().map_err(|error| Failure { error, is_taken_back: true })?;
        let begun = native.begin_transaction();
        let written = begun.and_then(|()| {
            let mut bytes = self.write(&native, &first, &ticket)?;
            drop(ticket);

            while bytes < GROUP_BYTES
                && let Ok(next) = self.waiting.try_recv()
            {
                let (next, ticket) = taken(next, group);
                bytes += self.write(&native, &next, &ticket)?;
            }

            commit(&native)
        });

        let Err(error) = written else { return Ok(()) };

        // An aborted transaction was not committed.
        let is_taken_back = native.abort_transaction(self.options.request_timeout).is_ok();
        if !is_taken_back {
            self.native = None;
        }
        Err(Failure { error, is_taken_back })
    }

    /// Enqueues a request's entries. Returns their size in bytes.
    fn write(
        &self,
        native: &Native,
        payload_of: &PayloadOf,
        ticket: &Arc<Ticket>,
    ) -> Result<usize, KafkaError> {
        let mut bytes = 0;
        let mut unconfirmed = 0;
        for partition in 0..self.partitions {
            let payload = payload_of(partition);
            let signature = control::signature(&self.options, partition, &payload);
            let record: BaseRecord<'_, (), [u8], _> = BaseRecord {
                topic: &self.options.topic,
                partition: Some(partition.into()),
                payload: Some(&payload),
                key: None,
                timestamp: None,
                headers: Some(message::control_headers(signature.as_deref())),
                delivery_opaque: Arc::clone(ticket),
            };

            native.send(record).map_err(|(error, _)| error)?;
            (bytes, unconfirmed) = (bytes + payload.len(), unconfirmed + payload.len());

            if unconfirmed >= GROUP_BYTES {
                native.flush(DELIVERY_MAX)?;
                unconfirmed = 0;
            }
        }

        Ok(bytes)
    }

    fn producer(&mut self) -> Result<Native, KafkaError> {
        if let Some(native) = &self.native {
            return Ok(native.clone());
        }
        let config = self.options.transactional_config(&self.id, TRANSACTION_MAX, DELIVERY_MAX);
        let native = producer::create(&config, &self.connection)?;
        native.init_transactions(self.options.request_timeout)?;
        Ok(self.native.insert(native).clone())
    }

    /// The ends of all partitions; missing ones are requested later.
    fn completed(&self, told: Ends) -> Ends {
        let end = |partition: i32| told.get(&partition).copied().unwrap_or(i64::MAX);
        (0..i32::from(self.partitions)).map(|partition| (partition, end(partition))).collect()
    }

    fn explain(&self, Failure { error, is_taken_back }: &Failure) -> log::Error {
        let brokers = self.options.place();
        if *is_taken_back {
            log::Error::NotTaken(format!("the brokers at {brokers} took no transaction: {error}"))
        } else {
            log::Error::Io(std::io::Error::other(format!(
                "the brokers at {brokers} did not say whether they committed a transaction: {error}; send the request again, with \
                 the Idempotency-Key that it had"
            )))
        }
    }
}

/// Adds a request to the group: its payloads, and the ticket of its messages.
fn taken(
    Request { payload_of, answer }: Request,
    group: &mut Vec<Sent>,
) -> (PayloadOf, Arc<Ticket>) {
    let (told, outcome) = std::sync::mpsc::channel();
    group.push(Sent { answer, outcome });
    (payload_of, Ticket::new(move |outcome| drop(told.send(outcome))))
}

/// Commits, and retries as long as the brokers may still do it.
fn commit(native: &Native) -> Result<(), KafkaError> {
    let deadline = Instant::now() + TRANSACTION_MAX;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match native.commit_transaction(left) {
            Err(KafkaError::Transaction(error)) if error.is_retriable() && !left.is_zero() => {}
            done => return done,
        }
    }
}

/// The same error for another request of the group.
fn said_again(error: &log::Error) -> log::Error {
    match error {
        log::Error::NotTaken(reason) => log::Error::NotTaken(reason.clone()),
        other => log::Error::Io(std::io::Error::other(other.to_string())),
    }
}
