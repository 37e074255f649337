//! The settings in the form of the adapters.

use crate::settings::Settings;
use raingauge_kafka::{ControlFault, ControlRules};
use raingauge_writer::ControlError;

pub fn cql_options(settings: &Settings) -> raingauge_cql::Options {
    settings.cql.options(settings.reader.deadline * 4 / 5)
}

pub fn kafka_options(settings: &Settings) -> raingauge_kafka::Options {
    let kafka = settings.kafka.clone();
    raingauge_kafka::Options {
        brokers: kafka.brokers,
        topic: kafka.topic,
        dead_letter_topic: kafka.dead_letter_topic,
        group: kafka.group,
        instance_id: Some(settings.cluster.instance.clone()).filter(|name| !name.is_empty()),
        epoch: kafka.epoch,
        partitions: Some(kafka.partitions),
        dedupe_window_ms: settings.dedupe.window.as_millis() as i64,
        dedupe_ids_max: settings.dedupe.ids_max as usize,
        future_allowance_s: settings.events.future_allowance.as_secs() as i64,
        controls: ControlRules {
            keys: kafka.control_keys.into_iter().map(String::into_bytes).collect(),
            unsigned_until_ms: kafka.control_unsigned_until_s as i64 * 1_000,
            check: Some(check_control),
        },
        checks_partitions: kafka.checks_partitions,
        session_timeout: kafka.session_timeout,
        delivery_timeout: kafka.delivery_timeout,
        queue_bytes_max: settings.log.queue_bytes_max,
        security: settings.kafka.security(),
        ..raingauge_kafka::Options::default()
    }
}

/// Returns the settings that decide what is counted, by name: they must be the same in every
/// process.
pub fn fingerprint(settings: &Settings) -> raingauge_cql::Fingerprint {
    let kafka = &settings.kafka;
    let dedupe_hours = settings.dedupe.window.as_secs() / 3_600;
    let pairs = [
        ("kafka.epoch", u64::from(kafka.epoch)),
        ("kafka.partitions", u64::from(kafka.partitions)),
        ("dedupe.window_hours", dedupe_hours),
        ("dedupe.ids_max", settings.dedupe.ids_max),
        ("events.future_allowance_s", settings.events.future_allowance.as_secs()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

fn check_control(payload: &[u8]) -> Result<(), ControlFault> {
    raingauge_writer::check_control(payload).map_err(|error| match error {
        ControlError::Malformed(_) => ControlFault::Malformed(error.to_string()),
        ControlError::UnknownKind(kind) => ControlFault::UnknownKind(kind),
    })
}
