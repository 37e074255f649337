//! The outbox, as a process reaches it that may die, over a disk that fails at times.

use crate::tests::simulation::faults::Failures;
use crate::tests::simulation::play::Defect;
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{
    ActionId, Backlog, CampaignId, Deliveries, Delivery, DeliveryQuery, DeliveryRecord, Error,
    Outbox, Selection, Settled, Settlement,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

pub struct FailingOutbox {
    inner: Arc<memory::Ledger>,
    before: Failures,
    after: Failures,
    /// What this process is sending.
    taken: Mutex<BTreeSet<ActionId>>,
    defect: Option<Defect>,
}

/// The result of a future that does not wait.
pub fn now<T>(mut future: BoxFuture<'_, T>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("memory does not wait"),
    }
}

impl FailingOutbox {
    pub fn new(
        seed: u64,
        percent: u64,
        inner: Arc<memory::Ledger>,
        defect: Option<Defect>,
    ) -> Self {
        Self {
            inner,
            before: Failures::new(seed, percent),
            after: Failures::new(seed.rotate_left(17), percent),
            taken: Mutex::default(),
            defect,
        }
    }

    /// What a process was sending is nobody's any more when the process is gone.
    pub fn forget_taken(&self) {
        for action in std::mem::take(&mut *self.taken.lock()) {
            let record = now(self.inner.get(action)).unwrap().unwrap();
            let settlement = Settlement::Postponed { next_ms: record.at_ms };
            let freed = Settled { action, at_ms: record.at_ms, settlement, note: String::new() };
            now(self.inner.settle(vec![freed])).unwrap();
        }
    }

    /// Does something, with a failure before it or behind it, and a moment to die at on each side.
    async fn attempt<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        tokio::task::yield_now().await;
        check(&self.before)?;
        let done = work()?;
        tokio::task::yield_now().await;
        check(&self.after)?;
        Ok(done)
    }

    fn settled(&self, settled: Settled) -> Settled {
        match settled.settlement {
            Settlement::Retry { .. } if self.defect == Some(Defect::GivesUpDeliveries) => {
                Settled { settlement: Settlement::Delivered, ..settled }
            }
            _ => settled,
        }
    }
}

fn check(failures: &Failures) -> Result<(), Error> {
    let failed = || Error::Io("the disk of the outbox is away".to_owned());
    if failures.strike() { Err(failed()) } else { Ok(()) }
}

impl Outbox for FailingOutbox {
    fn take<'a>(
        &'a self,
        destination: &'a str,
        now_ms: i64,
        len_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, Error>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            check(&self.before)?;
            let found = now(self.inner.take(destination, now_ms, len_max))?;
            self.taken.lock().extend(found.iter().map(|delivery| delivery.action));
            tokio::task::yield_now().await;
            Ok(found)
        })
    }

    fn settle(&self, results: Vec<Settled>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.attempt(move || {
            let results: Vec<Settled> =
                results.into_iter().map(|settled| self.settled(settled)).collect();
            for settled in &results {
                self.taken.lock().remove(&settled.action);
            }
            now(self.inner.settle(results))
        }))
    }

    fn list(&self, query: DeliveryQuery) -> BoxFuture<'_, Result<Deliveries, Error>> {
        Box::pin(self.attempt(move || now(self.inner.list(query))))
    }

    fn get(&self, action: ActionId) -> BoxFuture<'_, Result<Option<DeliveryRecord>, Error>> {
        Box::pin(self.attempt(move || now(self.inner.get(action))))
    }

    fn redrive(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(self.attempt(move || now(self.inner.redrive(selection, now_ms))))
    }

    fn cancel(&self, selection: Selection, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(self.attempt(move || now(self.inner.cancel(selection, now_ms))))
    }

    fn release(&self, campaign: CampaignId, now_ms: i64) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(self.attempt(move || now(self.inner.release(campaign, now_ms))))
    }

    fn backlog<'a>(&'a self, destination: &'a str) -> BoxFuture<'a, Result<Backlog, Error>> {
        Box::pin(self.attempt(move || now(self.inner.backlog(destination))))
    }
}
