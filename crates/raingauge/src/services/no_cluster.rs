//! Replaces the engines of a cluster in a build without them. Settings that need them are refused
//! before any of this is called.

use super::{Engines, Startup};
use crate::settings::Settings;
use raingauge_consumers::Overtaken;
use raingauge_ports::cache::ResultCache;
use raingauge_ports::log::Partition;
use raingauge_ports::points::Verified;
use std::sync::Arc;

pub async fn open(_: &Settings, _: &Startup) -> anyhow::Result<Engines> {
    anyhow::bail!(crate::settings::NO_CLUSTER)
}

pub fn redis_cache(_: &Settings) -> anyhow::Result<Arc<dyn ResultCache>> {
    anyhow::bail!(crate::settings::NO_CLUSTER)
}

pub async fn skip_lost(_: &Settings, _: Partition, _: bool) -> anyhow::Result<Option<Overtaken>> {
    anyhow::bail!(crate::settings::NO_CLUSTER)
}

pub async fn skip_unpriced(
    _: &Settings,
    _: Partition,
    _: bool,
) -> anyhow::Result<Option<Overtaken>> {
    anyhow::bail!(crate::settings::NO_CLUSTER)
}

pub async fn verify_points(_: &Settings) -> anyhow::Result<Verified> {
    anyhow::bail!(crate::settings::NO_CLUSTER)
}

/// The embedded engines need no migration.
pub async fn migrate(_: &Settings) -> anyhow::Result<Vec<String>> {
    Ok(Vec::new())
}
