//! The settings in the form of the adapters.

use crate::settings::Settings;
use raingauge_cql::ReadPlan;
use raingauge_kafka::{ControlFault, ControlRules};
use raingauge_writer::ControlError;

pub fn cql_options(settings: &Settings) -> raingauge_cql::Options {
    let cql = settings.cluster.cql.clone();
    let certificate = cql.certificate_file.zip(cql.key_file);
    raingauge_cql::Options {
        contact_points: cql.contact_points,
        keyspace: cql.keyspace,
        user: cql.user,
        password: cql.password,
        tls: cql.ca_file.map(|ca| raingauge_cql::Tls { ca, certificate }),
        datacenter: cql.datacenter,
        read_consistency: raingauge_cql::consistency(cql.read_consistency),
        write_consistency: raingauge_cql::consistency(cql.write_consistency),
        request_timeout: cql.request_timeout,
        speculative_after: cql.speculative_after,
        in_flight_max: cql.in_flight_max,
        read_plan: if cql.reads_tables { ReadPlan::Tables } else { ReadPlan::Tiles },
        scan_time_max: settings.caching.deadline * 4 / 5,
        write_tables: cql.writes_tables,
        has_foreign_rows: cql.has_foreign_rows,
        writer_cache_bytes: cql.writer_cache_bytes,
    }
}

pub fn kafka_options(settings: &Settings) -> raingauge_kafka::Options {
    let kafka = settings.cluster.kafka.clone();
    let mechanism = match kafka.sasl_mechanism {
        "scram-sha-256" => raingauge_kafka::SaslMechanism::ScramSha256,
        "scram-sha-512" => raingauge_kafka::SaslMechanism::ScramSha512,
        _ => raingauge_kafka::SaslMechanism::Plain,
    };

    let sasl = kafka.user.zip(kafka.password);
    let sasl = sasl.map(|(user, password)| raingauge_kafka::Sasl { mechanism, user, password });
    let certificate = kafka.certificate_file.zip(kafka.key_file);
    let tls = kafka.has_tls.then_some(raingauge_kafka::Tls { ca: kafka.ca_file, certificate });

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
        queue_bytes_max: settings.log.queue_bytes_max as usize,
        security: raingauge_kafka::Security { tls, sasl },
        ..raingauge_kafka::Options::default()
    }
}

/// Returns the settings that decide what is counted, by name: they must be the same in every
/// process.
pub fn fingerprint(settings: &Settings) -> raingauge_cql::Fingerprint {
    let kafka = &settings.cluster.kafka;
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
