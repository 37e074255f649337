//! How the topic is reached, written and read.

use crate::control::ControlRules;
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What an epoch adds to the offsets of a topic.
pub const EPOCH_STEP: u64 = 1 << 48;

/// Largest message that is sent: a request that sets the most buckets, with the longest keys, fits.
pub const MESSAGE_LEN_MAX: usize = 8 << 20;

/// Of these, `epoch`, `dedupe_window_ms`, `dedupe_ids_max`, `future_allowance_s`, `controls` and `checks_partitions` decide
/// what is counted: every process that reads the topic must have the same ones.
#[derive(Clone, Debug)]
pub struct Options {
    /// Some of the brokers, `host:port`; the others are learnt from them.
    pub brokers: Vec<String>,
    pub topic: String,
    /// Where messages go that cannot be counted.
    pub dead_letter_topic: String,
    /// The consumer group whose members share the partitions.
    pub group: String,
    /// The name of this process in the group: when it comes back within the session's time-out, it keeps its partitions.
    pub instance_id: Option<String>,
    /// Raised when the topic is recreated, which begins its offsets anew.
    pub epoch: u16,
    /// How many partitions the topic must have; whatever it has when this is left out.
    pub partitions: Option<u16>,
    /// How long `source` and `id` of an event are remembered since they were last seen, at least.
    pub dedupe_window_ms: i64,
    /// Most identities that are remembered for each place in a partition that is read; the oldest are forgotten early.
    pub dedupe_ids_max: usize,
    /// How far the time of an event may lie ahead of the time at which the broker appended it.
    pub future_allowance_s: i64,
    /// Which control entries are obeyed.
    pub controls: ControlRules,
    /// Whether an event whose identity belongs to another of the `partitions` is refused.
    pub checks_partitions: bool,
    /// A member of the group that is not heard of for so long loses its partitions.
    pub session_timeout: Duration,
    /// How long sending may take before the caller is told that it failed.
    pub delivery_timeout: Duration,
    /// How long a question to the brokers may take.
    pub request_timeout: Duration,
    /// Most bytes that wait to be sent; whoever comes then is told to come back.
    pub queue_bytes_max: usize,
    pub security: Security,
    /// Properties of librdkafka, which have the last word.
    pub properties: BTreeMap<String, String>,
}

/// How brokers and this process know each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    pub tls: Option<Tls>,
    pub sasl: Option<Sasl>,
}

/// A certificate authority, and a certificate of one's own where the brokers ask for one. PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The system's authorities when it is left out.
    pub ca: Option<PathBuf>,
    /// The certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Sasl {
    pub mechanism: SaslMechanism,
    pub user: String,
    pub password: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

impl std::fmt::Debug for Sasl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Sasl({:?}, user {})", self.mechanism, self.user)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            brokers: vec!["127.0.0.1:9092".to_owned()],
            topic: "raingauge-events".to_owned(),
            dead_letter_topic: "raingauge-dead-letters".to_owned(),
            group: "raingauge".to_owned(),
            instance_id: None,
            epoch: 0,
            partitions: None,
            dedupe_window_ms: 86_400_000,
            dedupe_ids_max: 64_000_000,
            future_allowance_s: 300,
            controls: ControlRules::default(),
            checks_partitions: false,
            session_timeout: Duration::from_secs(30),
            delivery_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            queue_bytes_max: 256 << 20,
            security: Security::default(),
            properties: BTreeMap::new(),
        }
    }
}

impl Options {
    /// Where Kafka is, for people.
    pub fn place(&self) -> String {
        self.brokers.join(", ")
    }

    /// The topic of tiles that were written.
    pub fn changes_topic(&self) -> String {
        format!("{}-changes", self.topic)
    }

    /// The topic of the leases of readers.
    pub fn leases_topic(&self) -> String {
        format!("{}-leases", self.topic)
    }

    /// The port's offset of the topic's first message ever.
    pub fn base(&self) -> u64 {
        u64::from(self.epoch) * EPOCH_STEP
    }

    /// A hash of the options that decide on which messages have an identity. Chunks of the dedupe window are kept by it.
    pub(crate) fn dedupe_rules(&self) -> u64 {
        let decides = (self.future_allowance_s, self.checks_partitions, self.partitions);
        let digest = Sha256::digest(format!("{decides:?}"));
        digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }

