//! Waits until readers that answer from tiles in memory have received what was counted.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::leases::{Holders, LeaseMessage, LeaseTopic};
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::published;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Interval at which a waiting acknowledgement checks whether a lease has run out.
const PATIENCE: Duration = Duration::from_millis(100);

/// The readers that may answer from memory.
pub struct Audience {
    process: u64,
    /// Barriers that were sent.
    barriers: AtomicU64,
    holders: Mutex<Holders>,
    /// Notified of each message that was read.
    changed: watch::Sender<()>,
    topic: Arc<dyn LeaseTopic>,
    clock: Arc<dyn Clock>,
}

impl Audience {
    /// Creates an audience without readers. [`Audience::note`] must receive every message of the
    /// topic.
    pub fn new(process: u64, topic: Arc<dyn LeaseTopic>, clock: Arc<dyn Clock>) -> Self {
        let holders = Mutex::new(Holders::new(process));
        let changed = watch::Sender::new(());
        Self { process, barriers: AtomicU64::new(0), holders, changed, topic, clock }
    }

    /// Records one message of the topic, in its order.
    pub fn note(&self, message: LeaseMessage) {
        let mut holders = self.holders.lock();
        holders.note(message, self.clock.elapsed_ms());
        metrics::gauge!("raingauge_live_leases").set(holders.len() as f64);
        drop(holders);
        self.changed.send_replace(());
    }

    /// Reads a barrier back as soon as possible, so that no later caller has to wait for it.
    pub async fn open(&self) {
        self.wait(&[]).await;
    }

    async fn wait(&self, ends: &[(Partition, Offset)]) {
        // Every barrier from here on was sent when everything before these ends was in the store.
        let least = self.barriers.load(Ordering::SeqCst) + 1;
        let mut changed = self.changed.subscribe();

        loop {
            let sent_ms = self.clock.elapsed_ms();
            let number = self.barriers.fetch_add(1, Ordering::SeqCst) + 1;
            self.topic.send(
                &LeaseMessage::Barrier { process: self.process, number, sent_ms },
                Box::new(drop),
            );

            let heard = async {
                while !self.holders.lock().have_heard(ends, least) {
                    if changed.changed().await.is_err() {
                        return;
                    }
                }
            };

            if timeout(PATIENCE, heard).await.is_ok() {
                return;
            }
        }
    }
}

impl published::Audience for Audience {
    fn heard(&self, ends: Vec<(Partition, Offset)>) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.wait(&ends).await })
    }
}
