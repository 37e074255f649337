//! Writing what the ledger is about to forget, in the background of everything else.

use raingauge_campaign_doors::history::{History, Sources};
use raingauge_campaigner::Handle;
use raingauge_ports::campaigns::Error;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::EventLog;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often it looks whether a day is over, and tries again after an error.
const EVERY: Duration = Duration::from_secs(600);

/// Writes the history, and removes what is old of it.
pub struct Exporter {
    pub history: History,
    pub sources: Sources,
    pub log: Arc<dyn EventLog>,
    pub worker: Handle,
    /// The clock of events, which decisions age by.
    pub clock: Arc<dyn Clock>,
    /// The clock of deliveries.
    pub wall_clock: Arc<dyn Clock>,
    pub decisions_keep: Duration,
    pub history_keep: Duration,
}

impl Exporter {
    pub async fn run(self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.clock.is_sound()
                && let Err(error) = self.turn().await
            {
                metrics::counter!("raingauge_campaign_history_failures_total").increment(1);
                tracing::error!(%error, "the history of campaigns stands, and decisions are kept");
            }
        }
    }

    async fn turn(&self) -> Result<(), Error> {
        let now_ms = self.clock.now_ms().min(self.wall_clock.now_ms());
        let until_ms = now_ms - self.decisions_keep.as_millis() as i64;
        self.history.write(&self.sources, until_ms.min(self.decided_ms(now_ms))).await?;
        self.history.remove_before(now_ms - self.history_keep.as_millis() as i64).await
    }

    /// Nothing more is decided with an earlier time: decisions have the time of the log.
    fn decided_ms(&self, now_ms: i64) -> i64 {
        let is_idle = self.worker.position() >= self.log.end();
        if is_idle { now_ms } else { self.worker.snapshot().log_ms }
    }
}
