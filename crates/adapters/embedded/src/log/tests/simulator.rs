//! A log on a simulated disk: random appends, retries, trims and faults, compared with a naive
//! model.
//!
//! Each seed is one history, which it replays exactly. `RAINGAUGE_SIMULATIONS` is the number of
//! histories, starting at `RAINGAUGE_SIMULATION_SEED`.

use super::*;
use crate::files::simulated::{Disk, Fault, Random, Synced};
use crate::log::appender::Committer;
use crate::log::segments::Failure;
use raingauge_ports::record::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

const HISTORIES: u64 = 10_000;
const STEPS: usize = 40;
const WINDOW_S: i64 = 1_000;
const RETENTION_S: i64 = 3_000;

#[test]
fn no_history_loses_or_repeats_what_was_acknowledged() {
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

/// The simulator detects the omission of each sync.
#[test]
fn each_sync_is_needed() {
    std::thread::scope(|scope| {
        for left_out in Synced::ALL {
            scope.spawn(move || {
                let is_missed = |seed: u64| {
                    let mut world = World::new(seed, Disk::new(seed).without(left_out));
                    std::panic::catch_unwind(AssertUnwindSafe(|| world.run())).is_err()
                };
                assert!((0..HISTORIES).any(is_missed), "nobody misses the sync of {left_out:?}");
            });
        }
    });
}

/// A log, its disk, a bucket store that loses nothing, and the expected contents of both.
struct World {
    seed: u64,
    random: Random,
    disk: Disk,
    options: Options,
    clock: Arc<ManualClock>,
    now_s: i64,
    log: Option<Committer>,
    /// The offset before which the store includes the log.
    applied_to: Offset,
    /// The entry at each offset that was acknowledged or applied.
    entries: BTreeMap<Offset, String>,
    /// For each event that was seen, its offset and when it arrived.
    places: HashMap<String, (Offset, i64)>,
    /// Batches that were not answered, or answered with an error.
    unanswered: Vec<Vec<String>>,
    /// Events that the log has refused.
    refused: HashSet<String>,
    events: usize,
    /// Whether the mark is as recent as the log.
    is_marked: bool,
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
        let mut random = Random::new(seed);
        let options = Options {
            segment_bytes: 200 + random.below(600) as u64,
            retention: Duration::from_secs(RETENTION_S as u64),
            retention_bytes: 1_000 + random.below(4_000) as u64,
            dedupe_window_ms: WINDOW_S * 1_000,
            dedupe_set_ids: 4 + random.below(20),
            ..Options::default()
        };

        let now_s = 1_000_000;
        Self {
            seed,
            disk,
            random,
            options,
            clock: Arc::new(ManualClock::at_s(now_s)),
            now_s,
            log: None,
            applied_to: 0,
            entries: BTreeMap::new(),
            places: HashMap::new(),
            unanswered: Vec::new(),
            refused: HashSet::new(),
            events: 0,
            is_marked: false,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            if self.log.is_none() {
                self.open();
            }
            match self.random.below(100) {
                0..45 => self.append_new(),
                45..60 => self.append_again(),
                60..70 => self.apply(),
                70..75 => self.trim(),
                75..80 => self.pass_time(),
                80..90 => self.plan_a_fault(),
                90..95 => self.disk.relieve(),
                _ => self.crash(),
            }
        }

        self.disk.relieve();

        while !self.unanswered.is_empty() {
            if self.log.is_none() {
                self.open();
            }
            self.disk.relieve();
            self.append_again();
        }

        self.check();
    }

    /// Opens the log; faults and further crashes may happen on the way.
    fn open(&mut self) {
        self.log = None;
        loop {
            let is_faulty = self.random.chance(15);
            if is_faulty {
                let calls = self.random.below(25);
                let fault = self.any_fault();
                self.disk.fail_after(calls, fault);
            }

            let inspected = Inspection::of(Arc::new(self.disk.clone()), self.options.clone());
            match inspected
                .and_then(|inspection| inspection.ready(self.applied_to, self.log_clock()))
            {
                Ok(Ready { committer: log, .. }) => {
                    self.log = Some(log);
                    self.is_marked = !is_faulty;
                    return self.check();
                }
                Err(error) => {
                    assert!(
                        is_faulty && matches!(error, Error::Io(_)),
                        "the start is refused: {error}"
                    );
                    self.crash_disk();
                }
            }
        }
    }

    fn log_clock(&self) -> Arc<LogClock> {
        Arc::new(LogClock::trusting(Arc::clone(&self.clock) as Arc<dyn Clock>))
    }

    fn any_fault(&mut self) -> Fault {
        [Fault::Kill, Fault::Full, Fault::NoHandles, Fault::SyncFails, Fault::CallFails]
            [self.random.below(5)]
    }

    fn plan_a_fault(&mut self) {
        let calls = self.random.below(12);
        let fault = self.any_fault();
        self.disk.fail_after(calls, fault);
    }

    fn crash_disk(&mut self) {
        if self.random.chance(50) {
            self.disk.restart();
        } else {
            self.is_marked = false;
            self.disk.cut_power();
        }
    }

    fn crash(&mut self) {
        self.log = None;
        self.crash_disk();
        if self.is_marked && self.random.chance(30) {
            self.damage();
        }
    }

    /// Flips one bit: the start is refused and changes nothing, or what is served is correct.
    fn damage(&mut self) {
        let before = self.disk.picture();
        let files: Vec<&String> =
            before.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(name, _)| name).collect();
        if files.is_empty() {
            return;
        }

        let name = files[self.random.below(files.len())].clone();
        let at = self.random.below(before[&name].len());
        let bits = 1 << self.random.below(8);
        self.disk.damage(&name, at, bits);

        let damaged = self.disk.picture();

        let inspected = Inspection::of(Arc::new(self.disk.clone()), self.options.clone());
        match inspected.and_then(|inspection| inspection.ready(self.applied_to, self.log_clock())) {
            Err(Error::Corrupt(_)) => {
                assert_eq!(
                    self.disk.picture(),
                    damaged,
                    "a start that was refused has changed something"
                );
                self.disk.damage(&name, at, bits);
            }
            Err(error) => panic!("{name}, byte {at}: {error}"),
            Ok(Ready { committer: log, .. }) => {
                assert!(
                    log.segments.end() >= self.end(),
                    "{name}, byte {at}: something is missing"
                );
                self.check_entries(&log, true);

                let is_there =
                    self.disk.picture().get(&name).and_then(|bytes| bytes.get(at).copied());
                if name.ends_with(".log") && is_there == Some(damaged[&name][at]) {
                    self.disk.damage(&name, at, bits);
                }
            }
        }
    }

    /// The offset behind everything that is known to be in the log.
    fn end(&self) -> Offset {
        self.entries.last_key_value().map_or(0, |(offset, _)| offset + 1).max(self.applied_to)
    }

    fn append_new(&mut self) {
        let mut ids = Vec::new();
        for _ in 0..=self.random.below(4) {
            self.events += 1;
            ids.push(format!("event-{}", self.events));
        }
        // Some events repeat earlier ones of the same batch.
        if self.random.chance(30) && self.events > ids.len() {
            ids.push(format!("event-{}", 1 + self.random.below(self.events)));
        }
        self.append(ids);
    }

    fn append_again(&mut self) {
        if let Some(ids) = self.unanswered.pop() {
            self.append(ids);
        }
    }

    fn append(&mut self, ids: Vec<String>) {
        let Some(log) = &mut self.log else {
            return self.unanswered.push(ids);
        };
        let texts: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.refused.retain(|id| !ids.contains(id));

        let was_troubled = self.disk.is_troubled();
        let mut requests = vec![Request::Events(batch(&texts), Lookup::default())];
        if self.random.chance(10) {
            requests.push(Request::Control(b"note".to_vec()));
        }

        let committed = log.commit(requests);
        log.known.finish_sealing(self.now_s * 1_000);

        match committed {
            // The process died before it could answer.
            Ok(_) if self.disk.is_dead() => {
                self.unanswered.push(ids);
                self.crash();
            }
            Ok(results) => {
                assert_eq!(results[0].accepted + results[0].duplicates, ids.len());
                self.is_marked = !was_troubled;
                self.note_entries();

                for id in &ids {
                    assert!(
                        self.places.contains_key(id),
                        "{id} was acknowledged and is not in the log"
                    );
                }
            }
            Err(failure) => {
                assert!(was_troubled, "{failure:?}, though nothing was wrong");
                self.is_marked = false;

                if matches!(failure, Failure::NotTaken(_)) && !self.disk.is_dead() {
                    let new = ids.iter().filter(|id| !self.places.contains_key(*id));
                    self.refused.extend(new.cloned());
                }

                self.unanswered.push(ids);

                if self.disk.is_dead() {
                    self.crash();
                } else if matches!(failure, Failure::Broken(_)) {
                    self.log = None;
                    self.crash_disk();
                }
            }
        }
    }

    /// Notes the entries appended since the last call, each event once.
    fn note_entries(&mut self) {
        let Some(log) = &self.log else { return };
        let from = self.end().max(log.segments.start());
        let found =
            self.disk.calmly(|| read(log, from)).expect("what was acknowledged can be read");
        for (offset, (text, appended_ms)) in found {
            assert!(!self.refused.contains(&text), "{text} is in the log and was refused");

            if let Some((first, came_ms)) = self.places.insert(text.clone(), (offset, appended_ms))
                && text != "[note]"
            {
                let is_forgotten = came_ms < appended_ms - WINDOW_S * 1_000;
                assert!(is_forgotten, "{text} is at {first} and at {offset}");
            }

            self.entries.insert(offset, text);
        }
    }

    /// The store includes the log and loses nothing of it.
    fn apply(&mut self) {
        let Some(log) = &self.log else { return };
        let end = log.segments.end();
        self.note_entries();
        self.applied_to = end;
    }

    fn trim(&mut self) {
        let Some(log) = &self.log else { return };
        let needs = Needs::of_counting(self.applied_to);
        let trimmed = trim(&log.segments, &self.options, &log.clock, needs, log.known.sealed_to());
        assert!(trimmed.is_ok() || self.disk.is_troubled() || matches!(trimmed, Err(Error::Io(_))));
        if self.disk.is_dead() {
            self.crash();
        }
    }

    fn pass_time(&mut self) {
        self.now_s += [10, 300, 2_000][self.random.below(3)];
        self.clock.set_s(self.now_s);
    }

    fn check(&mut self) {
        let Some(log) = self.log.take() else { return };
        assert!(
            log.segments.end() >= self.end(),
            "{} ends before {}",
            log.segments.end(),
            self.end()
        );
        self.check_entries(&log, false);
        self.log = Some(log);
        self.note_entries();
    }

    /// The readable contents of the log equal the noted entries.
    fn check_entries(&self, log: &Committer, may_fail: bool) {
        let start = log.segments.start();
        let found = match self.disk.calmly(|| read(log, start)) {
            Ok(found) => found,
            Err(_) if may_fail => return,
            Err(error) => panic!("the log cannot be read: {error}"),
        };
        for (offset, text) in self.entries.range(start..) {
            assert_eq!(found.get(offset).map(|(text, _)| text), Some(text), "offset {offset}");
        }
    }
}

/// Returns the entries from `from` to the end, with the time of their blocks.
fn read(log: &Committer, from: Offset) -> Result<BTreeMap<Offset, (String, i64)>, Error> {
    let mut found = BTreeMap::new();
    let mut next = from;
    while next < log.segments.end() {
        for block in log.segments.read(next, 1 << 20)? {
            for entry in block.entries(next) {
                let (offset, entry) = entry?;
                let text = match entry {
                    Entry::Event(event) => event.id.into_owned(),
                    Entry::Control(_) | Entry::Void => "[note]".to_owned(),
                };
                found.insert(offset, (text, block.appended_ms));
            }
            next = block.end();
        }
    }

    Ok(found)
}
