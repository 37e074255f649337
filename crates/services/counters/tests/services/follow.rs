//! What a process knows of the writers of others, and what it does not answer without.

use crate::support::{NOON_S, Services, counter, event_x};
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::BucketWriter;
use raingauge_ports::cluster::{Checkpoints, Error, StoredPosition};
use raingauge_ports::log::Partition;
use raingauge_ports::published::Published;
use raingauge_writer::{Follower, NotThere};
use serde_json::json;
use std::sync::Arc;

/// The checkpoints of a store of one partition, which can be out of reach.
struct Stored {
    store: Arc<memory::Buckets>,
    is_away: Mutex<bool>,
}

impl Stored {
    /// A request that may fail, of a state that is there.
    fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&memory::Buckets) -> T,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let found = if *self.is_away.lock() {
            Err(Error("it timed out".to_owned()))
        } else {
            Ok(read(&self.store))
        };
        Box::pin(async { found })
    }
}

impl Checkpoints for Stored {
    fn included(&self) -> BoxFuture<'_, Result<Vec<StoredPosition>, Error>> {
        let position = self.store.checkpoint().expect("a checkpoint").position;
        Box::pin(async move {
            Ok(vec![StoredPosition { partition: 0, position, state_version: position as i64 }])
        })
    }

    fn state(&self, _partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        self.read(|store| store.checkpoint().expect("a checkpoint").state)
    }

    fn progress(&self, _partition: Partition) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        self.read(|store| {
            store.checkpoint().expect("a checkpoint").progress.unwrap_or_default().bytes
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_before_it_is_known_which_counts_answer() {
    let services = Services::start();
    services.create(counter(1, json!({}))).await;
    services.send(&[event_x(1, NOON_S)]).await;
    services.backfill(1).await;

    // A writer commits when it ends, and with that makes the backfill answer.
    services.writer.stop();
    let checkpoints =
        Arc::new(Stored { store: Arc::clone(&services.store), is_away: Mutex::new(true) });
    let published = Arc::<Published>::default();
    let start = || {
        let catalog = Arc::clone(&services.catalog) as _;
        Follower::start(catalog, Arc::clone(&checkpoints) as _, Arc::clone(&published), 1)
    };

    // The counts that were replaced may be gone, so that a process that
    // does not know of it would answer 0.
    assert!(matches!(start().await, Err(NotThere::Checkpoints(_))));

    *checkpoints.is_away.lock() = false;
    let _follower = start().await.expect("everything is known");
    let view = Arc::clone(&published.view());
    let index = view.ruleset.index_of(1).expect("a counter that answers");

    assert_eq!(view.timelines[index].only(), Some(services.generation(1)));
    assert!(!published.is_outdated());
}
