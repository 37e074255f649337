//! A single Redis server.

use crate::answer::{Answers, failed, too_slow};
use crate::options::{CONNECT_TIMEOUT, Error, Options, refused};
use raingauge_ports::cache;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Pipeline, TlsCertificates, Value};
use std::future::Future;
use std::time::Duration;

/// Shortest delay between attempts to connect. After the last attempt, the next call starts again.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_millis(500);
const RETRIES: usize = 3;

pub struct Single {
    connection: ConnectionManager,
    timeout: Duration,
}

impl Single {
    pub fn open(options: &Options) -> Result<Self, Error> {
        let certificates = options.certificates()?;
        let [url] = &options.urls[..] else {
            return Err(Error::ManyUrls(options.urls.len()));
        };
        let connection = connect(url, certificates.as_ref(), options.timeout)
            .map_err(|error| refused(&error))?;

        // The first query should not have to wait for the connection.
        let mut first = connection.clone();
        tokio::spawn(async move {
            if let Err(error) = redis::cmd("PING").query_async::<Value>(&mut first).await {
                tracing::warn!(%error, "Redis is out of reach; counts are answered without it");
            }
        });
        Ok(Self { connection, timeout: options.timeout })
    }

    pub async fn get(&self, keys: &[String]) -> Result<Answers, cache::Error> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("MGET");
        command.arg(keys);
        let values: Vec<Value> = self.in_time(command.query_async(&mut connection)).await?;
        if values.len() != keys.len() {
            return Err(cache::Error(format!(
                "{} values came for {} keys",
                values.len(),
                keys.len()
            )));
        }
        Ok(values.into_iter().map(Some).collect())
    }

    pub async fn put(&self, entries: &[(String, i64)], ttl_ms: u64) -> Result<(), cache::Error> {
        let mut connection = self.connection.clone();
        let mut pipeline = redis::pipe();
        entries.iter().for_each(|entry| set(&mut pipeline, entry, ttl_ms));
        self.in_time(pipeline.exec_async(&mut connection)).await
    }

    async fn in_time<T>(
        &self,
        call: impl Future<Output = redis::RedisResult<T>>,
    ) -> Result<T, cache::Error> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(answer) => answer.map_err(|error| failed(&error)),
            Err(_) => Err(too_slow(self.timeout)),
        }
    }
}

/// A connection that is opened on first use and reopened after it was lost.
pub fn connect(
    url: &str,
    certificates: Option<&TlsCertificates>,
    timeout: Duration,
) -> redis::RedisResult<ConnectionManager> {
    let client = match certificates {
        Some(certificates) => Client::build_with_tls(url, certificates.clone())?,
        None => Client::open(url)?,
    };
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(timeout))
        .set_min_delay(RETRY_MIN)
        .set_max_delay(RETRY_MAX)
        .set_number_of_retries(RETRIES);
    ConnectionManager::new_lazy_with_config(client, config)
}

/// `SET key value PX ttl`
pub fn set(pipeline: &mut Pipeline, (key, value): &(String, i64), ttl_ms: u64) {
    pipeline.cmd("SET").arg(key).arg(*value).arg("PX").arg(ttl_ms);
}
