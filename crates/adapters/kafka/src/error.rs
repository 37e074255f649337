//! Errors of the topic, in sentences that say what to do.

use raingauge_ports::log;
use rdkafka::error::KafkaError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "Kafka at {brokers} is out of reach: {reason}: check that the brokers run, and check kafka.brokers"
    )]
    Unreachable { brokers: String, reason: String },
    #[error("the settings of Kafka cannot be used: {0}")]
    Settings(String),
    #[error("the topic {topic} is not there: run `raingauge migrate`")]
    NoTopic { topic: String },
    #[error(
        "the topic {topic} has {found} partitions instead of {wanted}: repetitions of an event would lie in another \
         partition than the event and be counted again: begin a new topic, and raise kafka.epoch"
    )]
    PartitionsChanged { topic: String, found: i32, wanted: i32 },
    #[error("the topic {topic} has no partition {partition}")]
    NoPartition { topic: String, partition: u16 },
    #[error("the topic {topic} has {found} partitions; at most {} are taken", u16::MAX)]
    TooManyPartitions { topic: String, found: i32 },
    #[error(
        "the topic {topic} keeps the producers' times; counting goes by the time at which the broker appended a message: \
         set message.timestamp.type=LogAppendTime on it while it is empty, or begin a new topic"
    )]
    NotAppendTime { topic: String },
    #[error("the topic {topic} is compacted, which loses events: set cleanup.policy=delete on it")]
    Compacted { topic: String },
    #[error("{topic}: {reason}")]
    Refused { topic: String, reason: String },
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<Error> for log::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Thread(error) => Self::Io(error),
            other => Self::Io(std::io::Error::other(other.to_string())),
        }
    }
}

/// A client that librdkafka refused to create because of its settings.
pub fn settings(error: KafkaError) -> Error {
    Error::Settings(match error {
        KafkaError::ClientConfig(_, description, key, value) => {
            format!("{key} = {value}: {description}")
        }
        other => other.to_string(),
    })
}
