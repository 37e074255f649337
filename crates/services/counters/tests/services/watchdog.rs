//! What happens when nothing more can be taken or counted.

use crate::support::{ALLOWANCE_S, Services};
use parking_lot::Mutex;
use raingauge_counters as counters;
use raingauge_counters::Counters;
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Appended, Batch, Error, EventSink, Offset, Partition};
use raingauge_writer::watchdog::Watchdog;
use raingauge_writer::{Ingest, ingest};
use std::sync::Arc;

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
