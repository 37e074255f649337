//! The settings that the wiring of this process uses itself.

use raingauge_settings::{settings, words};
use std::path::PathBuf;

settings! {
    pub struct Storage in "storage" {
        /// Folder of the counts, the event log and the counters; made when it is missing.
        data_dir: PathBuf = folder("raingauge-data");
        /// Free room of the disk, at most a tenth of it, below which events are refused with 503
        /// disk_full.
        reserve_bytes: u64 = bytes(256 * MIB, 0..=TIB);
        /// Whether a catalog that lacks counters that were counted is taken with a warning, to
        /// create them again by their ids.
        accepts_older_catalog as "accept_older_catalog": bool = switch(false);
    }
}

settings! {
    pub struct Observe in "observe" {
        /// How much is logged to standard error; the variable RUST_LOG wins over it.
        log_level: &'static str = word("info", &["error", "warn", "info", "debug", "trace"]);
        /// Lines for people, or one JSON object a line.
        log_format: LogFormat = one_of(LogFormat::WORDS);
    }
}

settings! {
    /// Where sums are kept for counters under `result` and `phased`.
    pub struct Cache in "cache" {
        /// Where sums are kept for counters under the strategies result and phased.
        result: ResultCache = one_of(ResultCache::WORDS);
        /// Most sums that are kept in memory.
        memory_entries_max: usize = whole(1_000_000, 1..=1_000_000_000, "sums");
    }
}

words! {
    pub enum LogFormat {
        Text = "text",
        Json = "json",
    }
}

words! {
    pub enum ResultCache {
        None = "none",
        Memory = "memory",
        Redis = "redis",
    }
}
