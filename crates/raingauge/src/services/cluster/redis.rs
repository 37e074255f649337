//! The result cache in Redis.

use crate::settings::Settings;
use anyhow::Context;
use raingauge_ports::cache::ResultCache;
use raingauge_redis::{self as redis, Identity, Tls};
use std::path::Path;
use std::sync::Arc;

pub fn redis_cache(settings: &Settings) -> anyhow::Result<Arc<dyn ResultCache>> {
    Ok(Arc::new(redis::Cache::open(&options(settings)?)?))
}

fn options(settings: &Settings) -> anyhow::Result<raingauge_redis::Options> {
    let redis = &settings.caching.redis;
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let authority = redis.ca_file.as_deref().map(read).transpose()?;
    let identity = match (&redis.certificate_file, &redis.key_file) {
        (Some(certificate), Some(key)) => {
            Some(Identity { certificate: read(certificate)?, key: read(key)? })
        }
        _ => None,
    };

    let has_tls = authority.is_some() || identity.is_some();
    Ok(raingauge_redis::Options {
        urls: redis.urls.clone(),
        cluster: redis.is_cluster,
        tls: has_tls.then_some(Tls { authority, identity }),
        timeout: redis.timeout,
        clock_factor: settings.clock.map_or(1, |clock| clock.factor),
    })
}
