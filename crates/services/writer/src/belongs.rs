//! Checks that a catalog and the counts belong together.
//!
//! The writer's state knows each counter that was ever announced, with its version. A catalog that
//! lacks one of them, or has an older version, was restored alone: it would assign the same ids and
//! versions again to other configurations, and counters that it does not list would continue to
//! count.

use raingauge_ports::catalog::{self, Catalog};
use raingauge_ports::published::Published;
use std::collections::HashMap;

/// Most counters that an error names.
const TOLD_MAX: usize = 100;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error(
        "the catalog is older than the counts: {0}. Restore catalog.sqlite together with the folders log and tiles, from one \
         backup; or set storage.accept_older_catalog, and create what is missing again, by its id"
    )]
    Behind(String),
}

/// Refuses a catalog that lacks counters that were counted.
pub async fn check(catalog: &dyn Catalog, published: &Published) -> Result<(), Error> {
    let counters = catalog.list().await?;
    let listed: HashMap<u32, u32> =
        counters.iter().map(|found| (found.counter.id, found.version)).collect();
    let mut behind: Vec<(u32, u32)> =
        published.view().versions.iter().map(|(id, known)| (*id, known.version)).collect();
    behind.retain(|(id, counted)| listed.get(id).is_none_or(|version| version < counted));
    behind.sort_unstable();

    if behind.is_empty() {
        return Ok(());
    }
    let told = behind.iter().take(TOLD_MAX).map(|(id, counted)| match listed.get(id) {
        Some(version) => {
            format!("counter {id} was counted at version {counted}, and the catalog has version {version}")
        }
        None => format!("counter {id} was counted at version {counted}, and the catalog does not have it"),
    });

    let mut told: Vec<String> = told.collect();
    if let Some(others) = behind.len().checked_sub(TOLD_MAX).filter(|others| *others > 0) {
        told.push(format!("and so for {others} more"));
    }
    Err(Error::Behind(told.join("; ")))
}
