//! The settings of reading and of the result cache.

use super::check::Checker;
use super::millis;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Longest time for the counts of one request.
    pub deadline: Duration,
    pub reads_in_flight_max: usize,
    pub reads_waiting_max: usize,
    pub result: ResultCache,
    pub memory_entries_max: usize,
    pub redis: Redis,
}

/// Where sums are kept for counters under `result` and `phased`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultCache {
    None,
    Memory,
    Redis,
}

/// `Debug` hides its addresses, which may hold passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Redis {
    pub urls: Vec<String>,
    pub is_cluster: bool,
    pub timeout: Duration,
    pub ca_file: Option<PathBuf>,
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Redis({} addresses)", self.urls.len())
    }
}

impl Caching {
    pub fn read(from: &mut Checker) -> Self {
        let result = match from.word("cache", "result") {
            "memory" => ResultCache::Memory,
            "redis" => ResultCache::Redis,
            _ => ResultCache::None,
        };

        let caching = Self {
            deadline: millis(from.whole("reader", "deadline_ms")),
            reads_in_flight_max: super::size(from.whole("reader", "reads_in_flight_max")),
            reads_waiting_max: super::size(from.whole("reader", "reads_waiting_max")),
            result,
            memory_entries_max: super::size(from.whole("cache", "memory_entries_max")),
            redis: Redis::read(from),
        };

        caching.contradictions(from);
        caching
    }

    fn contradictions(&self, checker: &mut Checker) {
        if self.result != ResultCache::Redis {
            return;
        }
        super::needs_cluster(checker, "cache.result", true);

        let redis = &self.redis;
        if redis.urls.is_empty() {
            let message = "results are kept in Redis, and nothing says where that is".to_owned();
            let advice = "Give cache.redis_urls, such as \"redis://127.0.0.1:6379\"";
            checker.problem(
                "cache.redis_urls",
                checker.origin("cache.redis_urls"),
                message,
                advice,
            );
        }

        if redis.certificate_file.is_some() != redis.key_file.is_some() {
            let key = "cache.redis_certificate_file";
            let message =
                "cache.redis_certificate_file and cache.redis_key_file go together".to_owned();
            checker.problem(key, checker.origin(key), message, "Give both, or none");
        }
    }
}

impl Redis {
    fn read(from: &mut Checker) -> Self {
        let urls = from.text("cache", "redis_urls");
        let urls = urls
            .split(',')
            .map(str::trim)
            .filter(|url| !url.is_empty())
            .map(str::to_owned)
            .collect();

        let mut file = |name| {
            Some(from.text("cache", name)).filter(|path| !path.is_empty()).map(PathBuf::from)
        };
        let ca_file = file("redis_ca_file");
        let certificate_file = file("redis_certificate_file");
        let key_file = file("redis_key_file");

        Self {
            urls,
            is_cluster: from.word("cache", "redis_cluster") == "yes",
            timeout: millis(from.whole("cache", "redis_timeout_ms")),
            ca_file,
            certificate_file,
            key_file,
        }
    }
}
