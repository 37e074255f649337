//! Keeping the lease under which tiles in memory answer.

use super::LiveTiles;
use raingauge_ports::leases::{LEASE_MS, LeaseMessage, LeaseTopic};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often the lease is renewed while nothing is heard: three words may get lost.
const RENEWAL: Duration = Duration::from_millis(LEASE_MS as u64 / 4);
/// Partitions that are told of within so long share a word.
const GATHERING: Duration = Duration::from_millis(5);

/// Says again and again what was heard, and holds the lease by that, for as long as it is polled. When it is dropped, the
/// lease has ended for good.
pub async fn keep_lease(live: Arc<LiveTiles>, topic: Arc<dyn LeaseTopic>, reader: u64) {
    let holding = Holding { live, topic, reader };
    loop {
        if timeout(RENEWAL, holding.live.heard.notified()).await.is_ok() {
            sleep(GATHERING).await;
        }
        holding.renew();
    }
}

struct Holding {
    live: Arc<LiveTiles>,
    topic: Arc<dyn LeaseTopic>,
    reader: u64,
}

impl Holding {
    fn renew(&self) {
        // Who does not hear the stream has no use for a lease.
        if self.live.pulse.has_stopped(self.live.clock.elapsed_ms()) {
            return;
        }
        let Some(heard) = self.live.pulse.positions() else {
            return;
        };
        let (live, sent_ms) = (Arc::clone(&self.live), self.live.clock.elapsed_ms());
        let granted = move |is_there| {
            if is_there {
                live.extend_lease(sent_ms);
            }
        };
        self.topic.send(&LeaseMessage::Held { reader: self.reader, heard }, Box::new(granted));
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.live.lease.end();
        self.topic.send(&LeaseMessage::Ended { reader: self.reader }, Box::new(drop));
    }
}
