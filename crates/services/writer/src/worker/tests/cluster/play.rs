//! Plays one seed.

mod entries;
mod settle;

use super::deduped::{Deduped, Repetitions};
use super::engines::{Servers, SimCheckpoints, SimLog, SimStore};
use super::naive::{Naive, Rule, Switched};
use crate::conductor::DECIDER;
use crate::control::Control;
use crate::follow::Follower;
use crate::state::{Phase, Progress, State};
use crate::worker::tests::world::{START_S, counter, of_json};
use crate::worker::{Options, Worker};
use parking_lot::Mutex;
use raingauge_core::bucket::DAY_S;
use raingauge_core::counter::Counter;
use raingauge_memory as memory;
use raingauge_ports::buckets::BucketWriter;
use raingauge_ports::catalog::{Catalog, Change};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::{EventLog, Offset, Partition};
use raingauge_ports::published::Published;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Changes of the first counter affect only its wording; those of the others, everything.
pub const COUNTERS: [u32; 3] = [1, 2, 3];
const KEYS: u64 = 3;
const READERS: usize = 2;
const PARTITIONS_MAX: u64 = 3;
const VARIANTS: u64 = 7;

/// Defects of the cluster before backfills were conducted, which the simulator must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A partition switches, and drops what it replaced, as soon as it has filled a generation
    /// itself.
    SwitchesAlone,
    /// Each partition gets its own request, or none when that fails half way, and takes a number of
    /// its own.
    CountsGenerationsAlone,
    /// Each partition erases on request, whatever partition 0 switched to before.
    ErasesInAnyOrder,
    /// A worker begins with an empty dedupe window.
    ForgetsWindows,
}

/// A worker and its engines.
struct Node {
    worker: Worker,
    log: Arc<Deduped>,
    store: Arc<SimStore>,
    published: Arc<Published>,
    /// The position at which its state was last compared.
    noted: Option<Offset>,
}

struct Reader {
    follower: Arc<Follower>,
    published: Arc<Published>,
}

pub struct Play {
    defect: Option<Defect>,
    random: Random,
    runtime: Runtime,
    clock: Arc<ManualClock>,
    catalog: Arc<memory::Catalog>,
    logs: Vec<Arc<SimLog>>,
    /// The events of each partition that repeat others.
    repetitions: Vec<Repetitions>,
    /// The stored chunks of dedupe windows.
    chunks: Arc<memory::Chunks>,
    servers: Arc<Mutex<Servers>>,
    /// The worker that counts each partition, if any, and the zombies that still believe they do.
    owners: Vec<Option<Node>>,
    zombies: Vec<(usize, Node)>,
    readers: Vec<Reader>,
    naive: Naive,
    /// What a conductor was about to write when it was paused.
    stale: Vec<(Partition, Control)>,
    /// The state of each partition at each position that a worker was seen at.
    states: BTreeMap<(usize, Offset), State>,
    begun: BTreeMap<(u32, u32), BTreeMap<Partition, Offset>>,
    /// The configuration by which each backfill counts the entries before it. States forget it with
    /// the entries.
    counts_before: BTreeMap<(u32, u32), Counter>,
}

