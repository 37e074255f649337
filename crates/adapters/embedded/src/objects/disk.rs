//! The records of a checkpoint on fjall.

use super::Options;
use super::keys::{Generation, Place};
use crate::store::tables::{self, Fill};
use crate::store::{self, Fault, Store};
use bytes::Bytes;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy,
    PartitioningPolicy,
};
use fjall::{CompressionType, Keyspace, KeyspaceCreateOptions, KvSeparationOptions};
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// Version of the records.
const FORMAT: u32 = 1;
/// Bytes of sealed journals, the fewest that fjall accepts. Every checkpoint writes a record of the
/// position, whose own table is never due: without a limit it would keep all journals, and a start
/// reads all of them.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;
/// Smallest value that is shared with fjall instead of copied. A smaller one would keep the whole
/// block in memory in which it lies.
const SHARED_LEN_MIN: usize = 4 << 10;
/// Bytes of a block of a table. Each has a record in the index, which has to be in memory to be of
/// use: with 4 KiB it would be twice as large. A read of the disk takes about as long for both.
const BLOCK_BYTES: u32 = 8 << 10;
/// Part of a file of separated values that has to be overwritten before the file is written again.
const STALENESS: f32 = 0.33;

/// A change of a record; `None` removes it. A batch changes a record once.
pub struct Write {
    pub place: Place,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

/// Called with a key and its value, until it breaks.
pub type Visit<'a> = dyn FnMut(&[u8], Bytes) -> Result<ControlFlow<()>, Fault> + 'a;

/// A store of records. Tests put one in its place that fails.
pub trait Records: Send + Sync {
    fn get(&self, place: Place, key: &[u8]) -> Result<Option<Bytes>, Fault>;

    /// Visits the records of a range in order.
    fn scan(&self, place: Place, range: Range<Vec<u8>>, visit: &mut Visit<'_>)
    -> Result<(), Fault>;

    /// Writes records, all or none, durably.
    fn commit(&self, writes: Vec<Write>) -> Result<(), Fault>;

    /// Writes the records of one place that `fill` hands over as tables of their own: all or none,
    /// durably, and apart from other places.
    fn write_tables(&self, place: Place, fill: &mut Fill<'_>) -> Result<(), Fault>;

    /// Whether a place was ever written to.
    fn has(&self, place: Place) -> bool;

    /// Places that exist beside the first.
    fn places(&self) -> Vec<Place>;

    /// Removes all records of a generation.
    fn remove(&self, generation: Generation) -> Result<(), Fault>;

    /// Bytes on disk.
    fn bytes(&self) -> u64;
}

/// The beginning of the names of guards.
const GUARD: &str = "guard-";

/// The records on fjall, each place a keyspace.
pub struct FjallRecords {
    store: Store,
    keyspaces: RwLock<HashMap<Place, Keyspace>>,
    /// An empty keyspace behind all that were removed, with its number, so that fjall (3.1) uses
    /// none of theirs again. After a kill it may give changes lower sequence numbers than those
    /// that removed a keyspace have: a new one in the same place would be gone at the next start.
    guard: Mutex<Option<(u64, Keyspace)>>,
    separate_bytes: u32,
    memtable_bytes: u64,
}

impl FjallRecords {
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Fault> {
        let advice = "restore the data folder from a backup";
        let settings = store::Options {
            block_cache_bytes: options.block_cache_bytes(),
            open_files_max: options.open_files_max,
            journal_bytes_max: JOURNAL_BYTES_MAX,
            ..store::Options::new("meta", FORMAT, options.memtable_bytes(), advice)
        };
        store::journals::cut_torn(folder)?;
        let store = Store::open(folder, &settings)?;
        let records = Self {
            store,
            keyspaces: RwLock::default(),
            guard: Mutex::default(),
            separate_bytes: options.separate_bytes,
            memtable_bytes: options.memtable_bytes(),
        };

        let mut guards = Vec::new();
        for name in records.store.database.list_keyspace_names() {
            if let Some(place) = Place::of_name(&name) {
                records.create(place)?;
            }
            guards.extend(name.strip_prefix(GUARD).and_then(|number| number.parse::<u64>().ok()));
        }
        guards.sort_unstable();
        guards.into_iter().try_for_each(|number| records.set_guard(number))?;
        Ok(records)
    }

    /// Puts a guard, which is made if it is not there, in the place of the one before it.
    fn set_guard(&self, number: u64) -> Result<(), Fault> {
        let database = &self.store.database;
        let name = format!("{GUARD}{number}");
        let guard = database.keyspace(&name, KeyspaceCreateOptions::default)?;
        let before = self.guard.lock().replace((number, guard));
        before.map_or(Ok(()), |(_, before)| Ok(database.delete_keyspace(before)?))
    }

    /// Opens a keyspace, or creates it.
    fn create(&self, place: Place) -> Result<Keyspace, Fault> {
        if let Some(keyspace) = self.keyspace(place) {
            return Ok(keyspace);
        }
        let layout = || layout(place, self.separate_bytes, self.memtable_bytes);
        let keyspace = self.store.database.keyspace(&place.name(), layout)?;
        self.keyspaces.write().insert(place, keyspace.clone());
        Ok(keyspace)
    }

    /// Waits while tables gather faster than fjall writes and merges them.
    fn wait_for_tables(&self) {
        let keyspaces: Vec<Keyspace> = self.keyspaces.read().values().cloned().collect();
        tables::wait_for_merges(&keyspaces);
    }

    fn keyspace(&self, place: Place) -> Option<Keyspace> {
        match place {
            Place::Meta => Some(self.store.keyspace.clone()),
            place => self.keyspaces.read().get(&place).cloned(),
        }
    }
}

/// Small values lie in the tables: a value in a file of its own costs a second read, and its room
/// is only free again once every table that refers to the file was written again.
///
/// Indexes and filters are in pieces that the cache holds as it holds blocks. Whole ones would
/// either be in memory beside it, or be read as a whole, half a megabyte, for each look-up.
fn layout(place: Place, separate_bytes: u32, memtable_bytes: u64) -> KeyspaceCreateOptions {
    // Entries are read in ranges, for which filters are of no use.
    let filter = match place {
        Place::Entries(_) => FilterPolicyEntry::None,
        _ => FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0)),
    };
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
        .filter_policy(FilterPolicy::all(filter))
        .with_kv_separation(Some(
            KvSeparationOptions::default()
                .compression(CompressionType::None)
                .separation_threshold(separate_bytes)
                .staleness_threshold(STALENESS)
                .age_cutoff(1.0),
        ))
}

fn bytes_of(value: fjall::Slice) -> Bytes {
    if value.len() < SHARED_LEN_MIN {
        Bytes::copy_from_slice(&value)
    } else {
        Bytes::from_owner(value)
    }
}

impl Records for FjallRecords {
    fn get(&self, place: Place, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let Some(keyspace) = self.keyspace(place) else {
            return Ok(None);
        };
        Ok(keyspace.get(key)?.map(bytes_of))
    }

