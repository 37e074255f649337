//! Processes that share a log of several partitions, of which any may end at any call.

use super::random::{Random, play};
use super::stage::{DAY_MS, HOUR_MS, Process, Stage, programme};
use crate::inflow::Inflow;
use crate::places::{Places, skip_lost};
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_points::{Entry, Kind};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{
    Batch, Block, Error, EventLog, EventSink, LogTimes, Needs, Offset, Partition,
};
use raingauge_ports::points::QueueName;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 100;
const PARTITIONS: Partition = 3;
const MEMBERS: [&str; 4] = ["ann", "bob", "cat", "dan"];

/// One partition of a log.
struct Numbered {
    partition: Partition,
    log: memory::Log,
    is_broken: AtomicBool,
    /// What lies before it is no longer there.
    start: AtomicU64,
}

impl Numbered {
    fn new(partition: Partition, clock: Arc<dyn Clock>) -> Arc<Self> {
        let log = memory::Log::dated(clock);
        Arc::new(Self {
            partition,
            log,
            is_broken: AtomicBool::new(false),
            start: AtomicU64::new(0),
        })
    }
}

impl EventLog for Numbered {
    fn partition(&self) -> Partition {
        self.partition
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(Error::Corrupt("it is torn".to_owned()));
        }
        if from < self.start() {
            return Err(Error::Trimmed { asked: from, start: self.start() });
        }
        self.log.read(from, bytes_max)
    }

    fn start(&self) -> Offset {
        self.start.load(Ordering::Relaxed)
    }

    fn end(&self) -> Offset {
        self.log.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.log.wait_beyond(offset, timeout)
    }
}

impl LogTimes for Numbered {
    fn start_ms(&self) -> i64 {
        self.log.start_ms()
    }

    fn begin_since(&self, appended_ms: i64) -> Offset {
        let blocks = self.log.read(0, usize::MAX).unwrap();
        let later = blocks.iter().find(|block| block.appended_ms >= appended_ms);
        later.map_or(self.log.end(), |block| block.base)
    }

    fn appended_ms(&self, offset: Offset) -> Option<i64> {
        self.log.read(offset, 1).unwrap().first().map(|block| block.appended_ms)
    }

    fn trim(&self, needs: Needs) -> Result<(), Error> {
        self.log.trim(needs)
    }
}

/// A stage whose log is in partitions, and the process that reads them.
struct World {
    stage: Stage,
    logs: Vec<Arc<Numbered>>,
    process: Process,
    inflow: Inflow,
}

impl World {
    fn without_programme() -> Self {
        let mut stage = Stage::new(3, |_| Ok(Response::of_status(200)));
        stage.has_log = false;
        let numbered = |partition| Numbered::new(partition, Arc::clone(&stage.clock) as _);
        let logs: Vec<_> = (0..PARTITIONS).map(numbered).collect();
        let (process, inflow) = open(&stage, &logs);
        Self { stage, logs, process, inflow }
    }

    /// With the programme of the tests in force.
    fn new() -> Self {
        let mut world = Self::without_programme();
        world.stage.store(programme());
        world.advance(HOUR_MS);
        world.stage.turn(&mut world.process).unwrap();
        world.step();
        world
    }

    /// The process ends, and another one begins.
    fn begin_again(&mut self) {
        self.stage.fuse.replace();
        (self.process, self.inflow) = open(&self.stage, &self.logs);
    }

    fn advance(&self, by_ms: i64) {
        self.stage.clock.advance(by_ms);
    }

    fn step(&mut self) -> bool {
        self.stage.during(&mut self.process, self.inflow.step())
    }

    /// Awards everything that there is.
    fn drain(&mut self) {
        while self.step() {}
        for _ in 0..15 {
            self.stage.settle_down(&mut self.process);
            self.advance(2 * HOUR_MS);
        }
    }

    /// Appends an order, and returns its points.
    fn order(&self, partition: usize, id: &str, member: &str, amount: i64) -> i64 {
        let data = json!({
            "member": member, "country": "SG", "vertical": "food", "payment": "grabpay",
            "amount": amount, "order_id": id,
        });
        self.send(partition, id, "order.completed", &data.to_string());
        amount * 4
    }

    fn send(&self, partition: usize, id: &str, kind: &str, data: &str) {
        let event = Event::of_data(kind, self.stage.clock.now_ms(), data);
        let mut batch = Batch::default();
        batch.push(&Event { id: id.into(), source: "shop".into(), ..event });
        self.stage.runtime.block_on(self.logs[partition].log.append(batch)).unwrap();
    }

    fn earned(&self) -> Vec<Arc<Entry>> {
        let entries = self.stage.entries().into_iter();
        entries.filter(|entry| entry.kind == Kind::Earn).collect()
    }

