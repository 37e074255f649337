//! A store whose log is on a simulated disk and whose records fail: random groups, checkpoints,
//! faults and power cuts, compared with the twin in memory. It has no threads: what they do is done
//! in turn.
//!
//! Each seed is one history, which it replays exactly. `RAINGAUGE_SIMULATIONS` is the number of
//! histories, starting at `RAINGAUGE_SIMULATION_SEED`.

use super::super::disk::{Records, Visit, Write};
use super::super::journal::Inspection;
use super::super::keys::{ANCHOR, Anchor, BEGUN, Generation, Place};
use super::super::state::Shared;
use super::super::{checkpoints, recover};
use super::options;
use super::scene::Scene;
use crate::files::Folder;
use crate::files::simulated::{Disk, Fault as DiskFault, Random, Synced};
use crate::room::Room;
use crate::store::Fault;
use crate::store::tables::Fill;
use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_ports::objects::Error;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::{ControlFlow, Range};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const HISTORIES: u64 = 400;
/// Histories among which one has to miss each sync.
const SEARCHED: u64 = 2_000;
const STEPS: usize = 40;

/// Records in memory that fail when a test wants it.
#[derive(Clone, Default)]
pub struct ShakyRecords(Arc<Mutex<Shaky>>);

#[derive(Default)]
struct Shaky {
    records: BTreeMap<(Place, Vec<u8>), Vec<u8>>,
    places: BTreeSet<Place>,
    /// Commits until one fails, and whether that one is written all the same.
    fails_after: Option<(usize, bool)>,
}

impl ShakyRecords {
    fn is_troubled(&self) -> bool {
        self.0.lock().fails_after.is_some()
    }

    /// Makes the commit fail that follows some others.
    pub fn fail_after(&self, commits: usize) {
        self.0.lock().fails_after = Some((commits, false));
    }

    /// Makes them records of an earlier version, which did not count the keys that expire.
    fn forget_expiring(&self) {
        let mut held = self.0.lock();
        for name in [ANCHOR, BEGUN] {
            if let Some(record) = held.records.get_mut(&(Place::Meta, name.to_vec())) {
                let anchor = Anchor::decode(record).expect("a position");
                *record = Anchor { expiring: None, ..anchor }.encode();
            }
        }
    }
}

impl Records for ShakyRecords {
    fn get(&self, place: Place, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        let found = self.0.lock();
        Ok(found.records.get(&(place, key.to_vec())).map(|value| Bytes::copy_from_slice(value)))
    }