    fn scan(
        &self,
        place: Place,
        range: Range<Vec<u8>>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Fault> {
        let Some(keyspace) = self.keyspace(place).filter(|_| range.start < range.end) else {
            return Ok(());
        };
        for guard in keyspace.range(range) {
            let (key, value) = guard.into_inner()?;
            if visit(&key, bytes_of(value))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), Fault> {
        self.wait_for_tables();
        let mut batch = self.store.synced_batch();
        for Write { place, key, value } in writes {
            match value {
                Some(value) => batch.insert(&self.create(place)?, key, value),
                None => {
                    if let Some(keyspace) = self.keyspace(place) {
                        batch.remove(&keyspace, key);
                    }
                }
            }
        }
        self.store.commit(batch)
    }

    fn write_tables(&self, place: Place, fill: &mut Fill<'_>) -> Result<(), Fault> {
        self.wait_for_tables();
        let keyspace = self.create(place)?;
        tables::write(&keyspace, fill)
    }

    fn has(&self, place: Place) -> bool {
        place == Place::Meta || self.keyspaces.read().contains_key(&place)
    }

    fn places(&self) -> Vec<Place> {
        self.keyspaces.read().keys().copied().collect()
    }

    fn remove(&self, generation: Generation) -> Result<(), Fault> {
        let places = [Place::Heads(generation), Place::Entries(generation)];
        if places.iter().any(|place| self.has(*place)) {
            let next = self.guard.lock().as_ref().map_or(1, |(number, _)| number + 1);
            self.set_guard(next)?;
        }
        for place in places {
            let keyspace = self.keyspaces.write().remove(&place);
            if let Some(keyspace) = keyspace {
                self.store.database.delete_keyspace(keyspace)?;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.store.database.disk_space().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::copies::copy_folder;
    use crate::objects::keys::{ANCHOR, Anchor};
    use crate::objects::tests::{options, put as put_head};
    use crate::objects::{ObjectFiles, STATE_FOLDER};
    use raingauge_ports::objects::{Group, ObjectStore as _, Old};

    fn open(folder: &Path) -> FjallRecords {
        FjallRecords::open(folder, &options()).expect("opened")
    }

    fn put(generation: Generation) -> Write {
        Write::put(Place::Heads(generation), vec![1], vec![2])
    }

    /// The files of a process that is killed now.
    fn kill(folder: &Path) -> tempfile::TempDir {
        let killed = tempfile::tempdir().expect("a folder");
        copy_folder(folder, killed.path());
        killed
    }

    #[tokio::test]
    async fn a_state_without_the_keys_that_it_counts_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
        store.submit(Group { effects: vec![put_head("k", "v", Old::Absent)] }).expect("taken");
        drop(store);

        let state = open(&folder.path().join(STATE_FOLDER));
        let anchor = state.get(Place::Meta, ANCHOR).expect("read").expect("an anchor");
        let (generation, count) = Anchor::decode(&anchor).expect("an anchor").databases[0];
        assert_eq!(count, 1);
        state.remove(generation).expect("removed");
        drop(state);
        let refused = ObjectFiles::open(folder.path(), &options()).map(|_| ()).unwrap_err();
        let sentence = refused.to_string();
        assert!(sentence.contains("counts 1 keys of database 0 and has none"), "{sentence}");
    }

    #[test]
    fn what_follows_a_removal_and_a_kill_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = open(folder.path());
        records.commit(vec![put(1)]).expect("written");
        for generation in 2..6 {
            // A table leaves no trace of its keyspace in the journals.
            let place = Place::Heads(generation);
            records.write_tables(place, &mut |take| take(&[1], Some(&[2]))).expect("written");
            records.remove(generation).expect("removed");

            let killed = kill(folder.path());
            // The first start removes what is left of it on the disk.
            drop(open(killed.path()));
            let next = open(killed.path());
            next.write_tables(Place::Heads(9), &mut |take| take(&[1], Some(&[2])))
                .expect("written");
            let killed = kill(killed.path());
            drop(next);
            let found = open(killed.path()).get(Place::Heads(9), &[1]).expect("read");
            assert_eq!(found.as_deref(), Some(&[2][..]), "after generation {generation}");
        }
    }
}
