//! The records that follow from the journal, on fjall.

use crate::store::{Fault, Store};
use fjall::PersistMode;
use raingauge_ports::points::Error;
use std::ops::{ControlFlow, Range};

/// New values by key; `None` removes the record. Each key occurs once.
pub type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Called with a key and its value, until it breaks.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Error> + 'a;

/// A store of records by key. Tests put one in its place that loses its end.
pub trait Records: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;

    /// Visits the records of a range in order, or backwards.
    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error>;

    /// Writes records, all or none. A power cut may undo it, with all that came after it.
    fn commit(&self, writes: Writes) -> Result<(), Fault>;

    /// Waits until all commits are durable.
    fn sync(&self) -> Result<(), Fault>;
}

impl Records for Store {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Self::get(self, key)
    }

    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let mut found = self.keyspace.range(range);
        while let Some(guard) = if is_backwards { found.next_back() } else { found.next() } {
            let (key, value) = guard.into_inner().map_err(Fault::from)?;
            if visit(&key, &value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn commit(&self, writes: Writes) -> Result<(), Fault> {
        let mut batch = self.batch();
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        Self::commit(self, batch)
    }

    fn sync(&self) -> Result<(), Fault> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}
