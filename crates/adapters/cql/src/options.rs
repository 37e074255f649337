//! How the store is reached, and how it is read and written.

use scylla::statement::Consistency;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Some of the nodes, `host:port`; the others are learnt from them.
    pub contact_points: Vec<String>,
    pub keyspace: String,
    pub user: Option<String>,
    pub password: Option<String>,
    pub tls: Option<Tls>,
    /// The datacenter whose nodes are asked first.
    pub datacenter: Option<String>,
    pub read_consistency: Consistency,
    pub write_consistency: Consistency,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// A read that has not been answered after this is asked of another node too; zero never asks twice.
    pub speculative_after: Duration,
    /// Reads, and writes, that are under way at once.
    pub in_flight_max: usize,
    pub read_plan: ReadPlan,
    /// How long the largest keys of a counter are looked for; those that were found by then are answered.
    pub scan_time_max: Duration,
    /// Whether the three count tables are written for other tools.
    pub write_tables: bool,
    /// Whether other systems write rows into the count tables, which may be all that there is of a key.
    pub has_foreign_rows: bool,
    /// Bytes of tiles that the writer of a partition keeps in memory.
    pub writer_cache_bytes: usize,
}

/// A certificate authority, and a certificate of one's own where the server asks for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    pub ca: PathBuf,
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// What a range count reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPlan {
    /// At most four rows in one request, up to 128 days; the three tables when a key has no tiles there.
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
    /// Where the store is, for people.
    pub fn place(&self) -> String {
        format!("keyspace {} of {}", self.keyspace, self.contact_points.join(", "))
    }
}

/// The consistency of this name; `local_quorum` for one that is not known.
pub fn consistency(name: &str) -> Consistency {
    match name {
        "one" => Consistency::One,
        "local_one" => Consistency::LocalOne,
        "quorum" => Consistency::Quorum,
        "all" => Consistency::All,
        _ => Consistency::LocalQuorum,
    }
}
