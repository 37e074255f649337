//! The settings of the cluster engines.

use super::check::Checker;
use super::millis;
use raingauge_app::Role;
use std::path::PathBuf;
use std::time::Duration;

/// Shortest key of control entries, in characters.
const CONTROL_KEY_LEN_MIN: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub roles: Vec<Role>,
    pub instance: String,
    /// Whether counts and events are stored in CQL and Kafka.
    pub is_cluster: bool,
    pub catalog_is_mysql: bool,
    pub commit_interval: Duration,
    pub rereads: Duration,
    pub publishes_tiles: bool,
    pub cql: Cql,
    pub kafka: Kafka,
    pub mysql: MySql,
}

/// `Debug` hides its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Cql {
    pub contact_points: Vec<String>,
    pub keyspace: String,
    pub user: Option<String>,
    pub password: Option<String>,
    pub ca_file: Option<PathBuf>,
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub datacenter: Option<String>,
    pub replication: String,
    pub window_days: [u32; 3],
    pub read_consistency: &'static str,
    pub write_consistency: &'static str,
    pub request_timeout: Duration,
    pub speculative_after: Duration,
    pub in_flight_max: usize,
    pub reads_tables: bool,
    pub has_foreign_rows: bool,
    pub writes_tables: bool,
    pub writer_cache_bytes: usize,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Kafka {
    pub brokers: Vec<String>,
    pub topic: String,
    pub dead_letter_topic: String,
    pub group: String,
    pub partitions: u16,
    pub replication: u16,
    pub epoch: u16,
    pub control_keys: Vec<String>,
    pub control_unsigned_until_s: u64,
    pub checks_partitions: bool,
    pub session_timeout: Duration,
    pub delivery_timeout: Duration,
    pub user: Option<String>,
    pub password: Option<String>,
    pub sasl_mechanism: &'static str,
    pub has_tls: bool,
    pub ca_file: Option<PathBuf>,
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct MySql {
    pub url: String,
}

impl std::fmt::Debug for Cql {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cql({:?}, {})", self.contact_points, self.keyspace)
    }
}

impl std::fmt::Debug for Kafka {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Kafka({:?}, {})", self.brokers, self.topic)
    }
}

impl std::fmt::Debug for MySql {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("MySql")
    }
}

impl Cluster {
    pub fn read(from: &mut Checker) -> Self {
        let cluster = Self {
            roles: roles(from),
            instance: from.text("cluster", "instance"),
            is_cluster: from.word("cluster", "engines") == "cluster",
            catalog_is_mysql: from.word("cluster", "catalog") == "mysql",
            commit_interval: millis(from.whole("cluster", "commit_interval_ms")),
            rereads: Duration::from_secs(from.whole("cluster", "reread_s")),
            publishes_tiles: from.word("cluster", "publish_tiles") == "yes",
            cql: Cql::read(from),
            kafka: Kafka::read(from),
            mysql: MySql { url: from.text("mysql", "url") },
        };

        cluster.contradictions(from);
        cluster
    }

