//! A process that ends at any moment, and a ledger that fails.

use crate::bench::{Bench, action, always, delivery, destination, until};
use parking_lot::Mutex;
use raingauge_deliveries::{Deliveries, Deps, StoppedCampaigns};
use raingauge_embedded::{CampaignLedger, LedgerOptions};
use raingauge_memory::{Log, Sender};
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{
    ActionId, Backlog, CampaignId, DeliveryQuery, DeliveryRecord, Error, Outbox, Selection,
    Settled, Status,
};
use raingauge_ports::clock::SystemClock;
use raingauge_ports::contract::campaigns::commit_to;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Loses results, or fails to store them.
struct Faulty<O> {
    inner: Arc<O>,
    /// The next results that are lost with an error.
    failures: AtomicUsize,
    /// Whether results are taken and forgotten, as by a process that ends.
    is_lossy: bool,
    forgotten: Mutex<Vec<Settled>>,
}

impl<O> Faulty<O> {
    fn new(inner: Arc<O>, failures: usize, is_lossy: bool) -> Self {
        Self { inner, failures: failures.into(), is_lossy, forgotten: Mutex::default() }
    }
}

impl<O: Outbox> Outbox for Faulty<O> {
    fn take<'a>(
        &'a self,
        destination: &'a str,
        now_ms: i64,
        len_max: usize,
    ) -> BoxFuture<'a, Result<Vec<raingauge_ports::campaigns::Delivery>, Error>> {
        self.inner.take(destination, now_ms, len_max)
    }

    fn settle(&self, results: Vec<Settled>) -> BoxFuture<'_, Result<(), Error>> {
        let is_failing = self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        if is_failing {
            return Box::pin(async { Err(Error::Io("the disk is slow".to_owned())) });
        }
        if self.is_lossy {
            self.forgotten.lock().extend(results);
            return Box::pin(async { Ok(()) });
        }
        self.inner.settle(results)
    }

    fn list(
        &self,
        query: DeliveryQuery,
    ) -> BoxFuture<'_, Result<raingauge_ports::campaigns::Deliveries, Error>> {
        self.inner.list(query)
    }

    fn get(&self, action: ActionId) -> BoxFuture<'_, Result<Option<DeliveryRecord>, Error>> {
        self.inner.get(action)
    }

    fn redrive(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        self.inner.redrive(selection, now_ms)
    }

    fn cancel(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        self.inner.cancel(selection, now_ms)
    }

    fn release(&self, campaign: CampaignId, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        self.inner.release(campaign, now_ms)
    }

    fn backlog<'a>(&'a self, destination: &'a str) -> BoxFuture<'a, Result<Backlog, Error>> {
        self.inner.backlog(destination)
    }
}

#[tokio::test(start_paused = true)]
async fn results_that_cannot_be_stored_are_kept() {
    let ledger = Arc::default();
    let bench = Bench::with(ledger, vec![destination("a")], always(200), |ledger, log| {
        (Arc::new(Faulty::new(ledger, 3, false)), log)
    });
    bench.commit(vec![delivery("a", 1, 0)]);
    until("it has arrived", async || bench.receiver.len() == 1).await;
    bench.pass(Duration::from_millis(2_500)).await;
    assert_eq!(bench.status(1).await, Status::Pending);
    bench.until_status(1, Status::Delivered).await;
    assert_eq!(bench.receiver.len(), 1, "it is not sent again");
}

/// A campaign is resumed before the ledger knows that its delivery is held.
#[tokio::test(start_paused = true)]
async fn a_release_includes_results_that_are_stored_late() {
    let bench = Bench::with(Arc::default(), vec![destination("a")], always(200), |ledger, log| {
        (Arc::new(Faulty::new(ledger, 2, false)), log)
    });
    let paused = StoppedCampaigns { paused: [7].into(), ..StoppedCampaigns::default() };
    bench.stopped.send_replace(Arc::new(paused));
    bench.commit(vec![delivery("a", 1, 0)]);
    bench.pass(Duration::from_millis(500)).await;
    assert_eq!(bench.status(1).await, Status::Pending);

    bench.stopped.send_replace(Arc::default());
    bench.until_status(1, Status::Delivered).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_ledger_that_fails() {
    let bench = Bench::with(Arc::default(), vec![destination("a")], always(200), |ledger, log| {
        (Arc::new(Faulty::new(ledger, usize::MAX, false)), log)
    });
    bench.commit(vec![delivery("a", 1, 0)]);
    until("it has arrived", async || bench.receiver.len() == 1).await;
    let stopped = tokio::time::timeout(Duration::from_secs(5), bench.deliveries.stop()).await;
    assert_eq!((stopped, bench.status(1).await), (Ok(()), Status::Pending));
}

fn open(folder: &Path) -> Arc<CampaignLedger> {
    let options = LedgerOptions { cache_bytes: 8 << 20, ..LedgerOptions::default() };
    Arc::new(CampaignLedger::open(folder, &options).expect("a ledger"))
}

fn start(outbox: Arc<dyn Outbox>, sender: Arc<Sender>) -> Deliveries {
    let (_, destinations) = watch::channel(vec![Arc::new(destination("a"))]);
    let (_, stopped) = watch::channel(Arc::default());
    let log = Arc::new(Log::default());
    let clock = Arc::new(SystemClock);
    let (gone, _) = mpsc::unbounded_channel();
    let points = None;
    Deliveries::start(Deps { outbox, sender, destinations, stopped, log, points, gone, clock })
}

/// A process that ends between the response and its result sends again, with the same id and the
/// same bytes.
#[tokio::test]
async fn what_was_sent_without_a_result_is_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = open(folder.path());
    let due = |number| delivery("a", number, -400 * 86_400_000);
    commit_to(&*ledger, |commit| commit.deliveries = (0..100).map(due).collect());

    let first = Arc::new(Sender::default());
    let faulty = Arc::new(Faulty::new(ledger.clone(), 0, true));
    let deliveries = start(faulty.clone(), first.clone());
    until_real(|| first.requests().len() == 100).await;
    deliveries.stop().await;
    assert_eq!(faulty.forgotten.lock().len(), 100);
    drop((deliveries, faulty));
    drop(Arc::into_inner(ledger).expect("nobody else has it"));

    let ledger = open(folder.path());
    let second = Arc::new(Sender::default());
    let deliveries = start(ledger.clone(), second.clone());
    until_real(|| second.requests().len() == 100).await;
    deliveries.stop().await;

    let sent = |sender: &Sender| {
        let requests = sender.requests().into_iter();
        let mut sent: Vec<_> = requests
            .map(|request| (request.header("webhook-id").map(str::to_owned), request.body))
            .collect();
        sent.sort();
        sent
    };
    assert_eq!(sent(&first), sent(&second));
    for number in 0..100 {
        let record = ledger.get(action(number)).await.expect("a ledger").expect("a delivery");
        assert_eq!((record.status, record.tries), (Status::Delivered, 1));
    }
}

/// Waits for a condition outside the simulated time.
async fn until_real(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it happens");
}
