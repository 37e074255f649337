//! Whether a catalog and the counts belong together.
//!
//! The writer's state knows each counter that was ever announced, at the version that it was announced with. A catalog
//! that lacks one of them, or has an older version, was restored alone: it would give out the same ids and versions
//! again for other configurations, and counters that are in no list would go on counting.

use raingauge_ports::catalog::{self, Catalog};
use raingauge_ports::published::Published;
use std::collections::HashMap;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error(
        "the catalog is older than the counts: {0}. Restore catalog.sqlite together with the folders log and tiles, from one \
         backup"
    )]
    Behind(String),
}

/// Refuses a catalog that lacks what was counted.
pub async fn check(catalog: &dyn Catalog, published: &Published) -> Result<(), Error> {
    let counters = catalog.list().await?;
    let listed: HashMap<u32, u32> = counters.iter().map(|found| (found.counter.id, found.version)).collect();
    let mut behind: Vec<(u32, u32)> =
        published.view().versions.iter().map(|(id, known)| (*id, known.version)).collect();
    behind.retain(|(id, counted)| listed.get(id).is_none_or(|version| version < counted));
    behind.sort_unstable();

    let Some((id, counted)) = behind.first() else { return Ok(()) };
    let has = match listed.get(id) {
        Some(version) => format!("has version {version}"),
        None => "does not have it".to_owned(),
    };
    let others = match behind.len() - 1 {
        0 => String::new(),
        others => format!(", and so for {others} more"),
    };
    Err(Error::Behind(format!("counter {id} was counted at version {counted}, and the catalog {has}{others}")))
}
