//! What a process does in a deployment, and over which engines.

use core::time::Duration;
use raingauge_app::Role;
use raingauge_settings::settings;

settings! {
    pub struct Cluster in "cluster" {
        /// What this process does: some of reader, writer and portal, with commas; --role overrides
        /// it.
        roles: Vec<Role> = text("reader,writer,portal");
        /// Name of this process, for the cache policy's overrides and the consumer group; empty for
        /// none.
        instance: String = text("");
        /// Whether counts and events live in the data folder, or in CQL and Kafka.
        engines: &'static str = one_of(&["embedded", "cluster"]);
        /// Whether counters live in the data folder, or in MySQL.
        catalog: &'static str = one_of(&["sqlite", "mysql"]);
        /// How often a writer stores what it has counted, after which readers see it.
        commit_interval as "commit_interval_ms": Duration = millis(500, 10..=60_000);
        /// How much of the log before its checkpoint a writer that takes a partition over reads
        /// again; 0 for none.
        rereads as "reread_s": Duration = seconds(15, 0..=604_800);
        /// Whether writers publish tiles, and readers keep them in memory for counters under the
        /// strategy live.
        publishes_tiles as "publish_tiles": bool = one_of(&["yes", "no"]);
    }
}

impl Cluster {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether counts and events are stored in CQL and Kafka.
    pub fn is_cluster(&self) -> bool {
        self.engines == "cluster"
    }

    pub fn catalog_is_mysql(&self) -> bool {
        self.catalog == "mysql"
    }
}
