//! Whether the stream of changes is alive: every partition has been heard of lately.

use super::SILENCE_MAX_MS;
use parking_lot::Mutex;
use raingauge_ports::log::{Offset, Partition};
use std::sync::atomic::{AtomicI64, Ordering};

pub struct Pulse {
    /// Of each partition, how far it was told, and when that was published.
    beats: Mutex<Vec<Option<(Offset, i64)>>>,
    /// What is in memory answers up to here, in milliseconds since 1970. Read by everybody, without a lock.
    until_ms: AtomicI64,
}

impl Pulse {
    pub fn new(partitions: Partition) -> Self {
        Self { beats: Mutex::new(vec![None; usize::from(partitions.max(1))]), until_ms: AtomicI64::new(i64::MIN) }
    }

    pub fn has_stopped(&self, now_ms: i64) -> bool {
        now_ms > self.until_ms.load(Ordering::Acquire)
    }

    pub fn beat(&self, partition: Partition, position: Offset, at_ms: i64) {
        let mut beats = self.beats.lock();
        let place = usize::from(partition);
        if beats.len() <= place {
            // The log has more partitions by now; they are alive when all of them are heard of.
            beats.resize(place + 1, None);
        }
        let latest_ms = beats[place].map_or(at_ms, |(_, before_ms)| before_ms.max(at_ms));
        beats[place] = Some((position, latest_ms));
        let oldest_ms = beats.iter().map(|beat| beat.map_or(i64::MIN, |(_, at_ms)| at_ms)).min();
        let until_ms = oldest_ms.unwrap_or(i64::MIN);
        // Nothing is added to "never".
        let until_ms = if until_ms == i64::MIN { until_ms } else { until_ms + SILENCE_MAX_MS };
        self.until_ms.store(until_ms, Ordering::Release);
    }

    /// How far each partition was told, when all of them were.
    pub fn positions(&self) -> Option<Vec<Offset>> {
        self.beats.lock().iter().map(|beat| beat.map(|(position, _)| position)).collect()
    }

    pub fn position(&self, partition: Partition) -> Option<Offset> {
        self.beats.lock().get(usize::from(partition)).copied().flatten().map(|(position, _)| position)
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
        assert!(!pulse.has_stopped(1_000 + SILENCE_MAX_MS) && pulse.has_stopped(1_001 + SILENCE_MAX_MS));
        pulse.beat(0, 11, 9_000);
        assert!(!pulse.has_stopped(3_000 + SILENCE_MAX_MS) && pulse.has_stopped(3_001 + SILENCE_MAX_MS));
        assert_eq!((pulse.position(0), pulse.position(1), pulse.position(2)), (Some(11), Some(20), None));
        assert_eq!(pulse.positions(), Some(vec![11, 20]));
        pulse.beat(3, 1, 9_000);
        assert!(pulse.has_stopped(9_000) && pulse.positions().is_none(), "the third one has not been heard of");
    }
}
