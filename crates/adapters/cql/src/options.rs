//! How to reach, read and write the store.

use raingauge_settings::{Reader, settings, words};
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileBuilder};
use scylla::statement::Consistency;
use std::path::PathBuf;
use std::time::Duration;

settings! {
    /// The settings of the store.
    pub struct Settings in "cql" checked by Settings::check {
        /// Some nodes of ScyllaDB or Cassandra, host:port, with commas.
        contact_points: Vec<String> = text("127.0.0.1:9042");
        /// Keyspace of the tables; `raingauge migrate` makes it.
        keyspace: String = text("raingauge");
        /// User, where the cluster asks for one.
        user: Option<String> = text("");
        /// Password of that user.
        password: Option<String> = secret();
        /// Certificate authority of the cluster, PEM; TLS is used when it is given.
        ca_file: Option<PathBuf> = text("");
        /// Own certificate for TLS, PEM, where the cluster asks for one.
        certificate_file: Option<PathBuf> = text("");
        /// Key of that certificate, PEM.
        key_file: Option<PathBuf> = text("");
        /// Datacenter whose nodes are asked first; empty for all alike.
        datacenter: Option<String> = text("");
        /// Replication of a keyspace that `raingauge migrate` makes.
        replication: String = text("{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}");
        /// Window of time-window compaction for quarter hours.
        quarter_window_days: u32 = days(3, 1..=365);
        /// Window of time-window compaction for hours.
        hour_window_days: u32 = days(14, 1..=365);
        /// Window of time-window compaction for days.
        day_window_days: u32 = days(30, 1..=3_650);
        /// Consistency of counts that are read.
        read_consistency: &'static str =
            one_of(&["local_quorum", "local_one", "one", "quorum", "all"]);
        /// Consistency of what writers store and read back.
        write_consistency: &'static str = one_of(&["local_quorum", "quorum", "all"]);
        /// Longest time that one request may take.
        request_timeout as "request_timeout_ms": Duration = millis(2_000, 10..=60_000);
        /// A read without an answer after this is asked of another node too; 0 for never.
        speculative_after as "speculative_after_ms": Duration = millis(50, 0..=60_000);
        /// Most requests of one kind under way at once.
        in_flight_max: usize = whole(512, 1..=32_768, "requests");
        /// Whether a count reads packed tiles, or slices of the three count tables.
        read_plan: ReadPlan = one_of(ReadPlan::WORDS);
        /// Whether other systems write rows into the count tables: then a key without tiles in a
        /// range is asked of the store every time, also under live.
        has_foreign_rows as "foreign_rows": bool = one_of(&["yes", "no"]);
        /// Whether writers also write the three count tables, a row for each bucket, for other
        /// tools.
        writes_tables as "tables": bool = one_of(&["yes", "no"]);
        /// Former name of `cql.tables`: either of them switches the tables off.
        writes_tables_formerly as "write_tables": bool = one_of(&["yes", "no"]);
        /// Memory for the tiles that each partition's writer works on.
        writer_cache_bytes: usize = bytes(256 * MIB, MIB..=TIB);
    }
}

impl Settings {
    fn check(&mut self, reader: &mut Reader) {
        self.writes_tables &= self.writes_tables_formerly;
        reader
            .together(("cql.user", self.user.is_some()), ("cql.password", self.password.is_some()));
        reader.together(
            ("cql.certificate_file", self.certificate_file.is_some()),
            ("cql.key_file", self.key_file.is_some()),
        );
    }

    /// Returns the options of a process whose searches for keys may take this long.
    pub fn options(&self, scan_time_max: Duration) -> Options {
        let settings = self.clone();
        let certificate = settings.certificate_file.zip(settings.key_file);
        Options {
            contact_points: settings.contact_points,
            keyspace: settings.keyspace,
            user: settings.user,
            password: settings.password,
            tls: settings.ca_file.map(|ca| Tls { ca, certificate }),
            datacenter: settings.datacenter,
            read_consistency: consistency(settings.read_consistency),
            write_consistency: consistency(settings.write_consistency),
            request_timeout: settings.request_timeout,
            speculative_after: settings.speculative_after,
            in_flight_max: settings.in_flight_max,
            read_plan: settings.read_plan,
            scan_time_max,
            write_tables: settings.writes_tables,
            has_foreign_rows: settings.has_foreign_rows,
            writer_cache_bytes: settings.writer_cache_bytes,
        }
    }

    /// Whether counts are read from the three count tables.
    pub fn reads_tables(&self) -> bool {
        self.read_plan == ReadPlan::Tables
    }

    /// Returns how the schema is laid out.
    pub fn layout(&self) -> Layout {
        let window_days = [self.quarter_window_days, self.hour_window_days, self.day_window_days];
        Layout { replication: self.replication.clone(), window_days }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Some of the nodes, `host:port`; they name the others.
    pub contact_points: Vec<String>,
    pub keyspace: String,
    pub user: Option<String>,
    pub password: Option<String>,
    pub tls: Option<Tls>,
    /// The datacenter whose nodes are preferred.
    pub datacenter: Option<String>,
    pub read_consistency: Consistency,
    pub write_consistency: Consistency,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// An unanswered read is sent to a second node after this time; zero disables that.
    pub speculative_after: Duration,
    /// Maximum number of concurrent reads, and of concurrent writes.
    pub in_flight_max: usize,
    pub read_plan: ReadPlan,
    /// How long a search for the largest keys may take. It then returns those found so far.
    pub scan_time_max: Duration,
    /// Whether to write the three count tables for other tools.
    pub write_tables: bool,
    /// Whether other systems write rows into the count tables; a key may then have nothing else.
    pub has_foreign_rows: bool,
    /// Bytes of tiles that a partition's writer keeps in memory.
    pub writer_cache_bytes: usize,
}

/// A certificate authority, and this process's certificate if the server asks for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub ca: PathBuf,
    pub certificate: Option<(PathBuf, PathBuf)>,
}

words! {
    /// What a range count reads.
    pub enum ReadPlan {
        /// At most four rows in one request, up to 128 days; the three tables if the key has no
        /// tiles there.
        Tiles = "tiles",
        /// The three tables, up to five slices, as the published description reads them.
        Tables = "tables",
    }
}

impl Default for Options {
    fn default() -> Self {
        Settings::default().options(Duration::from_secs(4))
    }
}

impl Options {
    /// The store's address, for messages.
    pub fn place(&self) -> String {
        format!("keyspace {} of {}", self.keyspace, self.contact_points.join(", "))
    }

    pub(crate) fn profile(&self, consistency: Consistency) -> ExecutionProfileBuilder {
        ExecutionProfile::builder()
            .consistency(consistency)
            .request_timeout(Some(self.request_timeout))
    }
}

/// Parses a consistency level; an unknown name gives `local_quorum`.
fn consistency(name: &str) -> Consistency {
    match name {
        "one" => Consistency::One,
        "local_one" => Consistency::LocalOne,
        "quorum" => Consistency::Quorum,
        "all" => Consistency::All,
        _ => Consistency::LocalQuorum,
    }
}

/// How the keyspace is replicated, and how its tables group data by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The value of CQL's `replication =`, such as `{'class': 'NetworkTopologyStrategy', 'dc1':
    /// 3}`.
    pub replication: String,
    /// Days in a window of time-window compaction for quarter hours, hours and days: about a
    /// thirtieth of the retention.
    pub window_days: [u32; 3],
}

impl Default for Layout {
    fn default() -> Self {
        let replication =
            "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}".to_owned();
        Self { replication, window_days: [3, 14, 30] }
    }
}
