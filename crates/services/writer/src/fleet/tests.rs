use super::*;
use crate::worker;
use parking_lot::Condvar;
use raingauge_core::counter::Counter;
use raingauge_core::event::Event;
use raingauge_core::retention::Horizons;
use raingauge_memory as memory;
use raingauge_ports::buckets::{
    self, Addition, BucketRetention, BucketWriter, Cell, Checkpoint, Generation,
};
use raingauge_ports::clock::SystemClock;
use raingauge_ports::cluster;
use raingauge_ports::log::{self, Batch, Block, EventLog, LogTimes, Needs};
use raingauge_ports::tiles::TileChanges;
use raingauge_ports::{BoxFuture, log::Appended};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

/// A partition of several.
struct NumberedLog(memory::Log, Partition);

impl EventLog for NumberedLog {
    fn partition(&self) -> Partition {
        self.1
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, log::Error> {
        self.0.read(from, bytes_max)
    }

    fn start(&self) -> Offset {
        self.0.start()
    }

    fn end(&self) -> Offset {
        self.0.end()
    }

    fn wait_beyond(&self, offset: Offset, timeout: Duration) -> Offset {
        self.0.wait_beyond(offset, timeout)
    }
}

impl LogTimes for NumberedLog {
    fn start_ms(&self) -> i64 {
        self.0.start_ms()
    }

    fn trim(&self, needs: Needs) -> Result<(), log::Error> {
        self.0.trim(needs)
    }
}

/// How a store that is away behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangs {
    Never,
    WhenRead,
    WhenCommitted,
}

/// A store that returns nothing until it gets the stop signal.
pub(crate) struct HangingStore {
    inner: memory::Buckets,
    hangs: Hangs,
    gives_up: Mutex<bool>,
    told: Condvar,
}

impl HangingStore {
    pub(crate) fn new(hangs: Hangs) -> Self {
        let inner = memory::Buckets::default();
        Self { inner, hangs, gives_up: Mutex::default(), told: Condvar::default() }
    }

    fn wait(&self, when: Hangs) -> Result<(), buckets::Error> {
        if self.hangs != when {
            return Ok(());
        }
        let mut gives_up = self.gives_up.lock();
        while !*gives_up {
            self.told.wait(&mut gives_up);
        }
        Err(buckets::Error::Io("the store is away".to_owned()))
    }
}

impl BucketWriter for HangingStore {
    fn checkpoint(&self) -> Result<Checkpoint, buckets::Error> {
        self.wait(Hangs::WhenRead)?;
        self.inner.checkpoint()
    }

    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        kept: &Horizons,
    ) -> Result<(), buckets::Error> {
        self.inner.add(generation, key, added, kept)
    }

    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), buckets::Error> {
        self.inner.set(generation, key, offset, cell)
    }

    fn erase(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
    ) -> Result<(), buckets::Error> {
        self.inner.erase(generation, key, offset)
    }

    fn commit(&self, checkpoint: &Checkpoint) -> Result<(), buckets::Error> {
        self.wait(Hangs::WhenCommitted)?;
        self.inner.commit(checkpoint)
    }

    fn wants_commit(&self) -> bool {
        false
    }

    fn give_up(&self) {
        *self.gives_up.lock() = true;
        self.told.notify_all();
    }
}

impl BucketRetention for HangingStore {
    fn expire(
        &self,
        generation: Generation,
        horizons: &Horizons,
        cursor: &mut Option<Vec<u8>>,
        scan_max: usize,
    ) -> Result<u64, buckets::Error> {
        self.inner.expire(generation, horizons, cursor, scan_max)
    }
}

/// Two partitions, the group, and what readers receive.
struct World {
    logs: Vec<Arc<NumberedLog>>,
    /// What the store of each partition does.
    hangs: [Hangs; 2],
    assigned: watch::Sender<Vec<Partition>>,
    has_left: AtomicBool,
    beats: Mutex<BTreeMap<Partition, Vec<Offset>>>,
}

impl World {
    fn new(hangs: [Hangs; 2]) -> Arc<Self> {
        let logs = (0..2)
            .map(|partition| Arc::new(NumberedLog(memory::Log::default(), partition)))
            .collect();
        let assigned = watch::Sender::new(vec![0, 1]);
        let has_left = AtomicBool::new(false);
        Arc::new(Self { logs, hangs, assigned, has_left, beats: Mutex::default() })
    }

    fn beats(&self, partition: Partition) -> Vec<Offset> {
        self.beats.lock().get(&partition).cloned().unwrap_or_default()
    }
}

