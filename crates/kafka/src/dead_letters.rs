//! Messages that cannot be counted, and where they go: as they came, with headers that say why and where from.

use crate::producer::{Outgoing, Producer, Ticket};
use crate::topic::Shared;
use raingauge_core::event::Rejection;
use rdkafka::Message;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, OwnedHeaders, OwnedMessage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

/// A message that was refused.
pub struct Poison {
    pub message: OwnedMessage,
    pub rejection: Rejection,
}

impl Poison {
    pub fn of<M: Message>(message: &M, rejection: Rejection) -> Self {
        let headers = catch_unwind(AssertUnwindSafe(|| copied(message))).ok().flatten();
        let (key, payload) = (message.key().map(<[u8]>::to_vec), message.payload().map(<[u8]>::to_vec));
        let (topic, partition, offset) = (message.topic().to_owned(), message.partition(), message.offset());
        let message = OwnedMessage::new(payload, key, topic, message.timestamp(), partition, offset, headers);
        Self { message, rejection }
    }
}

/// The headers of a message; rdkafka panics at one whose name is not UTF-8, and then all are left out.
fn copied<M: Message>(message: &M) -> Option<OwnedHeaders> {
    let headers = message.headers()?;
    Some(headers.iter().fold(OwnedHeaders::new_with_capacity(headers.count() + 5), OwnedHeaders::insert))
}

/// Sends them and waits until they are confirmed. Answers whether all of them are dealt with: `false` when the brokers are
/// out of reach, and the same must be sent again. One that the brokers refuse for good is given up, and counted.
pub fn send(shared: &Shared, poisons: &[Poison]) -> bool {
    let producer = match shared.producer() {
        Ok(producer) => producer,
        Err(error) => {
            shared.connection.lost(&error.to_string());
            return false;
        }
    };
    poisons.iter().all(|poison| match deliver(shared, &producer, poison, true) {
        Ok(()) => {
            metrics::counter!("raingauge_dead_letters_total", "code" => poison.rejection.code).increment(1);
            true
        }
        Err(error) if is_for_good(&error) => {
            give_up(shared, poison, &error);
            true
        }
        Err(error) => {
            shared.connection.lost(&error.to_string());
            false
        }
    })
}

fn deliver(shared: &Shared, producer: &Producer, poison: &Poison, with_value: bool) -> Result<(), KafkaError> {
    let (sender, receiver) = mpsc::channel();
    let ticket = Ticket::new(move |outcome| drop(sender.send(outcome)));
    let message = &poison.message;
    let outgoing = Outgoing {
        topic: &shared.options.dead_letter_topic,
        partition: None,
        key: message.key(),
        payload: message.payload().filter(|_| with_value),
        headers: headers(poison, with_value),
    };
    let sent = producer.send(outgoing, &ticket);
    drop(ticket);
    let outcome = sent.and_then(|()| receiver.recv().unwrap_or(Err(KafkaError::Canceled)).map(drop));
    match outcome.as_ref().err().and_then(KafkaError::rdkafka_error_code) {
        // With its reason it is larger than what fits: the place where it lies is told all the same.
        Some(RDKafkaErrorCode::MessageSizeTooLarge) if with_value => deliver(shared, producer, poison, false),
        _ => outcome,
    }
}

fn headers(poison: &Poison, with_value: bool) -> OwnedHeaders {
    let message = &poison.message;
    let mut headers = message.headers().cloned().unwrap_or_default();
    let mut add = |key: &str, value: &str| {
        headers = std::mem::take(&mut headers).insert(Header { key, value: Some(value) });
    };
    add("raingauge-reason-code", poison.rejection.code);
    add("raingauge-reason", &poison.rejection.detail);
    add("raingauge-source-topic", message.topic());
    add("raingauge-source-partition", &message.partition().to_string());
    add("raingauge-source-offset", &message.offset().to_string());
    if !with_value {
        add("raingauge-value-left-out", "true");
    }
    headers
}

fn is_for_good(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::UnknownTopic
                | Code::UnknownTopicOrPartition
                | Code::UnknownPartition
                | Code::TopicAuthorizationFailed
                | Code::MessageSizeTooLarge
                | Code::InvalidRecord
                | Code::PolicyViolation
        )
    )
}

fn give_up(shared: &Shared, poison: &Poison, error: &KafkaError) {
    metrics::counter!("raingauge_dead_letters_lost_total", "code" => poison.rejection.code).increment(1);
    tracing::error!(
        topic = shared.options.dead_letter_topic,
        partition = poison.message.partition(),
        offset = poison.message.offset(),
        code = poison.rejection.code,
        %error,
        "a message that cannot be counted could not be put into the dead-letter topic; it stays where it is in the log"
    );
}
