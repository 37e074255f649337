//! One keyspace of fjall in a folder of its own, which the tiles and the ledger of campaigns each
//! have.
//!
//! A batch becomes durable as a whole, and any prefix of fjall's journals is a state that the store
//! was in, since all records share one keyspace and so one memory table. The markers of commits
//! ([`markers`]) reveal a hole in an earlier journal.

mod blank;
pub mod journals;
mod markers;
pub mod tables;

use blank::{discard, is_blank};
use fjall::compaction::Leveled;
use fjall::config::{
    BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use parking_lot::Mutex;
use raingauge_ports::{BoxFuture, buckets};
use std::path::Path;
use std::sync::Arc;

const FORMAT_KEY: &[u8] = b"\0format";
/// Fewest table files that fjall keeps open.
const OPEN_FILES_MIN: usize = 16;
/// Size of its sealed journals from which fjall writes the tables that keep the oldest. Journals
/// are read again at every start: about a second for this many bytes.
const JOURNAL_BYTES_MAX: u64 = 128 << 20;
/// Bytes of a table that a merge writes.
const TABLE_BYTES: u64 = 64 << 20;
/// Threads that flush and compact for a folder. A second one would never compact, but pass each
/// compaction that waits from one end of the queue to the other, with a core to itself (fjall 3.1).
const WORKERS: usize = 1;
/// The niceness of fjall's flushes and compactions, which give way to counting and to queries.
const WORKER_NICENESS: i32 = 10;

/// Why a folder could not be opened, read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Corrupt(String),
    Io(String),
    /// Another process has the folder open.
    Locked,
}

impl From<fjall::Error> for Fault {
    fn from(error: fjall::Error) -> Self {
        match error {
            fjall::Error::Locked => Self::Locked,
            fjall::Error::Io(error) => Self::Io(error.to_string()),
            error => Self::Corrupt(error.to_string()),
        }
    }
}

impl From<Fault> for buckets::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(why) => Self::Corrupt(why),
            Fault::Io(why) => Self::Io(why),
            Fault::Locked => Self::Locked,
        }
    }
}

/// How a folder is opened.
pub struct Options {
    /// The name of the keyspace.
    pub name: &'static str,
    /// Version of its keys.
    pub format: u32,
    /// Bytes of fjall's own cache of blocks.
    pub block_cache_bytes: u64,
    /// Most table files that fjall keeps open.
    pub open_files_max: usize,
    /// Bytes of records that fjall may hold before it writes them to a table.
    pub memtable_bytes: u64,
    /// Bytes of a table that a merge writes. fjall syncs the last one of a merge while nobody can
    /// read: the larger it is, the longer. For folders that exist it stays as it was.
    pub table_bytes: u64,
    /// Bytes of sealed journals that fjall keeps, about: [`JOURNAL_BYTES_MAX`], or 64 MiB at least.
    pub journal_bytes_max: u64,
    /// What an operator does about damage.
    pub advice: &'static str,
}

impl Options {
    /// Options with the usual size of journals, and the smallest caches.
    pub const fn new(
        name: &'static str,
        format: u32,
        memtable_bytes: u64,
        advice: &'static str,
    ) -> Self {
        Self {
            name,
            format,
            block_cache_bytes: 0,
            open_files_max: OPEN_FILES_MIN,
            memtable_bytes,
            table_bytes: TABLE_BYTES,
            journal_bytes_max: JOURNAL_BYTES_MAX,
            advice,
        }
    }
}

/// The open folder.
pub struct Store {
    pub database: Database,
    pub keyspace: Keyspace,
    /// The number of the newest commit.
    commits: Mutex<u64>,
}

impl Store {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Fault> {
        journals::check(folder, options.advice)?;
        let database = match open_politely(folder, options) {
            Err(fault) if fault != Fault::Locked && is_blank(folder).unwrap_or(false) => {
                discard(folder)?;
                open_politely(folder, options)?
            }
            opened => opened?,
        };

        let keyspace = database.keyspace(options.name, || layout(options))?;
        let store = Self { database, keyspace, commits: Mutex::default() };
        store.check_format(options)?;
        *store.commits.lock() = markers::check(&store.keyspace, options.advice)?;

        Ok(store)
    }

    fn check_format(&self, options: &Options) -> Result<(), Fault> {
        let Options { name, format, .. } = options;
        match self.get(FORMAT_KEY)? {
            Some(version) if version == format.to_le_bytes() => Ok(()),
            Some(version) => Err(Fault::Corrupt(format!(
                "the format of its {name} is {version:?}, and this program reads {format}: use the program that wrote it"
            ))),
            None => {
                self.keyspace.insert(FORMAT_KEY, format.to_le_bytes())?;
                Ok(self.database.persist(PersistMode::SyncAll)?)
            }
        }
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.keyspace.get(key)?.map(|value| value.to_vec()))
    }

    /// A batch that is durable when its commit returns.
    pub fn synced_batch(&self) -> OwnedWriteBatch {
        self.database.batch().durability(Some(PersistMode::SyncAll))
    }

    /// A batch that survives the end of the process, and a power cut once a later one is synced.
    pub fn batch(&self) -> OwnedWriteBatch {
        self.database.batch().durability(Some(PersistMode::Buffer))
    }

    /// Commits a batch together with the marker of its number. A batch changes a key once.
    pub fn commit(&self, mut batch: OwnedWriteBatch) -> Result<(), Fault> {
        let mut number = self.commits.lock();
        *number += 1;
        markers::put(&mut batch, &self.keyspace, *number);
        Ok(batch.commit()?)
    }

    pub fn compact(&self) -> Result<(), Fault> {
        Ok(self.keyspace.major_compact()?)
    }
}

/// Runs blocking work outside the asynchronous threads.
pub fn in_background<S, T, E>(
    state: &Arc<S>,
    work: impl FnOnce(&S) -> Result<T, E> + Send + 'static,
) -> BoxFuture<'static, Result<T, E>>
where
    S: Send + Sync + 'static,
    T: Send + 'static,
    E: From<Fault> + Send + 'static,
{
    let state = Arc::clone(state);
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(move || work(&state)).await;
        done.unwrap_or_else(|error| Err(Fault::Io(format!("a call failed: {error}")).into()))
    })
}

/// Opens fjall on a thread of low priority, which the workers that it starts inherit. A panic of
/// fjall over a damaged folder ends that thread, and is returned as an error.
fn open_politely(folder: &Path, options: &Options) -> Result<Database, Fault> {
    let open = || {
        // Priorities that cannot be changed stay as they are.
        let _ = rustix::process::nice(WORKER_NICENESS);
        Database::builder(folder)
            .cache_size(options.block_cache_bytes)
            .max_cached_files(Some(options.open_files_max.max(OPEN_FILES_MIN)))
            .max_journaling_size(options.journal_bytes_max)
            .worker_threads(WORKERS)
            .open()
            .map_err(Fault::from)
    };

    let opened = std::thread::scope(|scope| scope.spawn(open).join());
    opened.unwrap_or_else(|_| {
        Err(Fault::Corrupt(
            "fjall gave up over its files: restore the data folder from a backup".to_owned(),
        ))
    })
}

/// How tables are merged.
fn merges(table_bytes: u64) -> Arc<Leveled> {
    Arc::new(Leveled::default().with_table_target_size(table_bytes))
}

/// Keeps filters and indexes in memory and searches blocks by hash: the settings with the largest
/// measured effect.
fn layout(options: &Options) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(options.memtable_bytes)
        .compaction_strategy(merges(options.table_bytes))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
            BloomConstructionPolicy::BitsPerKey(10.0),
        )))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
}