impl Membership for World {
    fn assigned(&self) -> watch::Receiver<Vec<Partition>> {
        self.assigned.subscribe()
    }

    fn committed(&self, _partition: Partition, _position: Offset) {}

    fn leave(&self) {
        self.has_left.store(true, Ordering::SeqCst);
    }
}

impl Partitions for World {
    fn log(&self, partition: Partition) -> Result<Arc<dyn EventLog>, cluster::Error> {
        Ok(Arc::clone(&self.logs[usize::from(partition)]) as Arc<dyn EventLog>)
    }

    fn store(&self, partition: Partition) -> Arc<dyn BucketWriter> {
        Arc::new(HangingStore::new(self.hangs[usize::from(partition)]))
    }
}

impl EventSink for World {
    fn partitions(&self) -> Partition {
        2
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, log::Error>> {
        self.logs[0].0.append(batch)
    }

    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, log::Error>> {
        self.logs[usize::from(partition)].0.append_control(partition, payload)
    }
}

impl TileFeed for World {
    fn publish(&self, partition: Partition, change: TileChanges) {
        if let TileChanges::Heartbeat { position, .. } = change {
            self.beats.lock().entry(partition).or_default().push(position);
        }
    }
}

/// Starts a fleet with one counter, which is announced to each partition.
fn start(world: &Arc<World>) -> (Troubles, watch::Sender<bool>, JoinHandle<()>) {
    let counter = json!({"id": 1, "name": "n", "template": "k", "eventType": "t"});
    let version = 1;
    let changed_at = 0;
    let counter = Counter::from_json(&counter).unwrap();
    let counter = Versioned {
        counter,
        version,
        changed_by: String::new(),
        reason: String::new(),
        changed_at,
    };

    let (_, counters) = watch::channel(Arc::new(vec![counter]));
    let options = worker::Options {
        commit_interval: Duration::from_millis(1),
        catches_up: false,
        drain_timeout: Duration::ZERO,
        ..worker::Options::default()
    };

    let fleet = Fleet::new(Deps {
        membership: Arc::clone(world) as Arc<dyn Membership>,
        partitions: Arc::clone(world) as Arc<dyn Partitions>,
        sink: Arc::clone(world) as Arc<dyn EventSink>,
        counters,
        clock: Arc::new(SystemClock),
        stored: Arc::default(),
        feed: Some(Arc::clone(world) as Arc<dyn TileFeed>),
        options,
        stalled_after: Duration::ZERO,
    });

    let troubles = fleet.troubles();
    let (stop, stopping) = watch::channel(false);
    (troubles, stop, tokio::spawn(fleet.run(stopping)))
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(60), waited).await.is_ok(),
        "waited in vain until {what}"
    );
}

/// A store that does not answer keeps neither other partitions from being counted nor the process
/// from ending.
#[tokio::test]
async fn a_partition_whose_store_hangs_does_not_hold_up_the_others() {
    for hangs in [Hangs::WhenRead, Hangs::WhenCommitted] {
        let world = World::new([hangs, Hangs::Never]);
        let (_, stop, running) = start(&world);
        until("the other partition is counted, and readers hear of it", || {
            world.beats(1).ends_with(&[1])
        })
        .await;
        assert!(
            world.beats(0).iter().all(|position| *position == 0),
            "nothing is stored of the one that hangs"
        );
        world.assigned.send_replace(vec![1]);

        let beats = world.beats(1).len();
        until("readers go on hearing", || world.beats(1).len() > beats).await;
        stop.send_replace(true);
        running.await.unwrap();
        assert!(world.has_left.load(Ordering::SeqCst));
    }
}

/// A wait is reported even while the worker hangs.
#[tokio::test]
async fn a_hanging_worker_is_reported() {
    let world = World::new([Hangs::WhenCommitted, Hangs::Never]);
    let mut batch = Batch::default();
    batch.push(&Event::of_data("t", 1_000, "{}"));
    world.logs[0].0.append(batch).await.unwrap();

    let (troubles, stop, running) = start(&world);
    let told = || troubles.lock().get(&0).is_some_and(|trouble| trouble.contains("2 events wait"));
    until("the waiting events are reported", told).await;
    until("the other one is counted", || {
        !troubles.lock().contains_key(&1) && world.beats(1).ends_with(&[1])
    })
    .await;

    // Another process may do better.
    world.assigned.send_replace(vec![1]);
    until("the trouble is over", || !troubles.lock().contains_key(&0)).await;
    stop.send_replace(true);
    running.await.unwrap();
}
