//! The records that follow from the journal, on fjall.

use crate::store::tables::{self, Fill};
use crate::store::{Fault, Store};
use fjall::{Iter, Keyspace, Readable as _, Snapshot};
use raingauge_ports::points::Error;
use std::ops::{ControlFlow, Range};

/// The new value of a key; `None` removes the record.
pub type Write = (Vec<u8>, Option<Vec<u8>>);

/// Each key occurs once.
pub type Writes = Vec<Write>;

/// Called with a key and its value, until it breaks.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Error> + 'a;

/// Records as they are read.
pub trait View {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;

    /// Visits the records of a range in order, or backwards.
    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error>;
}

/// A store of records by key. Tests put one in its place that fails.
pub trait Records: View + Send + Sync {
    /// The records as they are now. What is written later does not change the view.
    fn view(&self) -> Box<dyn View + '_>;

    /// Writes the changes that `fill` hands over as tables: all or none, durably.
    fn write_tables(&self, fill: &mut Fill<'_>) -> Result<(), Fault>;
}

impl View for Store {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Self::get(self, key)
    }

    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        visit_all(self.keyspace.range(range), is_backwards, visit)
    }
}

/// The records of a moment.
struct StoreView<'s> {
    snapshot: Snapshot,
    keyspace: &'s Keyspace,
}

impl View for StoreView<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.snapshot.get(self.keyspace, key)?.map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        visit_all(self.snapshot.range(self.keyspace, range), is_backwards, visit)
    }
}

fn visit_all(mut found: Iter, is_backwards: bool, visit: &mut Visit<'_>) -> Result<(), Error> {
    while let Some(guard) = if is_backwards { found.next_back() } else { found.next() } {
        let (key, value) = guard.into_inner().map_err(Fault::from)?;
        if visit(&key, &value)?.is_break() {
            break;
        }
    }
    Ok(())
}

impl Records for Store {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(StoreView { snapshot: self.database.snapshot(), keyspace: &self.keyspace })
    }

    fn write_tables(&self, fill: &mut Fill<'_>) -> Result<(), Fault> {
        tables::wait_for_merges(std::slice::from_ref(&self.keyspace));
        tables::write(&self.keyspace, fill)
    }
}
