//! Reads the last counted entries again before a worker begins.
//!
//! Servers of the store acknowledge a write before it is on their disks: Cassandra syncs its commit
//! log every ten seconds. A power cut of most copies loses the last writes of some tiles, while the
//! checkpoint, which is on other servers, may survive. So a worker begins some seconds of the log
//! before the checkpoint. A tile that includes an entry skips it, and one that has lost it takes it
//! again.
//!
//! The state is that of the checkpoint, which equals that of the earlier position if no entry in
//! between changed it: a worker goes back no further than the last change, and not while a backfill
//! is undecided.

use super::Worker;

impl Worker {
    /// Goes back from the checkpoint by the time to reread.
    pub(super) fn go_back(&mut self) {
        let Some(last_change) = self.state.last_change else {
            return;
        };
        if self.options.rereads.is_zero() || !self.state.queue.is_empty() {
            return;
        }

        let since_ms = self.stamp_us.div_euclid(1_000) - self.options.rereads.as_millis() as i64;
        let begin = self.log.begin_since(since_ms).max(self.log.start()).max(last_change + 1);
        let entries = self.position.saturating_sub(begin);

        // A log that does not know where the time begins returns its own beginning.
        let is_since = |appended_ms: i64| appended_ms >= since_ms;
        if entries == 0 || !self.log.appended_ms(begin).is_some_and(is_since) {
            return;
        }
        tracing::debug!(
            partition = self.log.partition(),
            entries,
            "the last entries before the checkpoint are read again"
        );
        self.rereads = true;
        self.position = begin;

        // The latest possible stamps of these entries: no earlier than the stored ones, and leading
        // to the stamp of the checkpoint.
        self.stamp_us -= entries as i64;
    }

    /// Continues at the checkpoint, because the log has dropped what precedes it.
    pub(super) fn go_forth(&mut self) {
        (self.position, self.stamp_us) = (self.committed, self.committed_us);
    }
}
