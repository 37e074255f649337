//! How to reach, read and write the store.

use scylla::statement::Consistency;
use std::path::PathBuf;
use std::time::Duration;

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

/// What a range count reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPlan {
    /// At most four rows in one request, up to 128 days; the three tables if the key has no tiles
    /// there.
    Tiles,
    /// The three tables, up to five slices, as the published description reads them.
    Tables,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            keyspace: "raingauge".to_owned(),
            user: None,
            password: None,
            tls: None,
            datacenter: None,
            read_consistency: Consistency::LocalQuorum,
            write_consistency: Consistency::LocalQuorum,
            request_timeout: Duration::from_secs(2),
            speculative_after: Duration::from_millis(50),
            in_flight_max: 512,
            read_plan: ReadPlan::Tiles,
            scan_time_max: Duration::from_secs(4),
            write_tables: true,
            has_foreign_rows: true,
            writer_cache_bytes: 256 << 20,
        }
    }
}

impl Options {
    /// The store's address, for messages.
    pub fn place(&self) -> String {
        format!("keyspace {} of {}", self.keyspace, self.contact_points.join(", "))
    }
}

/// Parses a consistency level; an unknown name gives `local_quorum`.
pub fn consistency(name: &str) -> Consistency {
    match name {
        "one" => Consistency::One,
        "local_one" => Consistency::LocalOne,
        "quorum" => Consistency::Quorum,
        "all" => Consistency::All,
        _ => Consistency::LocalQuorum,
    }
}
