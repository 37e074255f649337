//! The lag of counting, measured outside the workers: it grows while one hangs.

use raingauge_ports::log::{Offset, Partition};

/// The lag of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Entries that are durable but not committed.
    pub events: u64,
    /// Upper bound of the age of the oldest of them.
    pub age_ms: i64,
    /// How long they have waited without a commit.
    pub still_ms: i64,
}

impl Lag {
    pub fn tell(self, partition: Partition) {
        let partition = partition.to_string();
        metrics::gauge!("raingauge_log_lag_events", "partition" => partition.clone())
            .set(self.events as f64);
        metrics::gauge!("raingauge_log_lag_seconds", "partition" => partition)
            .set(self.age_ms as f64 / 1e3);
    }

    pub fn sentence(self) -> String {
        format!(
            "nothing was stored for {} s while {} events wait: look at the bucket store, at Kafka, \
             and in the log for what counting waits for",
            self.still_ms / 1_000,
            self.events
        )
    }
}

/// Measures one partition.
///
/// The oldest waiting entry was appended after everything that is committed, and after the last
/// moment at which no entry waited. The later of the two is close to its age, and never makes it
/// younger than it is.
#[derive(Debug, Default)]
pub struct LagMeter {
    /// The latest time before which no waiting entry was appended.
    since_ms: i64,
    committed: Offset,
    /// When something was last committed, or no entry waited.
    moved_ms: i64,
}

impl LagMeter {
    /// Entries from `committed` on were appended at `appended_ms` or later; 0 when unknown.
    pub fn measure(
        &mut self,
        now_ms: i64,
        end: Offset,
        committed: Offset,
        appended_ms: i64,
    ) -> Lag {
        let events = end.saturating_sub(committed);
        let is_first = self.moved_ms == 0;
        if is_first || events == 0 || committed != self.committed {
            self.moved_ms = now_ms;
        }
        self.committed = committed;

        if events == 0 {
            self.since_ms = now_ms;
            return Lag::default();
        }

        self.since_ms = self.since_ms.max(appended_ms);

        if self.since_ms == 0 {
            self.since_ms = now_ms;
        }
        let since = |moment_ms: i64| (now_ms - moment_ms).max(0);
        Lag { events, age_ms: since(self.since_ms), still_ms: since(self.moved_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_727_215_430_250;

    #[test]
    fn lag_grows_while_nothing_is_committed() {
        let mut meter = LagMeter::default();
        assert_eq!(meter.measure(NOW_MS, 10, 10, 0), Lag::default());
        assert_eq!(
            meter.measure(NOW_MS + 250, 12, 10, 0),
            Lag { events: 2, age_ms: 250, still_ms: 250 }
        );
        assert_eq!(
            meter.measure(NOW_MS + 41_000, 1_610, 10, 0),
            Lag { events: 1_600, age_ms: 41_000, still_ms: 41_000 }
        );

        // A commit of what was appended 1 s before.
        let caught = meter.measure(NOW_MS + 42_000, 1_610, 1_600, NOW_MS + 41_000);
        assert_eq!(caught, Lag { events: 10, age_ms: 1_000, still_ms: 0 });
        assert_eq!(meter.measure(NOW_MS + 43_000, 1_610, 1_610, NOW_MS + 41_000), Lag::default());
    }

    #[test]
    fn a_new_writer_of_a_partition_knows_how_old_the_first_entry_is() {
        let mut meter = LagMeter::default();
        let hour_ms = 3_600_000;
        let lag = meter.measure(NOW_MS, 500, 100, NOW_MS - hour_ms);
        assert_eq!(lag, Lag { events: 400, age_ms: hour_ms, still_ms: 0 });
        let lag = meter.measure(NOW_MS + 1_000, 500, 300, NOW_MS - hour_ms / 2);
        assert_eq!(lag, Lag { events: 200, age_ms: hour_ms / 2 + 1_000, still_ms: 0 });
    }

    #[test]
    fn an_entry_that_comes_after_hours_of_silence_is_young() {
        let mut meter = LagMeter::default();
        meter.measure(NOW_MS, 10, 10, NOW_MS - 9_000_000);
        assert_eq!(meter.measure(NOW_MS + 250, 11, 10, NOW_MS - 9_000_000).age_ms, 250);
    }

    #[test]
    fn without_anything_known_lag_begins_at_the_first_look() {
        let mut meter = LagMeter::default();
        assert_eq!(meter.measure(NOW_MS, 11, 10, 0), Lag { events: 1, age_ms: 0, still_ms: 0 });
        assert_eq!(meter.measure(NOW_MS + 9, 11, 10, 0), Lag { events: 1, age_ms: 9, still_ms: 9 });
    }
}
