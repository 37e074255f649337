//! Uploaded tables on fjall.
//!
//! ```text
//!   begin ──▶ add, add … ──▶ finish: one synced batch switches to the new version
//!                               └──▶ remover: the rows of the version before
//! ```
//!
//! Rows lie under the number of their version, so that a load disturbs nobody, and rows of a load
//! that was cut short are found again by the number that it noted before its first row.

mod keys;
mod remover;
mod segments;

use crate::room::Room;
use crate::store::{self, Fault, Store};
use fjall::OwnedWriteBatch;
use hashbrown::HashMap;
use parking_lot::Mutex;
use raingauge_ports::campaigns::limits::{SEGMENTS_BYTES_MAX, TABLE_ROWS_MAX};
use raingauge_ports::campaigns::{
    TableError, TableLoad, TableLoads, TableRow, TableVersion, Tables,
};
use raingauge_ports::{BoxFuture, log};
use remover::Remover;
use segments::Segments;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Version of the keys.
const FORMAT: u32 = 1;
const ADVICE: &str = "remove the folder of the tables and load them again, or restore a backup";

/// Options of the tables.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of fjall's own cache of blocks.
    pub block_cache_bytes: u64,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes of rows that fjall may hold before it writes them.
    pub memtable_bytes: u64,
    /// Bytes that are kept free on the disk.
    pub reserve_bytes: u64,
    /// Most rows of a table.
    pub rows_max: u64,
    /// Bytes of segments that are held in memory, of all of them together.
    pub segments_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            block_cache_bytes: 32 << 20,
            open_files_max: 200,
            memtable_bytes: 16 << 20,
            reserve_bytes: 0,
            rows_max: TABLE_ROWS_MAX,
            segments_bytes_max: SEGMENTS_BYTES_MAX,
        }
    }
}

/// The uploaded tables of one folder. Only one process has it open at a time.
pub struct UploadedTables {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<Store>,
    room: Room,
    rows_max: u64,
    state: Mutex<State>,
    segments: Segments,
    remover: Remover,
}

/// The state of the tables. A reader of a version holds it, which keeps its rows.
#[derive(Default)]
struct State {
    /// The number of the newest version of any table.
    newest: u64,
    /// The versions that answer.
    current: BTreeMap<String, Arc<TableVersion>>,
    /// Loads that have begun, with the rows that were added to them.
    loads: HashMap<u64, (String, u64)>,
}

impl From<Fault> for TableError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(why) => Self::Corrupt(why),
            Fault::Io(why) => Self::Io(why),
            Fault::Locked => Self::Locked,
        }
    }
}

fn failed(error: fjall::Error) -> TableError {
    Fault::from(error).into()
}

/// The error about a value that this program cannot read.
fn malformed(what: &str) -> TableError {
    TableError::Corrupt(format!("{what} is malformed, or of a newer version: {ADVICE}"))
}

impl UploadedTables {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, TableError> {
        let settings = store::Options {
            block_cache_bytes: options.block_cache_bytes,
            open_files_max: options.open_files_max,
            ..store::Options::new("tables", FORMAT, options.memtable_bytes, ADVICE)
        };
        let store = Arc::new(Store::open(folder, &settings)?);
        let state = state_in(&store)?;

        // No load survives its process.
        let remover = Remover::start(Arc::clone(&store));
        for version in obsolete_in(&store)? {
            remover.remove(Arc::new(()), version);
        }
        let inner = Inner {
            store,
            room: Room::new(folder, options.reserve_bytes),
            rows_max: options.rows_max,
            state: Mutex::new(state),
            segments: Segments::new(options.segments_bytes_max),
            remover,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs blocking work outside the asynchronous threads.
    fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, TableError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, TableError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&inner)).await;
            done.unwrap_or_else(|error| Err(TableError::Io(format!("a call failed: {error}"))))
        })
    }
}

fn state_in(store: &Store) -> Result<State, TableError> {
    let mut state = State::default();
    if let Some(bytes) = store.get(keys::NEWEST)? {
        let newest = bytes.try_into().map(u64::from_le_bytes);
        state.newest = newest.map_err(|_| malformed("the number of the newest version"))?;
    }
    for guard in store.keyspace.prefix([keys::TABLE]) {
        let (key, value) = guard.into_inner().map_err(failed)?;
        let version = keys::version_of(&key, &value).ok_or_else(|| malformed("a table"))?;
        state.current.insert(version.name.clone(), Arc::new(version));
    }
    Ok(state)
}

