//! The result cache in Redis.

use crate::settings::Settings;
use raingauge_ports::cache::ResultCache;
use raingauge_redis as redis;
use std::sync::Arc;

pub fn redis_cache(settings: &Settings) -> anyhow::Result<Arc<dyn ResultCache>> {
    let clock_factor = settings.clock.experiment.map_or(1, |clock| clock.factor);
    Ok(Arc::new(redis::Cache::open(&settings.redis.options(clock_factor)?)?))
}