    fn places(&self) -> Places {
        Places::new(Arc::clone(&self.stage.books) as _)
    }
}

fn open(stage: &Stage, logs: &[Arc<Numbered>]) -> (Process, Inflow) {
    let process = stage.open();
    let partitions = logs.iter().map(|log| Arc::clone(log) as Arc<dyn EventLog>).collect();
    let deps = crate::Deps { partitions, ..stage.deps() };
    let places = Arc::new(Places::new(Arc::clone(&deps.books)));
    let shared = Arc::clone(&process.shared);
    let inflow = Inflow::new(&deps, stage.options.clone(), shared, places);
    (process, inflow)
}

#[test]
fn events_of_all_partitions_are_awarded() {
    let mut world = World::new();
    for partition in 0..3 {
        world.order(partition, &format!("o-{partition}"), "bob", 10);
    }
    assert!(world.step() && !world.step());
    assert_eq!(world.stage.available(&world.process, "bob"), 120);

    // The next process goes on behind them.
    world.begin_again();
    world.order(1, "o-3", "bob", 10);
    assert!(world.step() && !world.step());
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (4, 160));
}

/// What was accepted before the first programme was not for points.
#[test]
fn a_partition_begins_with_the_first_event_since_a_programme_was_saved() {
    let mut world = World::without_programme();
    world.order(0, "o-1", "bob", 10);
    world.advance(1);
    world.stage.store(programme());
    world.order(0, "o-2", "bob", 10);
    world.order(1, "o-3", "bob", 10);
    world.advance(HOUR_MS);
    world.stage.turn(&mut world.process).unwrap();
    assert!(world.step() && !world.step());
    assert_eq!(world.earned().len(), 2);

    // The next process goes on behind them.
    world.begin_again();
    world.order(2, "o-4", "bob", 10);
    assert!(world.step() && !world.step());
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (3, 120));
}

/// Another process has put a programme into force that this one does not know yet.
#[test]
fn events_wait_for_the_programme_that_is_in_force() {
    let mut world = World::without_programme();
    // It asks for documents now, whether or not there is time for that beside the step.
    world.stage.turn(&mut world.process).unwrap();
    world.step();
    world.stage.store(programme());
    let mut other = world.stage.open();
    world.stage.turn(&mut other).unwrap();
    world.order(0, "o-1", "bob", 10);
    assert!(!world.step(), "the store of documents was asked less than its interval ago");
    world.advance(HOUR_MS);
    world.stage.turn(&mut world.process).unwrap();
    assert!(world.step());
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (1, 40));
}

/// A partition that is added has events before anybody knows of it.
#[test]
fn a_partition_that_was_added_begins_at_its_start() {
    let mut world = World::new();
    world.logs.push(Numbered::new(PARTITIONS, Arc::clone(&world.stage.clock) as _));
    world.order(PARTITIONS.into(), "o-1", "bob", 10);
    world.begin_again();
    assert!(world.step() && !world.step());
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (1, 40));
}

/// Events that were deleted before they were awarded are reported, and never passed over silently.
#[test]
fn what_the_log_dropped_is_named_until_an_operator_skips_it() {
    let mut world = World::new();
    for number in 0..3 {
        world.order(1, &format!("o-{number}"), "bob", 10);
    }
    world.logs[1].start.store(2, Ordering::Relaxed);
    assert!(!world.step());
    let trouble = world.process.shared.inflow_trouble().expect("it is reported");
    assert!(trouble.contains("partition 1") && trouble.contains("is lost"), "{trouble}");

    for skips in [false, true] {
        let lost = skip_lost(&*world.stage.books, &*world.logs[1], skips).unwrap();
        let lost = lost.expect("something is lost");
        assert_eq!((lost.partition, lost.position, lost.start), (1, 0, 2));
    }
    assert!(skip_lost(&*world.stage.books, &*world.logs[1], true).unwrap().is_none());
    world.advance(HOUR_MS);
    assert!(world.step());
    assert_eq!(world.process.shared.inflow_trouble(), None);
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (1, 40));
}

/// An event that can never be awarded becomes a dead letter, and what follows it is awarded.
#[test]
fn an_event_that_can_never_be_awarded_holds_no_partition() {
    let mut world = World::new();
    let data = json!({"member": "bob", "country": "SG", "vertical": "food", "amount": "much"});
    world.send(0, "p-1", "order.completed", &data.to_string());
    world.order(0, "o-1", "bob", 10);
    assert!(world.step() && !world.step());
    world.drain();
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (1, 40));
    assert_eq!(world.stage.depth(QueueName::Retry), (0, 1));
}