/// Versions that answer nothing, and never will.
fn obsolete_in(store: &Store) -> Result<Vec<u64>, TableError> {
    let found = store.keyspace.prefix([keys::OBSOLETE]).map(|guard| {
        let key = guard.key().map_err(failed)?;
        keys::obsolete_of(&key).ok_or_else(|| malformed("the number of a version"))
    });
    found.collect()
}

impl Inner {
    fn write(&self, batch: OwnedWriteBatch) -> Result<(), TableError> {
        if let Err(log::Error::Full { free_bytes, reserve_bytes }) = self.room.check() {
            return Err(TableError::Full { free_bytes, reserve_bytes });
        }
        Ok(self.store.commit(batch)?)
    }

    /// Notes a version as one that answers nothing, until it is switched to.
    fn begin(&self, table: &str) -> Result<TableLoad, TableError> {
        let mut state = self.state.lock();
        let version = state.newest + 1;
        let mut batch = self.store.batch();
        batch.insert(&self.store.keyspace, keys::NEWEST, version.to_le_bytes());
        batch.insert(&self.store.keyspace, keys::obsolete(version), table);
        self.write(batch)?;

        state.newest = version;
        state.loads.insert(version, (table.to_owned(), 0));
        Ok(TableLoad { table: table.to_owned(), version })
    }

    fn add(&self, load: &TableLoad, rows: Vec<(String, TableRow)>) -> Result<(), TableError> {
        let added = rows.len() as u64;
        let replaced = || TableError::Replaced(load.table.clone());
        let before = self.state.lock().loads.get(&load.version).map(|(_, rows)| *rows);
        if before.ok_or_else(replaced)? + added > self.rows_max {
            return Err(TableError::TooLarge(format!(
                "a table has at most {} rows: split it, or leave out rows",
                self.rows_max
            )));
        }

        // A batch changes a key once.
        let rows: BTreeMap<String, TableRow> = rows.into_iter().collect();
        let mut batch = self.store.batch();
        for (key, row) in &rows {
            let value = keys::row_bytes(row);
            batch.insert(&self.store.keyspace, keys::row(load.version, key), value);
        }
        self.write(batch)?;

        // Rows of a load that was given up while they were written.
        match self.state.lock().loads.get_mut(&load.version) {
            Some((_, rows)) => *rows += added,
            None => {
                self.remover.remove(Arc::new(()), load.version);
                return Err(replaced());
            }
        }
        Ok(())
    }

    fn finish(&self, load: &TableLoad, loaded_ms: i64) -> Result<TableVersion, TableError> {
        let TableLoad { table, version } = load;
        let mut state = self.state.lock();
        let Some((_, rows)) = state.loads.get(version) else {
            return Err(TableError::Replaced(table.clone()));
        };
        let next = TableVersion { name: table.clone(), version: *version, rows: *rows, loaded_ms };

        let mut batch = self.store.synced_batch();
        batch.insert(&self.store.keyspace, keys::table(table), keys::version_bytes(&next));
        batch.remove(&self.store.keyspace, keys::obsolete(*version));
        if let Some(before) = state.current.get(table) {
            batch.insert(&self.store.keyspace, keys::obsolete(before.version), table.as_str());
        }
        self.write(batch)?;

        state.loads.remove(version);
        let others = state.loads.extract_if(|_, (loading, _)| loading == table);
        let others: Vec<u64> = others.map(|(version, _)| version).collect();
        for other in others {
            self.remover.remove(Arc::new(()), other);
        }
        let before = state.current.insert(table.clone(), Arc::new(next.clone()));
        if let Some(before) = before {
            let version = before.version;
            self.segments.forget(version);
            self.remover.remove(before, version);
        }
        Ok(next)
    }

    fn abandon(&self, version: u64) {
        if self.state.lock().loads.remove(&version).is_some() {
            self.remover.remove(Arc::new(()), version);
        }
    }

