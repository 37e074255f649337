//! Sends messages that cannot be counted to the dead-letter topic, unchanged, with headers that
//! give the reason and the origin.

use crate::producer::{Outgoing, Producer, Ticket};
use crate::shared::Shared;
use raingauge_core::code::Refusal;
use rdkafka::Message;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, OwnedHeaders, OwnedMessage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Approximate memory for a refused message besides its texts.
const OVERHEAD_BYTES: usize = 256;

/// A refused message.
pub struct Poison {
    pub message: OwnedMessage,
    pub refusal: Refusal,
}

impl Poison {
    pub fn of<M: Message>(message: &M, refusal: Refusal) -> Self {
        let headers = catch_unwind(AssertUnwindSafe(|| copied(message))).ok().flatten();
        let key = message.key().map(<[u8]>::to_vec);
        let payload = message.payload().map(<[u8]>::to_vec);
        let topic = message.topic().to_owned();
        let partition = message.partition();
        let offset = message.offset();
        let message =
            OwnedMessage::new(payload, key, topic, message.timestamp(), partition, offset, headers);
        Self { message, refusal }
    }

    /// Approximate memory use.
    pub fn bytes(&self) -> usize {
        let headers = self.message.headers().into_iter().flat_map(|headers| headers.iter());
        let headers: usize =
            headers.map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len)).sum();
        let len = |text: Option<&[u8]>| text.map_or(0, <[u8]>::len);
        let texts =
            len(self.message.payload()) + len(self.message.key()) + self.refusal.detail.len();
        OVERHEAD_BYTES + headers + texts
    }
}

/// Copies a message's headers. rdkafka panics at a header name that is not UTF-8; all headers are
/// then left out.
fn copied<M: Message>(message: &M) -> Option<OwnedHeaders> {
    let headers = message.headers()?;
    Some(
        headers
            .iter()
            .fold(OwnedHeaders::new_with_capacity(headers.count() + 5), OwnedHeaders::insert),
    )
}

/// How often the wait for confirmations checks whether it must end.
const POLL: Duration = Duration::from_millis(50);
/// Pause before a send is retried when the brokers accepted nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// The outcome of one letter: its place in the batch, whether its value was sent, and the result.
type Report = (usize, bool, Result<(), KafkaError>);

/// Sends all messages at once and waits for each confirmation, or until `stops` is set. Keeps those
/// to send again, because the brokers are unreachable or the wait was cut short. A message that the
/// brokers refuse permanently is dropped and counted. Returns whether none is left.
pub fn send(shared: &Shared, poisons: &mut Vec<Poison>, stops: &AtomicBool) -> bool {
    if poisons.is_empty() {
        return true;
    }
    let producer =
        shared.producer().and_then(|producer| producer.renew_when_broken().map(|()| producer));
    let producer = match producer {
        Ok(producer) => producer,
        Err(error) => {
            shared.connection.lost(&error.to_string());
            std::thread::sleep(PAUSE);
            return false;
        }
    };

    let done = deliver_all(shared, &producer, poisons, stops);
    let any = done.iter().any(|done| *done);
    let mut done = done.into_iter();
    poisons.retain(|_| !done.next().unwrap_or(false));

    if !any && !stops.load(Ordering::Acquire) {
        std::thread::sleep(PAUSE);
    }
    poisons.is_empty()
}

/// Returns which messages are done.
fn deliver_all(
    shared: &Shared,
    producer: &Producer,
    poisons: &[Poison],
    stops: &AtomicBool,
) -> Vec<bool> {
    let (sender, receiver) = mpsc::channel();
    for (place, poison) in poisons.iter().enumerate() {
        deliver(shared, producer, place, poison, true, &sender);
    }

    let mut done = vec![false; poisons.len()];
    let mut waiting = poisons.len();
    while waiting > 0 && !stops.load(Ordering::Acquire) {
        let Ok((place, with_value, outcome)) = receiver.recv_timeout(POLL) else {
            continue;
        };
        let poison = &poisons[place];
        let is_too_large = |error: &KafkaError| {
            error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge)
        };

        match outcome {
            // With its reason the message exceeds the size limit, so only its location is sent.
            Err(error) if with_value && is_too_large(&error) => {
                deliver(shared, producer, place, poison, false, &sender);
                continue;
            }
            Ok(()) => {
                metrics::counter!("raingauge_dead_letters_total", "code" => poison.refusal.code.as_str())
                    .increment(1);
                done[place] = true;
            }
            Err(error) if is_for_good(&error) => {
                give_up(shared, poison, &error);
                done[place] = true;
            }
            Err(error) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) => {}
            Err(error) => shared.connection.lost(&error.to_string()),
        }

        waiting -= 1;
    }

    done
}

/// Enqueues one message. Its outcome is reported once.
fn deliver(
    shared: &Shared,
    producer: &Producer,
    place: usize,
    poison: &Poison,
    with_value: bool,
    reports: &mpsc::Sender<Report>,
) {
    let sender = reports.clone();
    let ticket =
        Ticket::new(move |outcome| drop(sender.send((place, with_value, outcome.map(drop)))));
    let message = &poison.message;
    let outgoing = Outgoing {
        topic: &shared.options.dead_letter_topic,
        partition: None,
        key: message.key(),
        payload: message.payload().filter(|_| with_value),
        headers: headers(poison, with_value),
    };

    if let Err(error) = producer.send(outgoing, &ticket) {
        ticket.fail(error);
    }
}

fn headers(poison: &Poison, with_value: bool) -> OwnedHeaders {
    let message = &poison.message;
    let mut headers = message.headers().cloned().unwrap_or_default();
    let mut add = |key: &str, value: &str| {
        headers = std::mem::take(&mut headers).insert(Header { key, value: Some(value) });
    };
    add("raingauge-reason-code", poison.refusal.code.as_str());
    add("raingauge-reason", &poison.refusal.detail);
    add("raingauge-source-topic", message.topic());
    add("raingauge-source-partition", &message.partition().to_string());
    add("raingauge-source-offset", &message.offset().to_string());

    if !with_value {
        add("raingauge-value-left-out", "true");
    }
    headers
}

fn is_for_good(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownPartition
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::MessageSizeTooLarge
                | RDKafkaErrorCode::InvalidRecord
                | RDKafkaErrorCode::PolicyViolation
        )
    )
}

fn give_up(shared: &Shared, poison: &Poison, error: &KafkaError) {
    metrics::counter!("raingauge_dead_letters_lost_total", "code" => poison.refusal.code.as_str())
        .increment(1);
    tracing::error!(
        topic = shared.options.dead_letter_topic,
        partition = poison.message.partition(),
        offset = poison.message.offset(),
        code = poison.refusal.code.as_str(),
        %error,
        "a message that cannot be counted could not be put into the dead-letter topic; it stays where it is in the log"
    );
}