/// Numbers that follow from a seed: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl Play {
    pub fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut random = Random(seed);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let clock = Arc::new(ManualClock::at_s(START_S));
        let catalog = Arc::<memory::Catalog>::default();
        let servers = Arc::<Mutex<Servers>>::default();

        let partitions = 1 + random.below(PARTITIONS_MAX) as Partition;
        let logs: Vec<_> =
            (0..partitions).map(|of| Arc::new(SimLog::new(of, Arc::clone(&clock)))).collect();
        let change = || Change { by: String::new(), reason: String::new(), at_s: START_S };

        for id in COUNTERS {
            runtime
                .block_on(catalog.create(of_json(&counter(id, json!({}))), change()))
                .expect("created");
        }

        let reader = |_| {
            let published = Arc::<Published>::default();
            let checkpoints = Arc::new(SimCheckpoints { servers: Arc::clone(&servers) });
            let follower = Follower::start(
                Arc::clone(&catalog) as _,
                checkpoints,
                Arc::clone(&published),
                partitions,
            );

            Reader { follower: runtime.block_on(follower).expect("a follower"), published }
        };

        let readers = (0..READERS).map(reader).collect();
        let naive = Naive::new(logs.len());
        Self {
            defect,
            random,
            runtime,
            clock,
            catalog,
            owners: logs.iter().map(|_| None).collect(),
            zombies: Vec::new(),
            repetitions: logs.iter().map(|_| Repetitions::default()).collect(),
            chunks: Arc::default(),
            logs,
            servers,
            readers,
            naive,
            stale: Vec::new(),
            states: BTreeMap::new(),
            begun: BTreeMap::new(),
            counts_before: BTreeMap::new(),
        }
    }

    /// Takes one random step.
    pub fn step(&mut self) {
        let place = self.random.below(self.logs.len() as u64) as usize;
        let reader = self.random.below(READERS as u64) as usize;

        match self.random.below(100) {
            0..12 => self.append(place),
            12..16 => self.edit(),
            16..24 => {
                let entries = self.unknown_to(place);
                self.write_some(entries);
            }
            24..25 => self.erase(),
            25..26 => self.set_buckets(place),
            26..31 => self.ask_for_backfill(reader),
            31..43 => {
                let entries = self.due(reader);
                self.write_some(entries);
            }
            43..45 => self.write_old_news(),
            45..49 => self.pass(),
            49..57 => self.refresh(reader),
            57..60 => self.crash_while_working(place),
            60..61 => self.owners[place] = None,
            61..64 => self.rebalance(place),
            64..65 => drop(self.zombies.pop()),
            65..66 => self.trim(place),
            66..72 => self.step_zombie(),
            72..74 => {
                let counter = COUNTERS[self.random.below(COUNTERS.len() as u64) as usize];
                self.erase_all(reader, counter);
            }
            _ => self.step_owner(place),
        }
    }

    fn pass(&mut self) {
        let longest_s = if self.random.below(2) == 0 { 600 } else { 2 * DAY_S as u64 };
        let seconds = self.random.below(longest_s) as i64;
        self.clock.set_s(self.clock.now_s() + seconds);
    }

    /// A reader reads the checkpoints, and answers by them at once.
    fn refresh(&mut self, reader: usize) {
        let follower = Arc::clone(&self.readers[reader].follower);
        self.runtime.block_on(follower.refresh_counters()).expect("the catalog");
        self.runtime.block_on(follower.refresh_states()).expect("the checkpoints");
        (0..READERS).for_each(|reader| self.check_bounds(reader));
    }

    /// At any time, a counter that always counts the same has neither lost nor gained anything.
    fn check_bounds(&self, reader: usize) {
        let Reader { published, .. } = &self.readers[reader];
        let view = Arc::clone(&published.view());
        let servers = self.servers.lock();
        let Some(index) = view.ruleset.index_of(COUNTERS[0]) else {
            return;
        };

        for place in 0..self.logs.len() {
            let partition = place as Partition;
            let mut counted = 0;
            for key in (0..KEYS).map(|key| format!("c{}:k{key}", COUNTERS[0])) {
                for (generation, from_s, to_s) in view.timelines[index].split(0, i64::MAX) {
                    let days = servers.days(generation, partition, &key);
                    counted += days
                        .filter(|(day_s, _)| (from_s..to_s).contains(day_s))
                        .map(|(_, count)| count)
                        .sum::<i64>();
                }
            }

            let (least, most) = self.naive.bounds(place, published.applied(partition));
            assert!(
                (least..=most).contains(&counted),
                "partition {partition}: {counted} of {least}..={most}"
            );
        }
    }

    fn open(&mut self, place: usize) -> Option<Node> {
        let published = Arc::<Published>::default();
        let commits_after =
            if self.random.below(2) == 0 { 1 + self.random.below(20) as usize } else { usize::MAX };
        let store =
            Arc::new(SimStore::new(place as Partition, Arc::clone(&self.servers), commits_after));
        let rereads = Duration::from_secs([0, 15, 100_000][self.random.below(3) as usize]);
        let options =
            Options { read_bytes: 300, future_allowance_s: 0, rereads, ..Options::default() };

        let forgets = self.defect == Some(Defect::ForgetsWindows);
        let log = Arc::new(Deduped::new(
            Arc::clone(&self.logs[place]),
            Arc::clone(&self.chunks),
            forgets,
        ));

        let cells = Arc::clone(&store) as Arc<dyn BucketWriter>;
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let worker = Worker::open(
            Arc::clone(&log) as Arc<dyn EventLog>,
            cells,
            Arc::clone(&published),
            clock,
            options,
        )
        .ok()?;

        Some(Node { worker, log, store, published, noted: None })
    }

    fn rebalance(&mut self, place: usize) {
        if let Some(node) = self.owners[place].take() {
            self.zombies.push((place, node));
        }
        self.owners[place] = self.open(place);
    }

    /// A worker dies at one of its writes, or after the last one, at any point of its work.
    fn crash_while_working(&mut self, place: usize) {
        if let Some(node) = self.owners[place].take() {
            node.store.dies_after(self.random.below(12) as usize);
            let (node, _) = self.work(place, node);
            if let Some(mut node) = node {
                let _ = node.worker.commit();
            }
        }
    }

    /// The log forgets what is counted durably; of what a generation that was filled lacks it is
    /// not old enough to forget anything. Nobody sleeps, or is behind, for as long as entries are
    /// kept.
    fn trim(&mut self, place: usize) {
        let partition = place as Partition;
        let servers = self.servers.lock();
        let fill =
            servers.progress(partition).and_then(|stored| Progress::from_json(&stored.bytes));
        let filled_to = fill.filter(|fill| fill.phase == Phase::Filled).map(|fill| fill.position);
        let position = servers.position(partition);
        let counted = filled_to.map_or(position, |filled_to| filled_to.min(position));
        let log = &self.logs[place];
        log.drop_before(self.repetitions[place].trims_at(counted, |offset| log.block_of(offset)));
        let start = log.start();
        self.zombies.retain(|(of, _)| *of != place);
        drop(self.owners[place].take_if(|node| node.worker.position < start));
    }

    fn step_owner(&mut self, place: usize) {
        match self.owners[place].take() {
            None => self.owners[place] = self.open(place),
            Some(node) => self.owners[place] = self.work(place, node).0,
        }
    }

    fn step_zombie(&mut self) {
        if self.zombies.is_empty() {
            return;
        }
        let which = self.random.below(self.zombies.len() as u64) as usize;
        let (place, node) = self.zombies.swap_remove(which);
        if let (Some(node), _) = self.work(place, node) {
            self.zombies.push((place, node));
        }
    }

    /// Lets a worker do something; it ends with its first error. Returns whether it did anything.
    fn work(&mut self, place: usize, mut node: Node) -> (Option<Node>, bool) {
        let worker = &mut node.worker;
        let worked = match self.random.below(10) {
            0..4 => worker.apply_some(),
            4..7 => worker.backfill_some(),
            7 => worker.removals.step(&*worker.store).map_err(Into::into),
            _ => worker.commit().map(|()| false),
        };

        match worked {
            Ok(worked) => {
                // Chunks of the window are stored in the background, in any order, or lost with the
                // process.
                if self.random.below(3) == 0 {
                    node.log.store_one(self.random.next());
                }
                self.note(place, &mut node);
                (Some(node), worked)
            }
            Err(_) => (None, true),
        }
    }

    /// States are a function of the log; what has been switched is noted for the model.
    fn note(&mut self, place: usize, node: &mut Node) {
        let position = node.worker.position;
        let partition = place as Partition;

        if node.noted.replace(position) == Some(position) {
            return;
        }
        let state = &node.worker.state;
        for (id, known) in &state.counters {
            if let Some(erased) = known.erased {
                let newest =
                    self.naive.erased.entry(*id).or_default().entry(partition).or_insert(erased);
                *newest = if newest.number < erased.number { erased } else { *newest };
            }

            let Some(backfill) = &known.backfill else {
                continue;
            };
            let backfill_of = (*id, backfill.number);
            self.begun.entry(backfill_of).or_default().insert(partition, backfill.begun);

            if let Some(before) = backfill.rules.first().filter(|_| partition == DECIDER) {
                self.counts_before.entry(backfill_of).or_insert_with(|| before.counter.clone());
            }
        }

        if partition == DECIDER {
            self.note_switched(state);
        }
        let plain = plain(state);
        let known = self.states.entry((place, position)).or_insert_with(|| plain.clone());
        assert_eq!(*known, plain, "two workers of partition {place} at offset {position}");
    }

    fn note_switched(&mut self, state: &State) {
        for (id, known) in &state.counters {
            let switched = self.naive.switched.entry(*id).or_default();
            let erased = known.erased.map_or(0, |erased| erased.number);
            for part in known.parts.iter().filter(|part| part.number > erased) {
                if switched.iter().all(|known| known.number != part.number) {
                    let before = self.counts_before.get(&(*id, part.number));
                    switched.push(Switched {
                        number: part.number,
                        after_s: part.from_s,
                        counts_before: Rule::new(before.unwrap_or(&part.rules[0].counter)),
                        begun: BTreeMap::new(),
                    });
                }
            }

            switched.sort_by_key(|known| known.number);
        }
    }
}

/// A state without purely informative parts: how much a backfill read, and rules that the log has
/// forgotten.
fn plain(state: &State) -> State {
    let mut state = state.clone();
    for known in state.counters.values_mut() {
        if let Some(backfill) = &mut known.backfill {
            (backfill.from, backfill.position, backfill.counted) = (0, 0, 0);
        }
        known.each_rules(|rules| {
            rules.drain(..rules.len().saturating_sub(1));
        });
    }
    state.requests.forget_before(Offset::MAX);
    state
}
