//! How a change of the catalog reaches the writers.

use crate::Error;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::{Catalog, Versioned};
use raingauge_ports::log::EventSink;
use raingauge_ports::published::Published;
use raingauge_writer::Follower;
use raingauge_writer::control::Control;
use raingauge_writer::state::standing_of;
use std::sync::Arc;

/// Propagates changes of the catalog.
pub trait TakesEffect: Send + Sync {
    /// Returns when the change has taken effect.
    fn take_effect(&self) -> BoxFuture<'_, Result<(), Error>>;
}

/// Writes changes of the catalog to a log with one partition, whose writer is in this process.
pub(crate) struct Announcer {
    catalog: Arc<dyn Catalog>,
    sink: Arc<dyn EventSink>,
    published: Arc<Published>,
    /// The catalog's revision that the log reflects. The lock makes sure that changes are followed
    /// one at a time, so that none is written twice.
    revision: tokio::sync::Mutex<Option<i64>>,
}

impl TakesEffect for Follower {
    fn take_effect(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(self.take_effect().await?) })
    }
}

impl TakesEffect for Announcer {
    fn take_effect(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.follow())
    }
}

impl Announcer {
    pub(crate) fn new(
        catalog: Arc<dyn Catalog>,
        sink: Arc<dyn EventSink>,
        published: Arc<Published>,
    ) -> Self {
        Self { catalog, sink, published, revision: tokio::sync::Mutex::default() }
    }

    async fn follow(&self) -> Result<(), Error> {
        let mut followed = self.revision.lock().await;
        let revision = self.catalog.revision().await?;
        if *followed == Some(revision) {
            return Ok(());
        }

        let changed = match *followed {
            Some(known) if known < revision => self.catalog.changed_since(known).await?,
            _ => self.catalog.list().await?,
        };
        let mut ends = Vec::new();
        for found in changed {
            let known = self.published.view().versions.get(&found.counter.id).copied();
            let news = standing_of(&found);

            if known.is_none_or(|known| {
                (known.version, known.fingerprint) != (news.version, news.fingerprint)
            }) {
                // The only process that writes to the log can trust the catalog, even when it went
                // back.
                let put_back = known.is_some_and(|known| known.version >= news.version);
                let Versioned { counter, version, changed_at, .. } = found;
                let control =
                    Control::Counter { version, counter: Box::new(counter), changed_at, put_back };
                ends = vec![(0, self.sink.append_control(0, control.to_json()).await?)];
            }
        }

        self.published.wait_applied(&ends).await.map_err(Error::Stopped)?;
        *followed = Some(revision);
        Ok(())
    }
}
