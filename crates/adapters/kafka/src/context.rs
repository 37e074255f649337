//! What every client reports: whether the brokers are reachable, and librdkafka's log.

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether Kafka is reachable. Logs each change once.
pub struct Connection {
    place: String,
    lost: AtomicBool,
}

impl Connection {
    pub fn new(place: String) -> Arc<Self> {
        metrics::gauge!("raingauge_kafka_connected").set(1.0);
        Arc::new(Self { place, lost: AtomicBool::new(false) })
    }

    pub fn is_up(&self) -> bool {
        !self.lost.load(Ordering::Relaxed)
    }

    pub fn lost(&self, reason: &str) {
        if !self.lost.swap(true, Ordering::Relaxed) {
            metrics::gauge!("raingauge_kafka_connected").set(0.0);
            tracing::warn!(brokers = %self.place, %reason, "Kafka is out of reach; trying again until it is back");
        }
    }

    pub fn restored(&self) {
        if self.lost.load(Ordering::Relaxed) && self.lost.swap(false, Ordering::Relaxed) {
            metrics::gauge!("raingauge_kafka_connected").set(1.0);
            tracing::info!(brokers = %self.place, "Kafka is in reach again");
        }
    }
}

/// Does not log what is retried.
#[derive(Clone)]
pub struct Context {
    pub connection: Arc<Connection>,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        note(&self.connection, &error, reason);
    }
}

impl ConsumerContext for Context {}

/// Logs librdkafka's messages at a lower level: many of its errors are temporary.
pub fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(facility, message, "librdkafka");
        }
        _ => tracing::debug!(facility, message, "librdkafka"),
    }
}

pub fn note(connection: &Connection, error: &KafkaError, reason: &str) {
    match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::AllBrokersDown) => connection.lost(reason),
        _ => tracing::debug!(%error, reason, "a client of Kafka reports"),
    }
}
