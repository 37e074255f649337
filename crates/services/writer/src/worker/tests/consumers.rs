//! A second consumer of the log beside counting: it lags, dies between any two steps, and reads
//! every event once.

use super::world::{Medium, START_S, World, counter};
use crate::worker::{Options, Worker};
use proptest::prelude::*;
use raingauge_consumers::{Consumer, Error, Overtaken, Registry};
use raingauge_core::event::Event;
use raingauge_embedded::{LogOptions, SegmentLog, TileOptions, TileStore};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::consumers::{Change, ConsumerStore, Name};
use raingauge_ports::contract::log::batch;
use raingauge_ports::log::{Block, EventLog, EventSink, Offset};
use raingauge_ports::record::Entry;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a read: about a block.
const READ_BYTES: usize = 60;

fn dummy() -> Name {
    Name::new("dummy").expect("a name")
}

/// A consumer that notes how often it has read each event.
struct Dummy {
    consumer: Consumer,
    /// What lies before this is read.
    next: Offset,
    /// What was read since the last commit.
    read: BTreeMap<String, u64>,
}

impl Dummy {
    fn open(log: Arc<dyn EventLog>, store: Arc<dyn ConsumerStore>, registry: &Registry) -> Self {
        let first = log.start();
        let consumer = Consumer::open(dummy(), log, store, registry, first).expect("a consumer");
        Self { next: consumer.position(), read: BTreeMap::new(), consumer }
    }

    fn of(world: &World) -> Self {
        Self::open(Arc::clone(&world.log) as _, world.medium.consumers(), &world.registry)
    }

    /// Reads some of the log. Returns whether there was anything.
    fn read(&mut self) -> Result<bool, Error> {
        let blocks = self.consumer.read(self.next, READ_BYTES, Duration::ZERO)?;
        for block in &blocks {
            for entry in block.entries(self.next) {
                if let Entry::Event(event) = entry.expect("sound entries").1 {
                    *self.read.entry(event.id.into_owned()).or_default() += 1;
                }
            }
        }
        self.next = blocks.last().map_or(self.next, Block::end);
        Ok(!blocks.is_empty())
    }

    fn commit(&mut self) {
        let records = self.consumer.records();
        let change = |(id, count): (String, u64)| -> Change {
            let stored = records.get(&dummy(), id.as_bytes()).expect("a record");
            let before = stored.map_or(0, |value| value[0]);
            (id.into_bytes(), Some(vec![before + count as u8]))
        };
        let changes = std::mem::take(&mut self.read).into_iter().map(change).collect();
        self.consumer.commit(self.next, changes).expect("committed");
    }

    /// Reads and commits all there is. Returns how often each event was read.
    fn finish(&mut self) -> BTreeMap<String, u8> {
        while self.read().expect("the log is kept for it") {}
        self.commit();
        let records = self.consumer.records().scan(&dummy(), b"", None, usize::MAX);
        let records = records.expect("records").into_iter();
        records.map(|(id, count)| (String::from_utf8(id).expect("an id"), count[0])).collect()
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Events by id; some of them repeat others.
    Append(Vec<u16>),
    /// Entries that only one consumer obeys, or none.
    Control,
    Pass(i64),
    /// Counting applies some of the log, or commits.
    Count,
    CommitCounts,
    /// Trims the log of everything that no consumer needs.
    Trim,
    /// The other consumer reads some of the log, or commits.
    Read,
    Commit,
    /// Everything dies, and only counting comes back at once; or the other consumer dies alone.
    Crash,
    Die,
    /// The other consumer starts, where it is not running.
    Start,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop::collection::vec(0..400_u16, 1..6).prop_map(Op::Append),
        1 => Just(Op::Control),
        2 => (1..100_000_i64).prop_map(Op::Pass),
        8 => Just(Op::Count),
        3 => Just(Op::CommitCounts),
        4 => Just(Op::Trim),
        3 => Just(Op::Read),
        2 => Just(Op::Commit),
        2 => Just(Op::Crash),
        1 => Just(Op::Die),
        3 => Just(Op::Start),
    ]
}

