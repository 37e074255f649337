//! How to reach, write and read the topic.

use crate::control::ControlRules;
use raingauge_settings::words;
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What each epoch adds to the topic's offsets.
pub const EPOCH_STEP: u64 = 1 << 48;

/// Largest message that is sent. A request that sets the most buckets, with the longest keys, fits.
pub const MESSAGE_LEN_MAX: usize = 8 << 20;

/// `epoch`, `dedupe_window_ms`, `dedupe_ids_max`, `future_allowance_s`, `controls` and
/// `checks_partitions` decide what is counted: all processes that read the topic must share them.
#[derive(Clone, Debug)]
pub struct Options {
    /// Some of the brokers, `host:port`; they name the others.
    pub brokers: Vec<String>,
    pub topic: String,
    /// The topic for messages that cannot be counted.
    pub dead_letter_topic: String,
    /// The consumer group whose members share the partitions.
    pub group: String,
    /// This process's name in the group. A process that returns within the session timeout keeps
    /// its partitions.
    pub instance_id: Option<String>,
    /// Raised when the topic is recreated, since its offsets then start at 0 again.
    pub epoch: u16,
    /// How many partitions the topic must have; `None` accepts any number.
    pub partitions: Option<u16>,
    /// Minimum time for which an event's `source` and `id` are remembered after they were last
    /// seen.
    pub dedupe_window_ms: i64,
    /// Maximum number of identities remembered for each cursor; the oldest are forgotten first.
    pub dedupe_ids_max: usize,
    /// How far an event's time may lie after its append time.
    pub future_allowance_s: i64,
    /// Which control entries are obeyed.
    pub controls: ControlRules,
    /// Whether to refuse an event whose identity belongs to another of the `partitions`.
    pub checks_partitions: bool,
    /// A group member that is silent for this long loses its partitions.
    pub session_timeout: Duration,
    /// How long a send may take before it fails.
    pub delivery_timeout: Duration,
    /// How long a request to the brokers may take.
    pub request_timeout: Duration,
    /// Maximum bytes that wait to be sent; further requests are refused with a time to retry.
    pub queue_bytes_max: usize,
    pub security: Security,
    /// Properties of librdkafka, which override raingauge's own.
    pub properties: BTreeMap<String, String>,
}

/// How brokers and this process authenticate each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    pub tls: Option<Tls>,
    pub sasl: Option<Sasl>,
}

/// A certificate authority, and this process's certificate if the brokers ask for one. PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// `None` uses the system's authorities.
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

words! {
    pub enum SaslMechanism {
        Plain = "plain",
        ScramSha256 = "scram-sha-256",
        ScramSha512 = "scram-sha-512",
    }
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
    /// The brokers' addresses, for messages.
    pub fn place(&self) -> String {
        self.brokers.join(", ")
    }

    /// The topic of stored tiles.
    pub fn changes_topic(&self) -> String {
        format!("{}-changes", self.topic)
    }

    /// The topic of readers' leases.
    pub fn leases_topic(&self) -> String {
        format!("{}-leases", self.topic)
    }

    /// The port's offset of the topic's very first message.
    pub fn base(&self) -> u64 {
        u64::from(self.epoch) * EPOCH_STEP
    }

    /// A hash of the options that decide which messages have an identity. It names the stored
    /// chunks of the dedupe window.
    pub(crate) fn dedupe_rules(&self) -> u64 {
        let decides = (self.future_allowance_s, self.checks_partitions, self.partitions);
        let digest = Sha256::digest(format!("{decides:?}"));
        digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }

    /// What every client is configured with.
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

    /// Adds the operator's own properties, which override all but the fixed ones.
    fn with_properties(&self, mut config: ClientConfig, fixed: &[(&str, &str)]) -> ClientConfig {
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        for (name, value) in fixed {
            config.set(*name, *value);
        }
        config
    }

    /// For requests about topics and offsets.
    pub(crate) fn admin_config(&self) -> ClientConfig {
        self.with_properties(self.client(), &[("isolation.level", "read_committed")])
    }

    /// For a partition's end including the messages of open transactions.
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
            // The sink, which knows whole batches, bounds what may wait.
            .set("queue.buffering.max.kbytes", i32::MAX.to_string());
        self.with_properties(config, &[("acks", "all"), ("enable.idempotence", "true")])
    }

    /// For messages that reach several partitions together.
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

    /// For reading one partition; the broker waits at most `wait` for a message. The group is never
    /// joined, but librdkafka requires a name for it.
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
            // A missing offset is reported, never replaced by another one.
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
            // Partitions that stay with their process are counted without a break while others
            // move.
            ("partition.assignment.strategy", "cooperative-sticky"),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "latest"),
        ];
        self.with_properties(config, &fixed)
    }
}
