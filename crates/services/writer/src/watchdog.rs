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