    fn contradictions(&self, checker: &mut Checker) {
        super::needs_cluster(checker, "cluster.engines", self.is_cluster);
        super::needs_cluster(checker, "cluster.catalog", self.catalog_is_mysql);

        let counts_into_tables =
            self.cql.writes_tables || !self.is_cluster || !self.has(Role::Writer);
        if self.cql.reads_tables && !counts_into_tables {
            let message =
                "counts are read from the count tables, and writers do not write them".to_owned();
            let advice = "Set cql.read_plan to \"tiles\", or cql.tables to \"yes\"";
            checker.problem("cql.read_plan", checker.origin("cql.read_plan"), message, advice);
        }

        if !self.is_cluster && self.roles != Role::ALL {
            let message = "over the embedded engines one process runs every role";
            let advice = "Leave the roles out, or set cluster.engines to \"cluster\"";
            checker.problem(
                "cluster.roles",
                checker.origin("cluster.roles"),
                message.to_owned(),
                advice,
            );
        }

        if self.catalog_is_mysql && self.mysql.url.is_empty() {
            let message = "the catalog is in MySQL, and nothing says where that is".to_owned();
            let advice =
                "Give mysql.url, such as \"mysql://raingauge:secret@127.0.0.1:3306/raingauge\"";
            checker.problem("mysql.url", checker.origin("mysql.url"), message, advice);
        }

        let pairs = [
            ("cql.user", &self.cql.user, "cql.password", &self.cql.password),
            ("kafka.user", &self.kafka.user, "kafka.password", &self.kafka.password),
        ];
        for (user_key, user, password_key, password) in pairs {
            if user.is_some() != password.is_some() {
                let message = format!("{user_key} and {password_key} go together");
                checker.problem(user_key, checker.origin(user_key), message, "Give both, or none");
            }
        }

        let pairs = [
            ("cql", &self.cql.certificate_file, &self.cql.key_file),
            ("kafka", &self.kafka.certificate_file, &self.kafka.key_file),
        ];
        for (section, certificate, key) in pairs {
            if certificate.is_some() != key.is_some() {
                let message =
                    format!("{section}.certificate_file and {section}.key_file go together");
                let key = format!("{section}.certificate_file");
                checker.problem(key.clone(), checker.origin(&key), message, "Give both, or none");
            }
        }

        self.kafka.contradictions(checker);
    }

    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

impl Cql {
    fn read(from: &mut Checker) -> Self {
        let days = ["quarter_window_days", "hour_window_days", "day_window_days"];
        Self {
            contact_points: list(&from.text("cql", "contact_points")),
            keyspace: from.text("cql", "keyspace"),
            user: given(from.text("cql", "user")),
            password: given(from.text("cql", "password")),
            ca_file: file(from, "cql", "ca_file"),
            certificate_file: file(from, "cql", "certificate_file"),
            key_file: file(from, "cql", "key_file"),
            datacenter: given(from.text("cql", "datacenter")),
            replication: from.text("cql", "replication"),
            window_days: days.map(|name| from.whole("cql", name) as u32),
            read_consistency: from.word("cql", "read_consistency"),
            write_consistency: from.word("cql", "write_consistency"),
            request_timeout: millis(from.whole("cql", "request_timeout_ms")),
            speculative_after: millis(from.whole("cql", "speculative_after_ms")),
            in_flight_max: super::size(from.whole("cql", "in_flight_max")),
            reads_tables: from.word("cql", "read_plan") == "tables",
            has_foreign_rows: from.word("cql", "foreign_rows") == "yes",
            writes_tables: ["tables", "write_tables"].map(|name| from.word("cql", name))
                == ["yes", "yes"],
            writer_cache_bytes: super::size(from.whole("cql", "writer_cache_bytes")),
        }
    }
}

impl Kafka {
    fn contradictions(&self, checker: &mut Checker) {
        let files = [("ca_file", &self.ca_file), ("certificate_file", &self.certificate_file)];
        for (name, file) in files {
            if file.is_some() && !self.has_tls {
                let key = format!("kafka.{name}");
                let message = "there is a file for TLS, and no TLS".to_owned();
                checker.problem(
                    key.clone(),
                    checker.origin(&key),
                    message,
                    "Set kafka.tls to \"yes\", or leave the file out",
                );
            }
        }

        if self.control_keys.iter().any(|key| key.len() < CONTROL_KEY_LEN_MIN) {
            let message =
                format!("a key of control entries has less than {CONTROL_KEY_LEN_MIN} characters");
            let advice = "Make one with `openssl rand -hex 32`, the same for every process";
            checker.problem(
                "kafka.control_key",
                checker.origin("kafka.control_key"),
                message,
                advice,
            );
        }

        let has_scram = self.user.is_some() && self.sasl_mechanism != "plain";
        let wishes = [("kafka.tls", self.has_tls), ("kafka.sasl_mechanism", has_scram)];
        for (key, _) in wishes.into_iter().filter(|(_, wish)| *wish && !cfg!(feature = "kafka-tls"))
        {
            let message = "this program was built without TLS and SCRAM for Kafka".to_owned();
            let advice = "Build it with `cargo build --release --features kafka-tls`, see docs/operations/README.md";
            checker.problem(key, checker.origin(key), message, advice);
        }
    }

    fn read(from: &mut Checker) -> Self {
        Self {
            brokers: list(&from.text("kafka", "brokers")),
            topic: from.text("kafka", "topic"),
            dead_letter_topic: from.text("kafka", "dead_letter_topic"),
            group: from.text("kafka", "group"),
            partitions: from.whole("kafka", "partitions") as u16,
            replication: from.whole("kafka", "replication") as u16,
            epoch: from.whole("kafka", "epoch") as u16,
            control_keys: list(&from.text("kafka", "control_key")),
            control_unsigned_until_s: from.whole("kafka", "control_unsigned_until"),
            checks_partitions: from.word("kafka", "partition_check") == "yes",
            session_timeout: millis(from.whole("kafka", "session_timeout_ms")),
            delivery_timeout: millis(from.whole("kafka", "delivery_timeout_ms")),
            user: given(from.text("kafka", "user")),
            password: given(from.text("kafka", "password")),
            sasl_mechanism: from.word("kafka", "sasl_mechanism"),
            has_tls: from.word("kafka", "tls") == "yes",
            ca_file: file(from, "kafka", "ca_file"),
            certificate_file: file(from, "kafka", "certificate_file"),
            key_file: file(from, "kafka", "key_file"),
        }
    }
}

fn roles(from: &mut Checker) -> Vec<Role> {
    let asked = list(&from.text("cluster", "roles"));
    let known = |name: &String| Role::ALL.into_iter().find(|role| role.name() == name);
    let mut roles: Vec<Role> = asked.iter().filter_map(known).collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() || asked.iter().any(|name| known(name).is_none()) {
        let message = format!("{:?} are not roles", asked.join(","));
        let advice = "Give some of reader, writer and portal, with commas";
        from.problem("cluster.roles", from.origin("cluster.roles"), message, advice);
        return Role::ALL.to_vec();
    }
    roles
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn file(from: &mut Checker, section: &str, name: &str) -> Option<PathBuf> {
    given(from.text(section, name)).map(PathBuf::from)
}