    fn scan(
        &self,
        place: Place,
        range: Range<Vec<u8>>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Fault> {
        if range.start >= range.end {
            return Ok(());
        }
        let found: Vec<_> = {
            let held = self.0.lock();
            let range = held.records.range((place, range.start)..(place, range.end));
            range.map(|((_, key), value)| (key.clone(), Bytes::copy_from_slice(value))).collect()
        };
        for (key, value) in found {
            if visit(&key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), Fault> {
        let mut held = self.0.lock();
        let fails = match &mut held.fails_after {
            Some((0, is_written)) => Some(*is_written),
            Some((commits, _)) => {
                *commits -= 1;
                None
            }
            None => None,
        };
        let failed = || Err(Fault::Io("as the test wants it".to_owned()));
        if fails == Some(false) {
            return failed();
        }

        let mut changed = HashSet::new();
        for Write { place, key, value } in writes {
            assert!(changed.insert((place, key.clone())), "a batch changes a record once");
            match value {
                Some(value) => {
                    held.places.insert(place);
                    held.records.insert((place, key), value);
                }
                None => drop(held.records.remove(&(place, key))),
            }
        }
        if fails.is_some() { failed() } else { Ok(()) }
    }

    fn write_tables(&self, place: Place, fill: &mut Fill<'_>) -> Result<(), Fault> {
        let mut writes = Vec::<Write>::new();
        fill(&mut |key, value| {
            let key = key.to_vec();
            assert!(writes.last().is_none_or(|last| last.key < key), "in the order of the keys");
            writes.push(Write { place, key, value: value.map(<[u8]>::to_vec) });
            Ok(())
        })?;
        self.commit(writes)
    }

    fn has(&self, place: Place) -> bool {
        place == Place::Meta || self.0.lock().places.contains(&place)
    }

    fn places(&self) -> Vec<Place> {
        let held = self.0.lock();
        held.places.iter().copied().filter(|place| *place != Place::Meta).collect()
    }

    fn remove(&self, generation: Generation) -> Result<(), Fault> {
        let mut held = self.0.lock();
        let goes = |place: &Place| place.generation() == Some(generation);
        held.records.retain(|(place, _), _| !goes(place));
        held.places.retain(|place| !goes(place));
        Ok(())
    }

    fn bytes(&self) -> u64 {
        0
    }
}

pub fn open(disk: &Disk, records: &ShakyRecords) -> Result<Shared, Error> {
    let folder: Arc<dyn Folder> = Arc::new(disk.clone());
    let inspection = Inspection::of(folder, options().segment_bytes)?;
    recover(inspection, Box::new(records.clone()), Room::new(Path::new("/"), 0), &options())
}

#[test]
fn no_history_loses_a_group_or_half_of_one() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let first = number("RAINGAUGE_SIMULATION_SEED", 0);
    let end = first + number("RAINGAUGE_SIMULATIONS", HISTORIES);
    let next = AtomicU64::new(first);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);

    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < end
                {
                    World::new(seed, Disk::new(seed)).run();
                }
            });
        }
    });
}

/// The simulator detects the omission of each sync that keeps groups.
#[test]
fn each_sync_is_needed() {
    let needed = [Synced::Block, Synced::Header, Synced::ReadSegment, Synced::SegmentName];
    std::thread::scope(|scope| {
        for left_out in needed {
            scope.spawn(move || {
                let is_missed = |seed: u64| {
                    let mut world = World::new(seed, Disk::new(seed).without(left_out));
                    std::panic::catch_unwind(AssertUnwindSafe(|| world.run())).is_err()
                };
                assert!((0..SEARCHED).any(is_missed), "nobody misses the sync of {left_out:?}");
            });
        }
    });
}

struct World {
    seed: u64,
    random: Random,
    disk: Disk,
    records: ShakyRecords,
    store: Option<Shared>,
    scene: Scene,
    /// Groups up to here survive a process, and a power cut.
    written: u64,
    synced: u64,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "replay with RAINGAUGE_SIMULATION_SEED={} RAINGAUGE_SIMULATIONS=1",
                self.seed
            );
        }
    }
}

impl World {
    fn new(seed: u64, disk: Disk) -> Self {
        Self {
            seed,
            disk,
            random: Random::new(seed ^ 0x0b1e),
            records: ShakyRecords::default(),
            store: None,
            scene: Scene::new(seed),
            written: 0,
            synced: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            if self.store.is_none() {
                self.open();
            }
            match self.random.below(100) {
                0..45 => self.submit(),
                45..70 => self.act(Shared::write),
                70..82 => self.act(|store| store.write().and_then(|()| store.sync().map(drop))),
                82..88 => self.act(checkpoints::checkpoint),
                88..92 => self.compare(),
                92..96 => self.plan_a_fault(),
                _ => self.crash(),
            }
        }

        self.relieve();
        self.crash();
        self.open();
        self.relieve();
        self.compare();
        self.act(checkpoints::checkpoint);
        self.compare();
    }

    fn compare(&mut self) {
        let is_troubled = self.is_troubled();
        if let Some(store) = self.store.as_ref().filter(|_| !is_troubled) {
            self.scene.compare(store);
        }
    }

    fn submit(&mut self) {
        let Some(store) = &self.store else { return };
        let group = self.scene.group();
        let stamp = store.submit(group).expect("the store is open");
        assert_eq!(stamp, self.scene.groups.len() as u64);
    }

