//! Values that are valid alone and invalid together, across components.

use super::{ResultCache, Settings, doors};
use raingauge_app::Role;
use raingauge_settings::{Origin, Reader};

/// Message of a build without the feature `cluster` when the settings need an engine of a cluster.
pub const NO_CLUSTER: &str = "this program was built without the engines of a cluster";

impl Settings {
    pub(super) fn contradictions(&self, reader: &mut Reader) {
        self.people.contradictions(&self.openid, reader);
        self.roles_and_engines(reader);
        #[cfg(feature = "cluster")]
        self.places_of_engines(reader);
        doors::contradictions(self, reader);
        self.sizes(reader);
    }

    fn roles_and_engines(&self, reader: &mut Reader) {
        let is_cluster = self.cluster.is_cluster();
        for (key, is_needed) in [
            ("cluster.engines", is_cluster),
            ("cluster.catalog", self.cluster.catalog_is_mysql()),
            ("cache.result", self.cache.result == ResultCache::Redis),
        ] {
            if is_needed && !cfg!(feature = "cluster") {
                let advice = "Build it with `cargo build --release`, which has them";
                reader.refuse(key, NO_CLUSTER, advice);
            }
        }

        if !is_cluster && self.cluster.roles != Role::ALL {
            reader.refuse(
                "cluster.roles",
                "over the embedded engines one process runs every role",
                "Leave the roles out, or set cluster.engines to \"cluster\"",
            );
        }
    }

    #[cfg(feature = "cluster")]
    fn places_of_engines(&self, reader: &mut Reader) {
        let writes = self.cluster.is_cluster() && self.cluster.has(Role::Writer);
        if self.cql.reads_tables() && writes && !self.cql.writes_tables {
            reader.refuse(
                "cql.read_plan",
                "counts are read from the count tables, and writers do not write them",
                "Set cql.read_plan to \"tiles\", or cql.tables to \"yes\"",
            );
        }

        if self.cluster.catalog_is_mysql() && self.mysql.url.is_empty() {
            reader.refuse(
                "mysql.url",
                "the catalog is in MySQL, and nothing says where that is",
                "Give mysql.url, such as \"mysql://raingauge:secret@127.0.0.1:3306/raingauge\"",
            );
        }

        if self.cache.result == ResultCache::Redis {
            self.place_of_redis(reader);
        }
    }

    #[cfg(feature = "cluster")]
    fn place_of_redis(&self, reader: &mut Reader) {
        if self.redis.urls.is_empty() {
            reader.refuse(
                "cache.redis_urls",
                "results are kept in Redis, and nothing says where that is",
                "Give cache.redis_urls, such as \"redis://127.0.0.1:6379\"",
            );
        }

        reader.together(
            ("cache.redis_certificate_file", self.redis.certificate_file.is_some()),
            ("cache.redis_key_file", self.redis.key_file.is_some()),
        );
    }

    fn sizes(&self, reader: &mut Reader) {
        let log = &self.log;
        let segment = ("log.segment_bytes", log.segment_bytes.saturating_mul(2));
        let body = ("server.body_bytes_max", self.server.body_bytes_max as u64);

        for (key, value, (floor_key, floor), why) in [
            (
                "log.retention_bytes",
                log.retention_bytes,
                segment,
                "it could keep no closed segment",
            ),
            (
                "log.consumer_lag_bytes_max",
                log.consumer_lag_bytes_max,
                segment,
                "it could keep no closed segment for a consumer",
            ),
            (
                "log.queue_bytes_max",
                log.queue_bytes_max as u64,
                body,
                "the largest body could never be queued",
            ),
        ] {
            if value < floor && reader.are_right(&[key, floor_key]) {
                // Report the key that was set.
                let blamed = if reader.origin(key) == Origin::Default { floor_key } else { key };
                let message = format!("{key} is {value}, too small beside {floor_key}: {why}");
                let advice = format!("Raise {key} to at least {floor}, or lower {floor_key}");
                reader.refuse(blamed, message, advice);
            }
        }
    }
}
