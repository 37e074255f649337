//! Books whose journal is on a simulated disk, and whose records lose their end: random turns and
//! faults, compared with the twin in memory.
//!
//! Each seed is one history, which it replays exactly. `RAINGAUGE_SIMULATIONS` is the number of
//! histories, starting at `RAINGAUGE_SIMULATION_SEED`.

use super::*;
use crate::books::records::{View, Visit, Write, Writes};
use crate::books::verify::compare_all;
use crate::files::simulated::{Random, Synced};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

const HISTORIES: u64 = 600;
/// Histories among which one has to miss each sync.
const SEARCHED: u64 = 2_000;
const STEPS: usize = 30;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// Records that a power cut takes back to any commit since the last sync.
#[derive(Clone)]
pub struct LossyRecords(Arc<Mutex<Lossy>>);

struct Lossy {
    random: Random,
    now: Content,
    durable: Content,
    unsynced: Vec<Writes>,
    /// Calls until one fails.
    fails_after: Option<usize>,
}

impl LossyRecords {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Lossy {
            random: Random::new(seed),
            now: Content::new(),
            durable: Content::new(),
            unsynced: Vec::new(),
            fails_after: None,
        })))
    }

    pub fn cut_power(&self) {
        let mut guard = self.0.lock();
        let Lossy { random, now, durable, unsynced, fails_after } = &mut *guard;
        let kept = random.below(unsynced.len() + 1);
        unsynced.drain(..).take(kept).for_each(|writes| put(durable, writes));
        now.clone_from(durable);
        *fails_after = None;
    }

    /// All that it holds, as a store of its own.
    fn copied(&self) -> Self {
        let copied = Self::new(0);
        copied.0.lock().now.clone_from(&self.0.lock().now);
        copied
    }

    fn fail_after(&self, calls: Option<usize>) {
        self.0.lock().fails_after = calls;
    }

    fn is_troubled(&self) -> bool {
        self.0.lock().fails_after.is_some()
    }

    fn begin(&self) -> Result<(), Fault> {
        match &mut self.0.lock().fails_after {
            Some(0) => Err(Fault::Io("as the test wants it".to_owned())),
            Some(calls) => {
                *calls -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn put(content: &mut Content, writes: Writes) {
    for (key, value) in writes {
        match value {
            Some(value) => content.insert(key, value),
            None => content.remove(&key),
        };
    }
}

impl View for LossyRecords {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.0.lock().now.get(key).cloned())
    }

    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let found = self.0.lock();
        let mut found = found.now.range(range);
        while let Some((key, value)) = if is_backwards { found.next_back() } else { found.next() } {
            if visit(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Records for LossyRecords {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(self.copied())
    }

    fn commit(&self, writes: &[Write]) -> Result<(), Fault> {
        let keys: HashSet<&Vec<u8>> = writes.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), writes.len(), "a batch changes a key once");
        self.begin()?;
        let mut guard = self.0.lock();
        put(&mut guard.now, writes.to_vec());
        guard.unsynced.push(writes.to_vec());
        Ok(())
    }

    fn sync(&self) -> Result<(), Fault> {
        self.begin()?;
        let mut guard = self.0.lock();
        let Lossy { durable, unsynced, .. } = &mut *guard;
        unsynced.drain(..).for_each(|writes| put(durable, writes));
        Ok(())
    }
}

pub fn open(disk: &Disk, records: &LossyRecords) -> Result<PointBooks, Error> {
    let folder: Arc<dyn Folder> = Arc::new(disk.clone());
    let inspection = Inspection::of(Arc::clone(&folder), 1_500)?;
    let room = Room::new(Path::new("/"), 0);
    PointBooks::start(folder, inspection, Box::new(records.clone()), 1 << 16, room)
}

#[test]
fn no_history_loses_or_doubles_an_entry() {
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

/// The simulator detects the omission of each sync that keeps entries.
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
    records: LossyRecords,
    books: Option<PointBooks>,
    scene: Scene,
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
            random: Random::new(seed ^ 0x5ead),
            records: LossyRecords::new(seed),
            books: None,
            scene: Scene::new(seed),
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            if self.books.is_none() {
                self.open();
            }
            match self.random.below(100) {
                0..65 => self.turn(),
                65..85 => self.plan_a_fault(),
                85..90 => self.relieve(),
                _ => self.crash(),
            }
        }

        while self.books.is_none() || !self.scene.is_answered() {
            self.relieve();
            match &self.books {
                None => self.open(),
                Some(books) => {
                    let books = books.inner.clone();
                    let done = self.scene.repeat(&PointBooks { inner: books });
                    self.judge(done, false);
                }
            }
        }
        self.relieve();
        self.verify();
    }

    /// Opens the books; faults and further crashes may happen on the way.
    fn open(&mut self) {
        self.books = None;
        loop {
            let is_faulty = self.random.chance(20);
            if is_faulty {
                self.plan_a_fault();
            }

            match open(&self.disk, &self.records) {
                Ok(books) => {
                    self.relieve();
                    if self.disk.is_dead() {
                        self.crash_disk();
                        continue;
                    }
                    self.scene.take_stock(&books);
                    self.books = Some(books);
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

    fn turn(&mut self) {
        let Some(books) = self.books.take() else { return };
        let was_troubled = self.disk.is_troubled() || self.records.is_troubled();
        let done = self.scene.turn(&books);
        self.books = Some(books);
        self.judge(done, was_troubled);
    }

    fn judge(&mut self, done: Result<(), Error>, was_troubled: bool) {
        match done {
            Ok(()) if !self.disk.is_dead() => {}
            Ok(()) => self.crash(),
            Err(error) => {
                assert!(was_troubled, "{error}, though nothing was wrong");
                match error {
                    // Nothing of it is in the books, now or later, unless the process died.
                    Error::NotTaken(_) if !self.disk.is_dead() => self.scene.forget_last(),
                    Error::NotTaken(_) | Error::Closed(_) | Error::Io(_) => self.crash(),
                    other => panic!("{other}"),
                }
            }
        }
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
            5 => self.records.fail_after(Some(calls / 4)),
            fault => self.disk.fail_after(calls, faults[fault]),
        }
    }

    fn relieve(&mut self) {
        self.disk.relieve();
        self.records.fail_after(None);
    }

    fn crash(&mut self) {
        self.books = None;
        self.crash_disk();
    }

    fn crash_disk(&mut self) {
        self.records.fail_after(None);
        if self.random.chance(50) {
            self.disk.restart();
        } else {
            self.disk.cut_power();
            self.records.cut_power();
        }
    }

    /// The records are what follows from the journal.
    fn verify(&self) {
        let Some(books) = &self.books else { return };
        let records = self.records.copied();
        let head = Head { position: 0, ..books.head(0).expect("a head") };
        let pages = &books.inner.pages;
        let compared = compare_all(&records, &LossyRecords::new(0), pages, head.clone());
        let (verified, _) = compared.expect("it can be read").expect("nothing differs");
        assert_eq!(verified.chain, head.chain);
    }
}