fn event(id: &str) -> Event<'_> {
    Event { id: id.into(), ..Event::of_data("t", START_S * 1_000, r#"{"k":"x"}"#) }
}

fn check_history(medium: Medium, ops: Vec<Op>) {
    let mut world = World::new(medium);
    world.set_counter(1, &counter(1, json!({})));

    let mut running = Some(Dummy::of(&world));
    let mut sent = BTreeSet::new();
    for op in ops {
        match op {
            Op::Append(ids) => {
                let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
                world.append(&ids.iter().map(|id| event(id)).collect::<Vec<_>>());
                sent.extend(ids);
            }
            Op::Control => {
                world.append_foreign();
                world.append_void();
            }
            Op::Pass(seconds) => world.pass_s(seconds),
            Op::Count => {
                world.worker().apply_some().expect("applied");
            }
            Op::CommitCounts => world.worker().commit().expect("committed"),
            Op::Trim => {
                world.log.let_go();
                world.keep_up();
            }
            Op::Read => {
                running.as_mut().map(|dummy| dummy.read().expect("the log is kept for it"));
            }
            Op::Commit => running.iter_mut().for_each(Dummy::commit),
            Op::Crash => {
                running = None;
                world.crash();
            }
            Op::Die => running = None,
            Op::Start => running = running.or_else(|| Some(Dummy::of(&world))),
        }

        let positions = world.medium.consumers().positions().expect("positions");
        assert!(world.log.start() <= positions[0].1, "the log is kept for a consumer that is dead");
    }

    world.drain();
    world.worker().commit().expect("committed");
    world.keep_up();

    let read = running.unwrap_or_else(|| Dummy::of(&world)).finish();
    assert!(read.keys().eq(&sent), "{read:?}");
    assert!(read.values().all(|times| *times == 1), "{read:?}");
    world.pass_s(1);
    world.log.let_go();
    world.keep_up();
    assert_eq!(world.log.start(), world.log.end(), "nobody needs the log any more");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_second_consumer_in_memory_reads_every_event_once(
        ops in prop::collection::vec(op(), 1..60),
    ) {
        check_history(Medium::memory(), ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn a_second_consumer_on_disk_reads_every_event_once(ops in prop::collection::vec(op(), 1..60)) {
        check_history(Medium::disk(), ops);
    }
}

/// A consumer that lags beyond the bound is overtaken, detects it, and continues after the loss on
/// request. Counting is not affected.
#[tokio::test]
async fn a_consumer_that_is_overtaken_finds_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(ManualClock::at_s(START_S));
    let options = LogOptions {
        segment_bytes: 1,
        retention: Duration::from_hours(1),
        dedupe_window_ms: 3_600_000,
        consumer_lag_bytes_max: 1_000,
        ..LogOptions::default()
    };

    let time = Arc::clone(&clock) as Arc<dyn Clock>;
    let log = SegmentLog::open(&folder.path().join("log"), options, time).expect("a log");
    let log = Arc::new(log);
    let store = TileStore::open(&folder.path().join("tiles"), &TileOptions::default());
    let store = Arc::new(store.expect("a store"));
    let registry = Arc::new(Registry::of(&*store, 0).expect("a registry"));
    let options = Options { consumers: Arc::clone(&registry), ..Options::default() };

    let time = Arc::clone(&clock) as Arc<dyn Clock>;
    let mut worker =
        Worker::open(Arc::clone(&log) as _, Arc::clone(&store) as _, Arc::default(), time, options)
            .expect("a worker");
    let mut second = Dummy::open(Arc::clone(&log) as _, Arc::clone(&store) as _, &registry);

    let mut count = async |hours: std::ops::Range<i64>| {
        for hour in hours {
            clock.set_s(START_S + hour * 3_600);
            log.append(batch(&[format!("hour-{hour}").as_str()])).await.expect("appended");
            while worker.apply_some().expect("applied") {}
        }

        worker.commit().expect("committed");
        worker.upkeep.trimmed = None;
        worker.keep_up().expect("kept up");
    };

    count(0..5).await;
    assert_eq!(log.start(), 0, "the log is kept for the consumer");
    assert!(second.read().expect("it is kept"));
    count(5..50).await;

    let start = log.start();
    assert!((6..48).contains(&start), "the log begins at {start}");

    let lost = Overtaken { consumer: dummy(), partition: 0, position: 0, start };
    match second.read() {
        Err(Error::Overtaken(overtaken)) => assert_eq!(overtaken, lost),
        read => panic!("it is not told that it was overtaken: {read:?}"),
    }

    drop(second);
    lost.skip(&*store).expect("skipped");

    let mut second = Dummy::open(Arc::clone(&log) as _, Arc::clone(&store) as _, &registry);
    let expected = (start..50).map(|hour| (format!("hour-{hour}"), 1));
    assert_eq!(second.finish(), expected.collect());
}
