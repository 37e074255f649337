//! The result cache in memory, for one process. Its number of entries is limited; the least
//! recently used ones are evicted first.

use lru::LruCache;
use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::cache::{Error, ResultCache};
use raingauge_ports::clock::Clock;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// The cache is split so that its users seldom contend.
const SHARDS: usize = 16;

/// Also used in production: a single process uses it in place of Redis.
pub struct Cache {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Vec<Mutex<LruCache<String, Entry>>>,
}

#[derive(Clone, Copy)]
struct Entry {
    value: i64,
    /// Milliseconds since 1970.
    until_ms: i64,
}

impl Cache {
    pub fn new(clock: Arc<dyn Clock>, entries_max: usize) -> Self {
        let len_max = NonZeroUsize::new(entries_max.div_ceil(SHARDS)).unwrap_or(NonZeroUsize::MIN);
        let shards = (0..SHARDS).map(|_| Mutex::new(LruCache::new(len_max))).collect();
        Self { clock, hasher: RandomState::new(), shards }
    }

    /// Number of entries, including expired ones that have not been read since.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, key: &str) -> &Mutex<LruCache<String, Entry>> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    fn get_one(&self, key: &str, now_ms: i64) -> Option<i64> {
        let mut shard = self.shard(key).lock();
        let entry = *shard.get(key)?;
        if entry.until_ms <= now_ms {
            shard.pop(key);
            return None;
        }
        Some(entry.value)
    }
}

impl ResultCache for Cache {
    fn get(&self, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<i64>>, Error>> {
        let now_ms = self.clock.now_ms();
        let values = keys.iter().map(|key| self.get_one(key, now_ms)).collect();
        Box::pin(async move { Ok(values) })
    }

    fn put(&self, entries: Vec<(String, i64)>, ttl: Duration) -> BoxFuture<'_, Result<(), Error>> {
        let until_ms =
            self.clock.now_ms().saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        for (key, value) in entries {
            self.shard(&key).lock().put(key, Entry { value, until_ms });
        }
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::clock::ManualClock;
    use raingauge_ports::contract;

    fn cache(entries_max: usize) -> (Cache, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at_s(1_000));
        (Cache::new(Arc::clone(&clock) as Arc<dyn Clock>, entries_max), clock)
    }

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let (cache, clock) = cache(100_000);
        contract::cache::keeps_what_is_put(&cache, "m").await;
        contract::cache::takes_many_at_once(&cache, "m").await;
        let mut now_s = 1_000;
        contract::cache::forgets_in_time(&cache, "m", async || {
            now_s += 1;
            clock.set_s(now_s);
        })
        .await;
    }

    #[tokio::test]
    async fn it_holds_no_more_than_it_may() {
        let (cache, _) = cache(SHARDS * 10);
        let entries = |from: i64| {
            (from..from + 1_000).map(|number| (number.to_string(), number)).collect::<Vec<_>>()
        };
        cache.put(entries(0), Duration::from_secs(9)).await.unwrap();
        assert!(!cache.is_empty() && cache.len() <= SHARDS * 10);
        cache.put(vec![("last".to_owned(), 1)], Duration::from_secs(9)).await.unwrap();
        assert_eq!(cache.get(vec!["last".to_owned()]).await.unwrap(), [Some(1)]);
    }
}