#[test]
fn a_place_that_was_not_noted_repeats_awards_that_are_known() {
    let mut world = World::new();
    world.order(0, "o-1", "bob", 10);
    // The turn of the books is the first call, and the place is the second.
    world.stage.fuse.arm(1, false);
    world.step();
    assert!(world.stage.fuse.has_blown());
    assert_eq!(world.earned().len(), 1);

    let noted = world.stage.runtime.block_on(world.places().position(0)).unwrap();
    assert_eq!(noted, Some(0), "the place lies behind what is durable");
    world.begin_again();
    assert!(world.step() && !world.step());
    assert_eq!(world.earned().len(), 1);
    let noted = world.stage.runtime.block_on(world.places().position(0)).unwrap();
    assert_eq!(noted, Some(1));
}

/// A process that stood still awards what another one has awarded since, and its places go back.
#[test]
fn a_process_that_lost_the_right_awards_nothing_twice() {
    let mut world = World::new();
    let (mut other_process, mut other) = open(&world.stage, &world.logs);
    for number in 0..20 {
        world.order(number % 3, &format!("o-{number}"), "bob", 1);
        if number % 4 == 0 {
            world.step();
        }
        if number % 7 == 0 {
            world.stage.during(&mut other_process, other.step());
        }
    }
    world.drain();
    assert_eq!((world.earned().len(), world.stage.available(&world.process, "bob")), (20, 80));
}

#[test]
fn a_partition_that_cannot_be_read_does_not_hold_the_others() {
    let mut world = World::new();
    world.logs[1].is_broken.store(true, Ordering::Relaxed);
    for partition in 0..3 {
        world.order(partition, &format!("o-{partition}"), "bob", 10);
    }
    world.step();
    assert_eq!(world.stage.available(&world.process, "bob"), 80);
    let trouble = world.process.shared.inflow_trouble().expect("it is reported");
    assert!(trouble.contains("partition 1") && trouble.contains("torn"), "{trouble}");

    world.logs[1].is_broken.store(false, Ordering::Relaxed);
    world.advance(HOUR_MS);
    assert!(world.step());
    assert_eq!(world.process.shared.inflow_trouble(), None);
    assert_eq!(world.stage.available(&world.process, "bob"), 120);
}

/// Events that no rule wants move the place after a while, and those who wait are answered.
#[test]
fn who_waits_is_answered_when_the_place_is_noted() {
    let mut world = World::new();
    world.send(2, "w-1", "weather", "{}");
    let reached = |world: &World, offset| {
        let places = world.places();
        let brief = Duration::from_millis(120);
        let wait = async { tokio::time::timeout(brief, places.reached(&[(2, offset)])).await };
        world.stage.runtime.block_on(wait).is_ok()
    };
    world.step();
    assert!(!reached(&world, 1));
    world.advance(DAY_MS);
    world.step();
    assert!(reached(&world, 1) && !reached(&world, 2));
}

/// Orders reach any partition, some of them twice, while processes end at any call.
#[test]
fn no_event_is_lost_or_awarded_twice() {
    play(SEEDS, |seed| {
        let mut random = Random::of(seed);
        let mut world = World::new();
        if random.one_in(3) {
            world.stage.options.awarding = crate::Awarding::Queued;
            world.begin_again();
        }
        let mut expected: HashMap<&str, i64> = HashMap::new();
        let mut orders = BTreeMap::new();
        for _ in 0..60 {
            if random.one_in(4) {
                world.stage.fuse.arm(random.below(6) as u32, random.one_in(2));
            }
            match random.below(4) {
                0 | 1 => {
                    let id = format!("o-{}", orders.len());
                    let member = *random.pick(&MEMBERS);
                    let amount = 1 + random.below(50) as i64;
                    let points = world.order(random.below(3) as usize, &id, member, amount);
                    *expected.entry(member).or_default() += points;
                    orders.insert(id, (member, amount));
                }
                2 if !orders.is_empty() => {
                    let known: Vec<_> = orders.iter().collect();
                    let (id, (member, amount)) = *random.pick(&known);
                    world.order(random.below(3) as usize, id, member, *amount);
                }
                _ => {
                    world.step();
                }
            }
            if world.stage.fuse.has_blown() || random.one_in(20) {
                world.begin_again();
            }
        }

        world.begin_again();
        world.drain();
        assert_eq!(world.earned().len(), orders.len());
        for (member, points) in expected {
            assert_eq!(world.stage.available(&world.process, member), points, "{member}");
        }
        for queue in QueueName::ALL {
            assert_eq!(world.stage.depth(queue), (0, 0), "{queue:?}");
        }
    });
}
