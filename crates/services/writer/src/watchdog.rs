//! The watchdog: a process that can no longer take or count events must not look as if it could.

use crate::worker::Handle;
use raingauge_ports::log::{Error, EventSink};
use raingauge_ports::published::Published;
use std::sync::Arc;
use std::time::Duration;

const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Watches the log and the writer of one process.
pub struct Watchdog {
    pub sink: Arc<dyn EventSink>,
    pub writer: Arc<Handle>,
    pub published: Arc<Published>,
}

impl Watchdog {
    /// Publishes a failure as soon as the log has closed or a commit hangs, and ends.
    pub async fn run(&self) {
        loop {
            if let Some(reason) = self.trouble() {
                tracing::error!(%reason, "nothing more can be counted by this process");
                return self.published.fail(&reason);
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    fn trouble(&self) -> Option<String> {
        if self.writer.is_stuck() {
            return Some("a commit of the bucket store does not return".to_owned());
        }
        match self.sink.check() {
            Err(error @ Error::Closed(_)) => Some(error.to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::fleet::tests::{HangingStore, Hangs};
    use raingauge_core::event::Event;
    use raingauge_memory as memory;
    use raingauge_ports::buckets::BucketWriter as _;
    use raingauge_ports::clock::SystemClock;
    use raingauge_ports::log::Batch;

    #[tokio::test]
    async fn a_commit_that_hangs_is_a_failure_and_keeps_nobody_from_ending() {
        let store = Arc::new(HangingStore::new(Hangs::WhenCommitted));
        let log = Arc::<memory::Log>::default();
        let published = Arc::<Published>::default();
        let options = Options {
            commit_interval: Duration::from_millis(1),
            commit_time_max: Duration::from_millis(1),
            ..Options::default()
        };

        let writer = Handle::start(
            Arc::clone(&log) as _,
            Arc::clone(&store) as _,
            Arc::clone(&published),
            Arc::new(SystemClock),
            options,
        );
        let writer = Arc::new(writer.expect("a writer"));

        let mut batch = Batch::default();
        batch.push(&Event::of_data("t", 1_000, "{}"));
        log.append(batch).await.expect("appended");
        Watchdog { sink: log, writer: Arc::clone(&writer), published: Arc::clone(&published) }
            .run()
            .await;
        assert!(published.failure().is_some_and(|reason| reason.contains("commit")));

        writer.stop();
        store.give_up();
    }
}
