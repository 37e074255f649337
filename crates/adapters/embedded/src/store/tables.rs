//! Sorted tables that pass neither through fjall's journal nor through its memory.

use super::Fault;
use fjall::Keyspace;
use std::time::{Duration, Instant};

/// Takes a key and its new value, `None` to remove it: each once, in the order of the keys.
pub type Take<'a> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), Fault> + 'a;

/// Called with what takes the changes.
pub type Fill<'a> = dyn FnMut(&mut Take<'_>) -> Result<(), Fault> + 'a;

/// Memory tables that may wait to be written before more is written. fjall alone would let four of
/// each keyspace gather, beyond any budget of memory.
const SEALED_TABLES_MAX: usize = 1;
/// Tables that may wait to be merged before more are written. A read looks into each of them, and
/// fjall itself holds back batches alone.
const UNMERGED_TABLES_MAX: usize = 16;
/// The pause between looks at them, and the longest wait in all.
const TABLES_PAUSE: Duration = Duration::from_millis(2);
const TABLES_PATIENCE: Duration = Duration::from_secs(10);

/// Writes what `fill` hands over as tables: all or none, durably.
pub fn write(keyspace: &Keyspace, fill: &mut Fill<'_>) -> Result<(), Fault> {
    let mut tables = keyspace.start_ingestion()?;
    fill(&mut |key, value| {
        let written = match value {
            Some(value) => tables.write(key, value),
            None => tables.write_tombstone(key),
        };
        Ok(written?)
    })?;
    Ok(tables.finish()?)
}

/// Waits while tables gather faster than fjall writes and merges them.
pub fn wait_for_merges(keyspaces: &[Keyspace]) {
    let began = Instant::now();
    let is_behind = |keyspace: &Keyspace| {
        keyspace.sealed_memtable_count() > SEALED_TABLES_MAX
            || keyspace.l0_table_count() > UNMERGED_TABLES_MAX
    };
    while keyspaces.iter().any(is_behind) && began.elapsed() < TABLES_PATIENCE {
        std::thread::sleep(TABLES_PAUSE);
    }
}