    /// Does what a thread does.
    fn act(&mut self, action: impl FnOnce(&Shared) -> Result<(), Error>) {
        let was_troubled = self.is_troubled();
        let Some(store) = &self.store else { return };
        let done = action(store);

        // What a process that has died still believes does not count.
        if !self.disk.is_dead() {
            self.written = store.progress.written();
            self.synced = store.progress.synced();
        }
        match done {
            Ok(()) if !self.disk.is_dead() => {}
            Ok(()) => self.crash(),
            Err(error) => {
                assert!(was_troubled, "{error}, though nothing was wrong");
                self.crash();
            }
        }
    }

    /// Opens the store; faults and further crashes may happen on the way.
    fn open(&mut self) {
        self.store = None;
        loop {
            if self.random.chance(15) {
                self.records.forget_expiring();
            }
            let is_faulty = self.random.chance(20);
            if is_faulty {
                self.plan_a_fault();
            }

            match open(&self.disk, &self.records) {
                Ok(mut store) => {
                    // Checkpoints of both kinds follow each other.
                    store.tables_bytes = if self.random.chance(50) { 0 } else { usize::MAX };
                    store.piece_bytes = 1 + self.random.below(2_000);
                    self.relieve();
                    if self.disk.is_dead() {
                        self.crash_disk();
                        continue;
                    }
                    self.take_stock(&store);
                    self.store = Some(store);
                    return;
                }
                Err(error) => {
                    let is_expected = is_faulty && matches!(error, Error::Io(_));
                    assert!(is_expected, "the start is refused: {error}");
                    self.crash_disk();
                }
            }
        }
    }

    /// The store has every group that was durable, and whole groups in their order.
    fn take_stock(&mut self, store: &Shared) {
        let stamp = store.progress.submitted();
        assert!(stamp >= self.written, "group {} is lost: there are {stamp}", self.written);
        assert!(stamp <= self.scene.groups.len() as u64);
        self.scene.keep(stamp);
        (self.written, self.synced) = (stamp, stamp);
        self.scene.compare(store);
    }

    fn is_troubled(&self) -> bool {
        self.disk.is_troubled() || self.records.is_troubled()
    }

    fn plan_a_fault(&mut self) {
        let calls = self.random.below(12);
        let faults = [
            DiskFault::Kill,
            DiskFault::Full,
            DiskFault::NoHandles,
            DiskFault::SyncFails,
            DiskFault::CallFails,
        ];
        match self.random.below(6) {
            5 => {
                let is_written = self.random.chance(50);
                self.records.0.lock().fails_after = Some((calls / 4, is_written));
            }
            fault => self.disk.fail_after(calls, faults[fault]),
        }
    }

    fn relieve(&mut self) {
        self.disk.relieve();
        self.records.0.lock().fails_after = None;
    }

    fn crash(&mut self) {
        self.store = None;
        self.crash_disk();
    }

    fn crash_disk(&mut self) {
        self.records.0.lock().fails_after = None;
        if self.random.chance(50) {
            self.disk.restart();
        } else {
            self.disk.cut_power();
            self.written = self.synced;
        }
    }
}

/// A page of the records: the loop of a scan ends where a visit says so.
#[test]
fn shaky_records_are_scanned_in_order() {
    let records = ShakyRecords::default();
    let put = |key: &[u8]| Write::put(Place::Heads(1), key.to_vec(), Vec::new());
    records.commit(vec![put(b"b"), put(b"a"), put(b"c")]).expect("written");
    let mut keys = Vec::new();
    let range = b"a".to_vec()..b"z".to_vec();
    let visited = records.scan(Place::Heads(1), range, &mut |key, _| {
        keys.push(key.to_vec());
        Ok(if keys.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    visited.expect("scanned");
    assert_eq!(keys, [b"a", b"b"]);
}
