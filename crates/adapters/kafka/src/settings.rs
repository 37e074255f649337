//! The settings of the topic, and how its brokers are reached.

use crate::options::{Sasl, SaslMechanism, Security, Tls};
use core::time::Duration;
use raingauge_settings::{Reader, settings};
use std::path::PathBuf;

/// Shortest key of control entries, in characters.
const CONTROL_KEY_LEN_MIN: usize = 32;

settings! {
    pub struct Settings in "kafka" checked by Settings::check {
        /// Some brokers of Kafka, host:port, with commas.
        brokers: Vec<String> = text("127.0.0.1:9092");
        /// Topic of the events; `raingauge migrate` makes it.
        topic: String = text("raingauge-events");
        /// Topic for messages that cannot be counted.
        dead_letter_topic: String = text("raingauge-dead-letters");
        /// Consumer group of the writers.
        group: String = text("raingauge");
        /// Partitions of a topic that `raingauge migrate` makes, and that it must have.
        partitions: u16 = whole(4, 1..=1_000, "partitions");
        /// Copies of each partition of a topic that `raingauge migrate` makes.
        replication: u16 = whole(1, 1..=10, "copies");
        /// Raised by one whenever the topic is recreated.
        epoch: u16 = whole(0, 0..=32_767, "epochs");
        /// Secret by which processes sign control entries; without it, anyone who writes to the
        /// topic can change counters and buckets. Of several, with commas, the first signs and all
        /// verify.
        control_keys as "control_key": Vec<String> = secret();
        /// With a control key: entries that the broker appended before this time need no signature.
        control_unsigned_until_s as "control_unsigned_until": u64 =
            whole(0, 0..=253_402_300_800, "seconds since 1970");
        /// Whether an event in another partition than that of its identity is refused as
        /// `partition_wrong`.
        checks_partitions as "partition_check": bool = one_of(&["no", "yes"]);
        /// Silence after which a writer loses its partitions.
        session_timeout as "session_timeout_ms": Duration = millis(10_000, 1_000..=300_000);
        /// Longest time that the acknowledgement of events may take.
        delivery_timeout as "delivery_timeout_ms": Duration = millis(10_000, 100..=300_000);
        /// User for SASL, where the brokers ask for one.
        user: Option<String> = text("");
        /// Password of that user.
        password: Option<String> = secret();
        /// How user and password are shown; SCRAM needs a build with kafka-tls.
        sasl_mechanism: SaslMechanism = one_of(SaslMechanism::WORDS);
        /// Whether brokers are reached by TLS, which needs a build with kafka-tls.
        has_tls as "tls": bool = one_of(&["no", "yes"]);
        /// Certificate authority of the brokers, PEM; empty for those that the machine trusts.
        ca_file: Option<PathBuf> = text("");
        /// Own certificate for TLS, PEM, where the brokers ask for one.
        certificate_file: Option<PathBuf> = text("");
        /// Key of that certificate, PEM.
        key_file: Option<PathBuf> = text("");
    }
}

impl Settings {
    fn check(&mut self, reader: &mut Reader) {
        reader.together(
            ("kafka.user", self.user.is_some()),
            ("kafka.password", self.password.is_some()),
        );
        reader.together(
            ("kafka.certificate_file", self.certificate_file.is_some()),
            ("kafka.key_file", self.key_file.is_some()),
        );

        let files =
            [("kafka.ca_file", &self.ca_file), ("kafka.certificate_file", &self.certificate_file)];
        for (path, _) in files.iter().filter(|(_, file)| file.is_some() && !self.has_tls) {
            let advice = "Set kafka.tls to \"yes\", or leave the file out";
            reader.refuse(path, "there is a file for TLS, and no TLS", advice);
        }

        if self.control_keys.iter().any(|key| key.len() < CONTROL_KEY_LEN_MIN) {
            let message =
                format!("a key of control entries has less than {CONTROL_KEY_LEN_MIN} characters");
            let advice = "Make one with `openssl rand -hex 32`, the same for every process";
            reader.refuse("kafka.control_key", message, advice);
        }

        let has_scram = self.user.is_some() && self.sasl_mechanism != SaslMechanism::Plain;
        let wishes = [("kafka.tls", self.has_tls), ("kafka.sasl_mechanism", has_scram)];
        for (path, _) in wishes.iter().filter(|(_, wish)| *wish && !cfg!(feature = "tls")) {
            reader.refuse(
                path,
                "this program was built without TLS and SCRAM for Kafka",
                "Build it with `cargo build --release --features kafka-tls`, see \
                 docs/operations/README.md",
            );
        }
    }

    /// Returns how brokers and this process authenticate each other.
    pub fn security(&self) -> Security {
        let Self { user, password, ca_file, certificate_file, key_file, .. } = self.clone();
        let certificate = certificate_file.zip(key_file);
        let mechanism = self.sasl_mechanism;
        Security {
            tls: self.has_tls.then_some(Tls { ca: ca_file, certificate }),
            sasl: user.zip(password).map(|(user, password)| Sasl { mechanism, user, password }),
        }
    }
}