    /// What every client has.
    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", self.brokers.join(","))
            .set("client.id", "raingauge")
            .set("reconnect.backoff.ms", "50")
            .set("reconnect.backoff.max.ms", "1000")
            .set("log.connection.close", "false")
            .set_log_level(RDKafkaLogLevel::Info);
        self.secure(&mut config);
        config
    }

    fn secure(&self, config: &mut ClientConfig) {
        let Security { tls, sasl } = &self.security;
        let protocol = match (tls, sasl) {
            (None, None) => return,
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        };
        config.set("security.protocol", protocol);
        if let Some(ca) = tls.as_ref().and_then(|tls| tls.ca.as_ref()) {
            config.set("ssl.ca.location", ca.to_string_lossy());
        }
        if let Some((certificate, key)) = tls.as_ref().and_then(|tls| tls.certificate.as_ref()) {
            config.set("ssl.certificate.location", certificate.to_string_lossy());
            config.set("ssl.key.location", key.to_string_lossy());
        }
        if let Some(Sasl { mechanism, user, password }) = sasl {
            let mechanism = match mechanism {
                SaslMechanism::Plain => "PLAIN",
                SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
                SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
            };
            config
                .set("sasl.mechanism", mechanism)
                .set("sasl.username", user)
                .set("sasl.password", password);
        }
    }

    /// The operator's own properties, which have the last word.
    fn with_properties(&self, mut config: ClientConfig, fixed: &[(&str, &str)]) -> ClientConfig {
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        for (name, value) in fixed {
            config.set(*name, *value);
        }
        config
    }

    /// For questions about topics and offsets.
    pub(crate) fn admin_config(&self) -> ClientConfig {
        self.with_properties(self.client(), &[("isolation.level", "read_committed")])
    }

    /// For the question where a partition ends with the messages of transactions that are not over.
    pub(crate) fn uncommitted_config(&self) -> ClientConfig {
        self.with_properties(self.client(), &[("isolation.level", "read_uncommitted")])
    }

    pub(crate) fn producer_config(&self) -> ClientConfig {
        let mut config = self.client();
        config
            .set("linger.ms", "2")
            .set("compression.type", "lz4")
            .set("message.max.bytes", MESSAGE_LEN_MAX.to_string())
            .set("delivery.timeout.ms", self.delivery_timeout.as_millis().to_string())
            .set("queue.buffering.max.messages", "1000000")
            // What may wait is bounded by the sink, which knows whole batches.
            .set("queue.buffering.max.kbytes", i32::MAX.to_string());
        self.with_properties(config, &[("acks", "all"), ("enable.idempotence", "true")])
    }

    /// For messages of several partitions as a whole.
    pub(crate) fn transactional_config(
        &self,
        id: &str,
        transaction: Duration,
        delivery: Duration,
    ) -> ClientConfig {
        let mut config = self.producer_config();
        config
            .set("transactional.id", id)
            .set("transaction.timeout.ms", transaction.as_millis().to_string())
            .set(
                "delivery.timeout.ms",
                self.delivery_timeout.min(delivery).as_millis().to_string(),
            );
        config
    }

    /// For one place in one partition, where the broker waits at most so long for a message. The group is never joined, but
    /// librdkafka wants a name for reading.
    pub(crate) fn cursor_config(&self, wait: Duration) -> ClientConfig {
        let mut config = self.client();
        config
            .set("group.id", &self.group)
            .set("fetch.wait.max.ms", wait.as_millis().to_string())
            .set("fetch.message.max.bytes", (2 << 20).to_string())
            .set("queued.max.messages.kbytes", (16 << 10).to_string())
            .set("fetch.queue.backoff.ms", "5")
            .set("fetch.error.backoff.ms", "100")
            .set("topic.metadata.refresh.interval.ms", "30000")
            .set("check.crcs", "true");
        let fixed = [
            ("isolation.level", "read_committed"),
            ("enable.partition.eof", "true"),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            // An offset that is gone is told, never replaced by another one.
            ("auto.offset.reset", "error"),
        ];
        self.with_properties(config, &fixed)
    }

    pub(crate) fn group_config(&self) -> ClientConfig {
        let mut config = self.client();
        let session_ms = self.session_timeout.as_millis();
        config
            .set("group.id", &self.group)
            .set("session.timeout.ms", session_ms.to_string())
            .set("heartbeat.interval.ms", (session_ms / 10).clamp(100, 3_000).to_string());
        if let Some(instance_id) = &self.instance_id {
            config.set("group.instance.id", instance_id);
        }
        let fixed = [
            // Partitions that stay where they are go on being counted while others move.
            ("partition.assignment.strategy", "cooperative-sticky"),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "latest"),
        ];
        self.with_properties(config, &fixed)
    }
}
