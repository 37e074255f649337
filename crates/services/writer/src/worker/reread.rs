//! Reading once more what was counted last before a worker began.
//!
//! Servers of the store acknowledge a write before their disks have it: Cassandra syncs its commit
//! log every ten seconds. A power cut of most copies takes the last writes of some tiles, while the
//! checkpoint, which lies on other servers, may survive. So a worker begins some seconds of the log
//! before the checkpoint. A tile that includes an entry passes over it, and one that has lost it
//! takes it again.
//!
//! The state is the one of the checkpoint, which is that of the earlier place as long as nothing
//! in between changed it: a worker goes back no further than to the last change, and not while a
//! backfill is undecided.

use super::Worker;

impl Worker {
    /// Goes back from the checkpoint by the time that is to be read again.
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

        // A log that cannot tell where the time begins tells its own beginning.
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

        // The latest stamps that these entries can have had: no earlier than those of what is
        // stored of them, and they lead to the stamp of the checkpoint.
        self.stamp_us -= entries as i64;
    }

    /// Goes on at the checkpoint, because the log has dropped what lies before it.
    pub(super) fn go_forth(&mut self) {
        (self.position, self.stamp_us) = (self.committed, self.committed_us);
    }
}
