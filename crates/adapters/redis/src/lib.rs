//! The result cache on Redis and Redis Cluster.
//!
//! ```text
//!   get ──▶ single: one MGET                           ┐
//!           cluster: a pipeline of GET for each node   ├── over shared connections: concurrent
//!   put ──▶ single: a pipeline of SET PX               │   requests go out together
//!           cluster: one for each node                 ┘
//! ```
//!
//! No call waits for a connection: opening returns at once, connections open and reopen in the
//! background, and a call without an answer by its deadline has failed. The keys have no hash tag,
//! so they spread over all slots of a cluster. Values are decimal text, which other tools can read.

mod answer;
mod cluster;
mod options;
mod settings;
mod single;

pub use options::{Error, Identity, Options, Tls};
pub use settings::Settings;

use cluster::Cluster;
use raingauge_ports::BoxFuture;
use raingauge_ports::cache::{self, ResultCache};
use redis::Value;
use single::Single;
use std::time::Duration;

pub struct Cache {
    link: Link,
    clock_factor: u32,
    malformed: metrics::Counter,
}

enum Link {
    Single(Single),
    Cluster(Cluster),
}

impl Cache {
    /// Begins to connect and returns. Must be called inside a tokio runtime.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let link = if options.cluster {
            Link::Cluster(Cluster::open(options)?)
        } else {
            Link::Single(Single::open(options)?)
        };
        let malformed = metrics::counter!("raingauge_redis_malformed_values_total");
        Ok(Self { link, clock_factor: options.clock_factor.max(1), malformed })
    }

    /// Parses a value. Anything but a number counts as missing.
    fn number(&self, value: Value) -> Option<i64> {
        let number = match &value {
            Value::Nil => return None,
            Value::BulkString(text) => {
                std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        if number.is_none() {
            self.malformed.increment(1);
        }
        number
    }
}

impl ResultCache for Cache {
    fn get(&self, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<i64>>, cache::Error>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let found = match &self.link {
                Link::Single(single) => single.get(&keys).await,
                Link::Cluster(cluster) => cluster.get(&keys).await,
            }?;
            Ok(found.into_iter().map(|value| self.number(value?)).collect())
        })
    }

    fn put(
        &self,
        entries: Vec<(String, i64)>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), cache::Error>> {
        Box::pin(async move {
            if entries.is_empty() {
                return Ok(());
            }
            // An expiry of 0 ms would be refused.
            let ttl_ms = ((ttl / self.clock_factor).as_millis() as u64).max(1);
            match &self.link {
                Link::Single(single) => single.put(&entries, ttl_ms).await,
                Link::Cluster(cluster) => cluster.put(&entries, ttl_ms).await,
            }
        })
    }
}
