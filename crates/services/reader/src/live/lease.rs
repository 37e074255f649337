//! Keeping the lease under which tiles in memory answer.

use super::LiveTiles;
use raingauge_ports::leases::{LEASE_MS, LeaseMessage, LeaseTopic};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often the lease is renewed while the stream is quiet: three messages may get lost.
const RENEWAL: Duration = Duration::from_millis(LEASE_MS as u64 / 4);
/// Heartbeats of several partitions within this time share one message.
const GATHERING: Duration = Duration::from_millis(5);

/// Holds the lease by publishing, again and again, the positions that were heard, for as long as it
/// is polled. When it is dropped, the lease ends for good.
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
        // A reader that does not hear the stream has no use for a lease.
        if self.live.pulse.has_stopped(self.live.clock.elapsed_ms()) {
            return;
        }
        let Some(heard) = self.live.pulse.positions() else {
            return;
        };

        let live = Arc::clone(&self.live);
        let sent_ms = live.clock.elapsed_ms();
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