    fn change(&self, table: &str, rows: Vec<(String, Option<TableRow>)>) -> Result<(), TableError> {
        if !self.state.lock().current.contains_key(table) {
            let load = self.begin(table)?;
            self.finish(&load, 0)?;
        }
        // The lock keeps the version from being replaced until the rows are written.
        let state = self.state.lock();
        let Some(current) = state.current.get(table) else {
            return Err(TableError::Replaced(table.to_owned()));
        };

        let rows: BTreeMap<String, Option<TableRow>> = rows.into_iter().collect();
        let mut batch = self.store.synced_batch();
        for (key, row) in &rows {
            let key = keys::row(current.version, key);
            match row {
                Some(row) => batch.insert(&self.store.keyspace, key, keys::row_bytes(row)),
                None => batch.remove(&self.store.keyspace, key),
            }
        }
        self.write(batch)?;
        self.segments.change(current.version, &rows);
        Ok(())
    }

    fn remove(&self, table: &str) -> Result<(), TableError> {
        let mut state = self.state.lock();
        let Some(current) = state.current.get(table) else {
            return Ok(());
        };
        let version = current.version;
        let mut batch = self.store.synced_batch();
        batch.remove(&self.store.keyspace, keys::table(table));
        batch.insert(&self.store.keyspace, keys::obsolete(version), table);
        self.write(batch)?;

        if let Some(removed) = state.current.remove(table) {
            self.segments.forget(version);
            self.remover.remove(removed, version);
        }
        Ok(())
    }

    fn get(&self, table: &str, keys: &[String]) -> Result<Vec<Option<TableRow>>, TableError> {
        let Some(current) = self.state.lock().current.get(table).cloned() else {
            return Ok(vec![None; keys.len()]);
        };
        let rows = keys.iter().map(|key| {
            let Some(bytes) = self.store.get(&keys::row(current.version, key))? else {
                return Ok(None);
            };
            keys::row_of(&bytes).map(Some).ok_or_else(|| malformed("a row"))
        });
        let rows = rows.collect();

        let version = current.version;
        self.segments.read(&self.store, version);
        let newest = self.state.lock().current.get(table).map(|current| current.version);
        if newest != Some(version) {
            self.segments.forget(version);
        }
        rows
    }

    /// The rows of keys of a segment that is in memory.
    fn held(&self, table: &str, keys: &[String]) -> Option<Vec<Option<TableRow>>> {
        let version = self.state.lock().current.get(table)?.version;
        self.segments.get(version, keys)
    }
}

impl Tables for UploadedTables {
    fn list(&self) -> BoxFuture<'_, Result<Vec<TableVersion>, TableError>> {
        let state = self.inner.state.lock();
        let versions = state.current.values().map(|version| (**version).clone()).collect();
        Box::pin(std::future::ready(Ok(versions)))
    }

    fn get<'a>(
        &'a self,
        table: &'a str,
        keys: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Option<TableRow>>, TableError>> {
        if let Some(rows) = self.inner.held(table, keys) {
            return Box::pin(std::future::ready(Ok(rows)));
        }
        let table = table.to_owned();
        let keys = keys.to_vec();
        self.in_background(move |inner| inner.get(&table, &keys))
    }
}

impl TableLoads for UploadedTables {
    fn begin<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<TableLoad, TableError>> {
        let table = table.to_owned();
        self.in_background(move |inner| inner.begin(&table))
    }

    fn add<'a>(
        &'a self,
        load: &'a TableLoad,
        rows: Vec<(String, TableRow)>,
    ) -> BoxFuture<'a, Result<(), TableError>> {
        let load = load.clone();
        self.in_background(move |inner| inner.add(&load, rows))
    }

    fn finish<'a>(
        &'a self,
        load: &'a TableLoad,
        loaded_ms: i64,
    ) -> BoxFuture<'a, Result<TableVersion, TableError>> {
        let load = load.clone();
        self.in_background(move |inner| inner.finish(&load, loaded_ms))
    }

    fn abandon<'a>(&'a self, load: &'a TableLoad) -> BoxFuture<'a, Result<(), TableError>> {
        self.inner.abandon(load.version);
        Box::pin(std::future::ready(Ok(())))
    }

    fn change<'a>(
        &'a self,
        table: &'a str,
        rows: Vec<(String, Option<TableRow>)>,
    ) -> BoxFuture<'a, Result<(), TableError>> {
        let table = table.to_owned();
        self.in_background(move |inner| inner.change(&table, rows))
    }

    fn remove<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<(), TableError>> {
        let table = table.to_owned();
        self.in_background(move |inner| inner.remove(&table))
    }
}

#[cfg(test)]
mod tests;
