//! What happens when nothing more can be taken or counted.

use crate::support::{ALLOWANCE_S, NOON_S, Services, event_x};
use parking_lot::Mutex;
use raingauge_core::event::Event;
use raingauge_core::retention::Horizons;
use raingauge_counters as counters;
use raingauge_counters::Counters;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{
    self, Addition, BucketRetention, BucketWriter, Cell, Checkpoint, Generation,
};
use raingauge_ports::clock::{Clock, ManualClock};
use raingauge_ports::log::{Appended, Batch, Error, EventSink, Offset, Partition};
use raingauge_ports::published::Published;
use raingauge_writer::watchdog::Watchdog;
use raingauge_writer::worker::Handle;
use raingauge_writer::{Ingest, Options, ingest};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A log that is full or closed, as the test says.
#[derive(Default)]
struct Refusing {
    is_closed: Mutex<bool>,
}

impl EventSink for Refusing {
    fn partitions(&self) -> Partition {
        1
    }

    fn check(&self) -> Result<(), Error> {
        if *self.is_closed.lock() {
            Err(Error::Closed("the disk broke".to_owned()))
        } else {
            Err(Error::Full { free_bytes: 1, reserve_bytes: 2 })
        }
    }

    fn append(&self, _: Batch) -> BoxFuture<'_, Result<Appended, Error>> {
        unreachable!("nothing is appended to a log that takes nothing")
    }

    fn append_control(&self, _: Partition, _: Vec<u8>) -> BoxFuture<'_, Result<Offset, Error>> {
        unreachable!("nothing is appended to a log that takes nothing")
    }
}

#[tokio::test]
async fn a_full_log_refuses_at_the_door_and_a_closed_one_is_a_failure() {
    let services = Services::start();
    let sink = Arc::new(Refusing::default());
    let clock = Arc::clone(&services.clock) as Arc<dyn Clock>;
    let published = || Arc::clone(&services.published);
    let ingest = Ingest::new(
        Arc::clone(&sink) as _,
        vec![],
        published(),
        Arc::clone(&clock),
        ALLOWANCE_S,
        1_000,
    );

    let counters = Counters::new(
        Arc::clone(&services.catalog) as _,
        Arc::clone(&sink) as _,
        published(),
        clock,
    );

    let watchdog = Watchdog {
        sink: Arc::clone(&sink) as _,
        writer: Arc::clone(&services.writer),
        published: published(),
    };

    assert!(matches!(ingest.begin(), Err(ingest::Error::Log(Error::Full { .. }))));
    let refused = counters.set_buckets(Vec::new(), None).await;
    assert!(matches!(refused, Err(counters::Error::Log(Error::Full { .. }))));
    tokio::select! {
        biased;
        () = watchdog.run() => panic!("a disk that is full may have room again"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(services.published.failure(), None);

    *sink.is_closed.lock() = true;
    watchdog.run().await;

    let failure = services.published.failure().expect("a closed log is a failure");
    assert!(failure.contains("the disk broke"), "{failure}");
}

/// A store whose commits wait until the test ends.
struct Hanging {
    store: memory::Buckets,
    released: Mutex<mpsc::Receiver<()>>,
}

impl BucketWriter for Hanging {
    fn checkpoint(&self) -> Result<Checkpoint, buckets::Error> {
        self.store.checkpoint()
    }

    fn add(
        &self,
        generation: Generation,
        key: &str,
        added: Addition,
        kept: &Horizons,
    ) -> Result<(), buckets::Error> {
        self.store.add(generation, key, added, kept)
    }

    fn set(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
        cell: Cell,
    ) -> Result<(), buckets::Error> {
        self.store.set(generation, key, offset, cell)
    }

    fn erase(
        &self,
        generation: Generation,
        key: &str,
        offset: Offset,
    ) -> Result<(), buckets::Error> {
        self.store.erase(generation, key, offset)
    }

    fn commit(&self, _: &Checkpoint) -> Result<(), buckets::Error> {
        let _ = self.released.lock().recv();
        Ok(())
    }

    fn wants_commit(&self) -> bool {
        true
    }
}

impl BucketRetention for Hanging {
    fn expire(
        &self,
        _: Generation,
        _: &Horizons,
        _: &mut Option<Vec<u8>>,
        _: usize,
    ) -> Result<u64, buckets::Error> {
        Ok(0)
    }
}

#[tokio::test]
async fn a_commit_that_hangs_is_a_failure_and_keeps_nobody_from_ending() {
    let (release, released) = mpsc::channel();
    let store =
        Arc::new(Hanging { store: memory::Buckets::default(), released: Mutex::new(released) });
    let log = Arc::<memory::Log>::default();
    let published = Arc::<Published>::default();
    let options = Options { commit_time_max: Duration::from_millis(1), ..Options::default() };

    let clock = Arc::new(ManualClock::at_s(NOON_S));
    let writer =
        Handle::start(Arc::clone(&log) as _, store, Arc::clone(&published), clock, options);
    let writer = Arc::new(writer.expect("a writer"));

    let mut batch = Batch::default();
    let event = event_x("a", NOON_S).to_string();
    batch.push(&Event::from_json(event.as_bytes()).expect("an event"));
    log.append(batch).await.expect("appended");
    Watchdog { sink: log, writer: Arc::clone(&writer), published: Arc::clone(&published) }
        .run()
        .await;
    assert!(published.failure().is_some_and(|reason| reason.contains("commit")));

    writer.stop();
    drop(release);
}
