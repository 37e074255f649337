//! The reader with its cache, and the policy that it follows.

use super::{Engines, FOLLOW_INTERVAL};
use crate::settings::{ResultCache, Settings};
use raingauge_counters::Counters;
use raingauge_memory as memory;
use raingauge_ports::cache;
use raingauge_ports::clock::every;
use raingauge_reader::{CachePolicies, Reader};
use std::sync::Arc;

/// Returns the configured reader under the catalog's policy, or the default policy while the
/// catalog is away.
pub async fn reader(
    settings: &Settings,
    counters: &Counters,
    engines: &Engines,
) -> anyhow::Result<(Arc<Reader>, Arc<CachePolicies>)> {
    let policies = Arc::new(CachePolicies::new(settings.cluster.instance.clone()));
    follow_once(counters, &policies).await;

    let results: Option<Arc<dyn cache::ResultCache>> = match settings.cache.result {
        ResultCache::None => None,
        ResultCache::Memory => Some(Arc::new(memory::Cache::new(
            Arc::clone(&engines.clock),
            settings.cache.memory_entries_max,
        ))),
        ResultCache::Redis => Some(super::cluster::redis_cache(settings)?),
    };

    let engines = raingauge_reader::Engines {
        buckets: Arc::clone(&engines.buckets),
        live: engines.live.clone(),
        results,
        policies: Arc::clone(&policies),
        published: Arc::clone(&engines.published),
        clock: Arc::clone(&engines.clock),
    };
    Ok((Arc::new(Reader::new(engines, settings.reader)), policies))
}

/// Applies each change of the policy, while it is polled.
pub async fn follow(counters: &Counters, policies: &CachePolicies) {
    every(FOLLOW_INTERVAL, || follow_once(counters, policies)).await;
}

async fn follow_once(counters: &Counters, policies: &CachePolicies) {
    match counters.cache_policy().await {
        Ok(found) => policies.follow(&found),
        // The follower of the counters logs that the catalog is away.
        Err(error) => {
            tracing::debug!(%error, "the cache policy could not be read and stays as it is")
        }
    }
}
