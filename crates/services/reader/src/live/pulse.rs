//! Whether the stream of changes is current: it has brought recent news of every partition, and the
//! store is not known to include more of any of them.
//!
//! Only the clock of this machine decides. A partition is current for [`SILENCE_MAX_MS`] after its
//! last heartbeat, or after the store was asked and included no more than the stream had brought.
//! When the store included more, the stream has the same time to catch up.

use parking_lot::Mutex;
use raingauge_ports::log::{Offset, Partition};
use std::sync::atomic::{AtomicI64, Ordering};

/// The stream counts as lost when the newest message of any partition is older than this and the
/// store does not confirm that there is no newer one, or when the stream stays behind the store for
/// longer. So no answer is staler.
const SILENCE_MAX_MS: i64 = 5_000;

/// Times are milliseconds of this machine, see [`raingauge_ports::clock::Clock::elapsed_ms`].
pub struct Pulse {
    /// The news of each partition.
    heard: Mutex<Vec<Option<News>>>,
    /// The time until which tiles in memory answer. All readers read it without a lock.
    until_ms: AtomicI64,
}

#[derive(Clone, Copy)]
struct News {
    position: Offset,
    /// When that was known to be the newest position.
    at_ms: i64,
    /// A later position that the store was found to include, and when it was.
    behind: Option<(Offset, i64)>,
}

impl News {
    fn until_ms(&self) -> i64 {
        let since_ms = self.behind.map_or(self.at_ms, |(_, since_ms)| since_ms.min(self.at_ms));
        since_ms + SILENCE_MAX_MS
    }
}

impl Pulse {
    pub fn new(partitions: Partition) -> Self {
        Self {
            heard: Mutex::new(vec![None; usize::from(partitions.max(1))]),
            until_ms: AtomicI64::new(i64::MIN),
        }
    }

    pub fn has_stopped(&self, now_ms: i64) -> bool {
        now_ms > self.until_ms.load(Ordering::Acquire)
    }

    /// Notes a heartbeat.
    pub fn beat(&self, partition: Partition, position: Offset, now_ms: i64) {
        let mut heard = self.heard.lock();
        let place = usize::from(partition);
        if heard.len() <= place {
            // The log has more partitions by now. The stream is current with news of all of them.
            heard.resize(place + 1, None);
        }
        let before = heard[place];
        let at_ms = before.map_or(now_ms, |before| before.at_ms.max(now_ms));
        let behind =
            before.and_then(|before| before.behind).filter(|(stored, _)| *stored > position);
        heard[place] = Some(News { position, at_ms, behind });
        self.refresh(&heard);
    }

    /// Notes that the store included a partition up to `stored` when it was asked.
    pub fn note_stored(&self, partition: Partition, stored: Offset, asked_ms: i64) {
        let mut heard = self.heard.lock();
        let Some(Some(own)) = heard.get_mut(usize::from(partition)) else {
            return;
        };

        if own.position >= stored {
            own.at_ms = own.at_ms.max(asked_ms);
        } else {
            own.behind.get_or_insert((stored, asked_ms));
        }
        self.refresh(&heard);
    }

    fn refresh(&self, heard: &[Option<News>]) {
        let until_ms =
            heard.iter().map(|heard| heard.map_or(i64::MIN, |heard| heard.until_ms())).min();
        self.until_ms.store(until_ms.unwrap_or(i64::MIN), Ordering::Release);
    }

    /// The position of each partition. `None` while there is no news of one.
    pub fn positions(&self) -> Option<Vec<Offset>> {
        self.heard.lock().iter().map(|heard| heard.map(|heard| heard.position)).collect()
    }

    pub fn position(&self, partition: Partition) -> Option<Offset> {
        self.heard.lock().get(usize::from(partition)).copied().flatten().map(|heard| heard.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_beats_while_every_partition_does() {
        let pulse = Pulse::new(2);
        assert!(pulse.has_stopped(0));
        pulse.beat(0, 10, 1_000);
        assert!(pulse.has_stopped(1_000), "one of two is silent");
        pulse.beat(1, 20, 3_000);
        assert!(
            !pulse.has_stopped(1_000 + SILENCE_MAX_MS) && pulse.has_stopped(1_001 + SILENCE_MAX_MS)
        );
        pulse.beat(0, 11, 9_000);
        assert!(
            !pulse.has_stopped(3_000 + SILENCE_MAX_MS) && pulse.has_stopped(3_001 + SILENCE_MAX_MS)
        );
        assert_eq!(
            (pulse.position(0), pulse.position(1), pulse.position(2)),
            (Some(11), Some(20), None)
        );
        assert_eq!(pulse.positions(), Some(vec![11, 20]));
        pulse.beat(3, 1, 9_000);

        assert!(
            pulse.has_stopped(9_000) && pulse.positions().is_none(),
            "the third one has not been heard of"
        );
    }

    #[test]
    fn a_silent_partition_of_which_nothing_is_missed_does_not_stop_it() {
        let pulse = Pulse::new(1);
        pulse.note_stored(0, 0, 1_000);
        assert!(pulse.has_stopped(1_000), "nothing was heard of it");
        pulse.beat(0, 10, 1_000);
        pulse.note_stored(0, 10, 60_000);
        assert!(
            !pulse.has_stopped(60_000 + SILENCE_MAX_MS)
                && pulse.has_stopped(60_001 + SILENCE_MAX_MS)
        );
        pulse.note_stored(0, 9, 61_000);

        assert!(
            !pulse.has_stopped(61_000 + SILENCE_MAX_MS),
            "more was heard than was stored when it was asked"
        );
    }

    #[test]
    fn it_stops_when_the_stream_stays_behind_the_store() {
        let pulse = Pulse::new(1);
        pulse.beat(0, 10, 1_000);
        pulse.note_stored(0, 12, 2_000);
        pulse.note_stored(0, 14, 3_000);

        for (position, now_ms) in [(10, 4_000), (11, 6_000)] {
            pulse.beat(0, position, now_ms);
            assert!(
                !pulse.has_stopped(2_000 + SILENCE_MAX_MS)
                    && pulse.has_stopped(2_001 + SILENCE_MAX_MS)
            );
        }

        pulse.beat(0, 12, 7_000);
        assert!(!pulse.has_stopped(7_000 + SILENCE_MAX_MS));
        pulse.note_stored(0, 14, 7_500);
        assert!(pulse.has_stopped(7_501 + SILENCE_MAX_MS), "it has as long for what it lacks now");
    }
}
