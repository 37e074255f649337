//! Events that campaigns emit into the event log.

use crate::bench::{Bench, action, always, delivery, destination};
use raingauge_deliveries::{Destination, Target};
use raingauge_memory::Log;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{Delivery, Status};
use raingauge_ports::log::{Appended, Batch, Error, EventLog as _, EventSink, Offset, Partition};
use raingauge_ports::record::Entry;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn emitted(to: &str, number: u32) -> Delivery {
    let event = json!({
        "specversion": "1.0",
        "id": action(number).to_string(),
        "source": "campaigns/7",
        "type": "mart.rewarded",
        "subject": "u-7",
        "time": "2026-11-23T06:00:00Z",
        "data": {"campaign": {"id": 7, "version": 1, "step": "s", "depth": 1}},
    });
    Delivery { body: event.to_string().into_bytes(), ..delivery(to, number, 0) }
}

/// The ids of the events in a log.
fn ids(log: &Log) -> Vec<String> {
    let blocks = log.read(0, usize::MAX).expect("blocks");
    let entries = blocks.iter().flat_map(|block| block.entries(0));
    let ids = entries.map(|entry| match entry.expect("an entry") {
        (_, Entry::Event(event)) => event.id.into_owned(),
        (offset, _) => panic!("no event at {offset}"),
    });
    ids.collect()
}

#[tokio::test(start_paused = true)]
async fn events_are_appended_once() {
    let own = Destination { target: Target::Log, ..destination("own") };
    let bench = Bench::start(vec![own], always(200));
    let malformed = Delivery { body: b"{}".to_vec(), ..emitted("log", 3) };
    bench.commit(vec![emitted("log", 1), emitted("own", 2), malformed]);
    bench.until_status(1, Status::Delivered).await;
    bench.until_status(2, Status::Delivered).await;
    bench.until_status(3, Status::Refused).await;
    let refusal = bench.record(3).await.note;
    assert!(refusal.contains("specversion"), "{refusal}");

    // The result was lost, and the event is appended a second time.
    let mut again = emitted("log", 4);
    again.body = emitted("log", 1).body;
    bench.commit(vec![again]);
    bench.until_status(4, Status::Delivered).await;
    let mut found = ids(&bench.log);
    found.sort();
    assert_eq!(found, [1, 2].map(|number| action(number).to_string()));
    assert_eq!(bench.receiver.len(), 0);
}

/// Refuses some batches before it takes them.
struct BusyLog {
    inner: Arc<Log>,
    refusals: AtomicUsize,
}

impl EventSink for BusyLog {
    fn partitions(&self) -> Partition {
        1
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Appended, Error>> {
        let left = self.refusals.load(Ordering::SeqCst);
        self.refusals.store(left.saturating_sub(1), Ordering::SeqCst);
        match left {
            0 => self.inner.append(batch),
            1 => Box::pin(async { Err(Error::NotTaken("the disk failed".to_owned())) }),
            _ => Box::pin(async { Err(Error::Busy { retry_after: Duration::from_secs(2) }) }),
        }
    }

    fn append_control(
        &self,
        partition: Partition,
        payload: Vec<u8>,
    ) -> BoxFuture<'_, Result<Offset, Error>> {
        self.inner.append_control(partition, payload)
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_busy_is_tried_again() {
    let bench = Bench::with(Arc::default(), Vec::new(), always(200), |ledger, log| {
        (ledger, Arc::new(BusyLog { inner: log, refusals: AtomicUsize::new(3) }))
    });
    bench.commit((0..1_200).map(|number| emitted("log", number)).collect());
    bench.pass(Duration::from_secs(4)).await;
    assert_eq!(ids(&bench.log).len(), 0);
    bench.until_status(1_199, Status::Delivered).await;
    let expected: Vec<String> = (0..1_200).map(|number| action(number).to_string()).collect();
    assert_eq!(ids(&bench.log), expected, "in the order in which they are due");
}
