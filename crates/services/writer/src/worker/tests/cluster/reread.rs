//! A worker that takes over counts again what servers have lost after they acknowledged it.

use super::engines::{Servers, SimLog, SimStore};
use crate::control::Control;
use crate::worker::tests::world::{START_S, counter, of_json};
use crate::worker::{Options, Worker};
use parking_lot::Mutex;
use raingauge_core::event::Event;
use raingauge_ports::buckets::{BucketWriter, generation_of};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::EventLog;
use raingauge_ports::published::Published;
use raingauge_ports::record;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

struct Cluster {
    clock: Arc<ManualClock>,
    log: Arc<SimLog>,
    servers: Arc<Mutex<Servers>>,
    events: u32,
}

impl Cluster {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at_s(START_S));
        let log = Arc::new(SimLog::new(0, Arc::clone(&clock)));
        Self { clock, log, servers: Arc::default(), events: 0 }
    }

    fn pass(&self, seconds: i64) {
        self.clock.set_s(self.clock.now_s() + seconds);
    }

    fn version(&self, version: u32, value: i64) {
        let counter = of_json(&counter(1, json!({"value": value})));
        let mut bytes = Vec::new();
        record::push_control(&Control::counter(version, START_S, counter).to_json(), &mut bytes);
        self.log.push(bytes, 1);
    }

    fn append(&mut self, events: u32) {
        for _ in 0..events {
            self.events += 1;
            let id = self.events.to_string();
            let data = json!({"k": "k0"}).to_string();
            let event =
                Event { id: id.as_str().into(), ..Event::of_data("t", START_S * 1_000, &data) };
            let mut bytes = Vec::new();
            record::push_event(&event, &mut bytes);
            self.log.push(bytes, 1);
        }
    }

    fn open(&self, rereads_s: u64) -> Worker {
        let store = Arc::new(SimStore::new(0, Arc::clone(&self.servers), usize::MAX));
        let options = Options {
            rereads: Duration::from_secs(rereads_s),
            future_allowance_s: 0,
            ..Options::default()
        };

        let log = Arc::clone(&self.log) as Arc<dyn EventLog>;
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Worker::open(
            log,
            store as Arc<dyn BucketWriter>,
            Arc::<Published>::default(),
            clock,
            options,
        )
        .expect("opened")
    }

    /// Takes the partition over, counts everything there is, and returns where it began.
    fn count(&self, rereads_s: u64) -> u64 {
        let mut worker = self.open(rereads_s);
        let began = worker.position;
        while worker.apply_some().expect("applied") {}
        worker.last_commit -= worker.options.commit_interval;
        worker.commit_when_due().expect("committed");
        began
    }

    fn counted(&self) -> i64 {
        self.servers.lock().days(generation_of(1, 0), 0, "c1:k0").map(|(_, count)| count).sum()
    }
}

#[test]
fn what_servers_lost_is_counted_by_who_takes_over() {
    let mut cluster = Cluster::new();
    cluster.version(1, 1);
    cluster.pass(60);
    cluster.append(5);
    cluster.count(15);

    let synced = cluster.servers.lock().cells.clone();
    cluster.pass(20);
    cluster.append(7);
    cluster.count(15);
    assert_eq!(cluster.counted(), 12);

    // Most copies of the tile lose power before their disks have it; the checkpoint survives.
    cluster.servers.lock().cells = synced.clone();
    cluster.count(0);
    assert_eq!(cluster.counted(), 5, "the checkpoint includes what is lost");
    assert_eq!(cluster.count(15), 6, "the entries of the last 15 seconds");
    assert_eq!(cluster.counted(), 12);

    // What was not lost is skipped, however much of it is read again.
    assert_eq!(cluster.count(1_000_000), 1, "no further than to the last change");
    assert_eq!(cluster.counted(), 12);

    // After a change the state differs: what precedes it is left to a backfill.
    cluster.version(2, 100);
    cluster.append(1);
    cluster.count(15);
    cluster.servers.lock().cells = synced;
    assert_eq!(cluster.count(15), 14);
    assert_eq!(cluster.counted(), 105);
}

/// An entry that is appended while a worker rereads counts once, and so do the reread ones.
#[test]
fn a_worker_that_dies_while_it_reads_again_changes_nothing() {
    let mut cluster = Cluster::new();
    cluster.version(1, 1);
    cluster.append(9);
    cluster.count(15);

    let position = cluster.servers.lock().position(0);
    let synced = cluster.servers.lock().cells.clone();

    for _ in 0..3 {
        let mut worker = cluster.open(15);
        worker.options.read_bytes = 1;
        worker.apply_some().expect("applied");
        worker.commit().expect("committed");
        assert_eq!(cluster.servers.lock().position(0), position, "the checkpoint never goes back");
    }

    assert_eq!(cluster.servers.lock().cells, synced);
    cluster.append(2);
    cluster.count(15);
    assert_eq!(cluster.counted(), 11);
}
