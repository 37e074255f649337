//! Caches the counters of the newest catalog revision: the list is read more often than it changes.

use crate::Portal;
use raingauge_ports::catalog::{Error, Versioned};
use std::sync::{Arc, Mutex, PoisonError};

/// A revision of the catalog, and its counters.
type CachedCounters = (i64, Arc<Vec<Versioned>>);

#[derive(Default)]
pub struct Memory {
    known: Mutex<Option<CachedCounters>>,
}

impl Memory {
    /// All counters at their newest versions, by id.
    pub async fn counters(&self, portal: &Portal) -> Result<Arc<Vec<Versioned>>, Error> {
        let catalog = &portal.counters;
        // Read before the list: a concurrent change can then make the list newer than its revision,
        // never older.
        let revision = catalog.revision().await?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, counters)) = known.filter(|(known, _)| *known == revision) {
            return Ok(counters);
        }
        let counters = Arc::new(catalog.list().await?);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((revision, Arc::clone(&counters)));
        Ok(counters)
    }
}
