//! What a call to Redis returns.

use raingauge_ports::cache;
use redis::Value;
use std::time::Duration;

/// Answers of Redis, key by key; `None` where a part of a cluster did not answer in time.
pub type Answers = Vec<Option<Value>>;

/// Why a call failed.
pub fn failed(error: &redis::RedisError) -> cache::Error {
    cache::Error(error.to_string())
}

pub fn too_slow(timeout: Duration) -> cache::Error {
    cache::Error(format!("no answer within {} ms", timeout.as_millis()))
}
