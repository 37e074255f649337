//! Books whose journal is on a simulated disk, and whose records lose their end: random turns and
//! faults, compared with the twin in memory.
//!
//! Each seed is one history, which it replays exactly. `RAINGAUGE_SIMULATIONS` is the number of
//! histories, starting at `RAINGAUGE_SIMULATION_SEED`.

use super::*;
use crate::books::pending::Limits;
use crate::books::records::{Records, View, Visit};
use crate::books::verify::compare_all;
use crate::files::simulated::{Random, Synced};
use crate::store::tables::Fill;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

const HISTORIES: u64 = 600;
/// Histories among which one has to miss each sync.
const SEARCHED: u64 = 2_000;
const STEPS: usize = 30;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// What may be pending: some histories freeze a layer every other turn, others seldom.
const PENDING: [usize; 4] = [1, 4, 16, 200];

/// Records that fail when they are written.
#[derive(Clone)]
pub struct FailingRecords(Arc<Mutex<Failing>>);

struct Failing {
    random: Random,
    /// Shared with views until it changes.
    now: Arc<Content>,
    /// Writes until one fails.
    fails_after: Option<usize>,
}

impl FailingRecords {
    pub fn new(seed: u64) -> Self {
        let random = Random::new(seed);
        Self(Arc::new(Mutex::new(Failing { random, now: Arc::default(), fails_after: None })))
    }

    /// All that it holds, as a store of its own.
    fn copied(&self) -> Self {
        let copied = Self::new(0);
        copied.0.lock().now.clone_from(&self.0.lock().now);
        copied
    }

    pub fn fail_after(&self, calls: Option<usize>) {
        self.0.lock().fails_after = calls;
    }

    fn is_troubled(&self) -> bool {
        self.0.lock().fails_after.is_some()
    }

    /// Whether the next write fails.
    fn begin(&self) -> bool {
        match &mut self.0.lock().fails_after {
            Some(0) => true,
            Some(calls) => {
                *calls -= 1;
                false
            }
            None => false,
        }
    }
}

impl View for FailingRecords {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.0.lock().now.get(key).cloned())
    }

    fn scan(
        &self,
        range: Range<Vec<u8>>,
        is_backwards: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let now = Arc::clone(&self.0.lock().now);
        let mut found = now.range(range);
        while let Some((key, value)) = if is_backwards { found.next_back() } else { found.next() } {
            if visit(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Records for FailingRecords {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(self.copied())
    }

    /// A write that fails may have been made, but never a part of it.
    fn write_tables(&self, fill: &mut Fill<'_>) -> Result<(), Fault> {
        let fails = self.begin();
        let mut changes = Vec::new();
        fill(&mut |key, value| {
            let is_next = changes.last().is_none_or(|(last, _): &(Vec<u8>, _)| &last[..] < key);
            assert!(is_next, "keys come in order, each once");
            changes.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        })?;

        let mut guard = self.0.lock();
        let Failing { random, now, .. } = &mut *guard;
        if !fails || random.chance(50) {
            let now = Arc::make_mut(now);
            for (key, value) in changes {
                match value {
                    Some(value) => now.insert(key, value),
                    None => now.remove(&key),
                };
            }
        }
        if fails { Err(Fault::Io("as the test wants it".to_owned())) } else { Ok(()) }
    }
}

pub fn open(disk: &Disk, records: &FailingRecords) -> Result<PointBooks, Error> {
    open_with(disk, records, PENDING[3])
}

/// Opens books without a thread: what it does is done in turn.
pub fn open_with(
    disk: &Disk,
    records: &FailingRecords,
    entries: usize,
) -> Result<PointBooks, Error> {
    let folder: Arc<dyn Folder> = Arc::new(disk.clone());
    let inspection = Inspection::of(Arc::clone(&folder), 1_500)?;
    let room = Room::new(Path::new("/"), 0);
    let records = Arc::new(pending(records, entries));
    let inner = Inner::start(folder, inspection, records, 1 << 16, room)?;
    Ok(PointBooks { inner: Arc::new(inner), _writer: None })
}

fn pending(records: &FailingRecords, entries: usize) -> Pending {
    Pending::new(Box::new(records.clone()), Limits { entries, bytes: 1 << 20 })
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
    records: FailingRecords,
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
            records: FailingRecords::new(seed),
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
                0..50 => self.turn(),
                50..58 => self.freeze(),
                58..66 => self.write_frozen(),
                66..69 => self.stop(),
                69..86 => self.plan_a_fault(),
                86..90 => self.relieve(),
                _ => self.crash(),
            }
        }

        while self.books.is_none() || !self.scene.is_answered() {
            self.relieve();
            match &self.books {
                None => self.open(),
                Some(books) => {
                    let books = books.inner.clone();
                    let done = self.scene.repeat(&PointBooks { inner: books, _writer: None });
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

            let entries = PENDING[self.random.below(PENDING.len())];
            match open_with(&self.disk, &self.records, entries) {
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

    fn freeze(&self) {
        if let Some(books) = &self.books {
            books.inner.records.freeze();
            self.compare(books);
        }
    }

    /// As the thread does it. What fails stays readable, and closes the books.
    fn write_frozen(&mut self) {
        let Some(books) = &self.books else { return };
        let was_troubled = self.records.is_troubled();
        let written = books.inner.records.write_frozen();
        self.compare(books);
        if let Err(fault) = written {
            assert!(was_troubled, "{fault:?}, though nothing was wrong");
            let refused = self.scene.turn(books);
            assert!(matches!(refused, Err(Error::Closed(_))), "{refused:?}");
            self.crash();
        }
    }

    /// Compares, unless a fault that is planned would hit a read of the journal.
    fn compare(&self, books: &PointBooks) {
        if !self.disk.is_troubled() {
            same_content(books, &self.scene);
        }
    }

    /// Everything pending is written when the books are closed.
    fn stop(&mut self) {
        let Some(books) = self.books.take() else { return };
        if books.inner.records.write_all().is_ok() {
            let head = state::head(books.inner.records.written()).expect("a head");
            assert_eq!(head.sequence, self.scene.head().sequence);
        }
        self.crash();
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
        }
    }

    /// The records are what follows from the journal.
    fn verify(&self) {
        let Some(books) = &self.books else { return };
        let records = self.records.copied();
        let head = Head { position: 0, ..books.head(0).expect("a head") };
        let pages = &books.inner.pages;
        let again = pending(&FailingRecords::new(0), 1);
        let written = state::head(&records).expect("a head");
        let compared = compare_all(&pending(&records, 1), &again, pages, written);
        let (verified, _) = compared.expect("it can be read").expect("nothing differs");
        assert_eq!(verified.chain, head.chain);
    }
}
