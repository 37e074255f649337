//! Where the consumers of a log are: what trimming has to keep, and what operators see.

use parking_lot::Mutex;
use raingauge_ports::consumers::{ConsumerStore, Error, Name};
use raingauge_ports::log::{EventLog, Needs, Offset, Partition};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The consumers that the log is kept for. Every consumer has to be in it before the log is trimmed
/// for the first time.
#[derive(Debug, Default)]
pub struct Registry {
    places: Mutex<Vec<Arc<Place>>>,
}

/// For how long a consumer keeps the log from being trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// For as long as it takes: counting.
    Always,
    /// As far as the log's bound for consumers that lag allows.
    WithinBound,
}

/// Where one consumer is in one partition of the log.
#[derive(Debug)]
pub struct Place {
    name: Name,
    partition: Partition,
    hold: Hold,
    /// What lies before this is included in what the consumer made durable.
    position: AtomicU64,
    /// It reads history behind its position, from here on; [`Offset::MAX`] when it reads none.
    history_from: AtomicU64,
    /// Whether the log has been trimmed beyond the position.
    is_overtaken: AtomicBool,
}

impl Place {
    /// Notes a position that is durable.
    pub fn set_position(&self, position: Offset) {
        self.position.store(position, Ordering::Release);
    }

    /// Keeps the log from an earlier offset on, for a consumer that reads history behind its
    /// position; `None` ends that.
    pub fn need_history(&self, from: Option<Offset>) {
        self.history_from.store(from.unwrap_or(Offset::MAX), Ordering::Release);
    }

    fn position(&self) -> Offset {
        self.position.load(Ordering::Acquire)
    }

    fn needed_from(&self) -> Offset {
        self.position().min(self.history_from.load(Ordering::Acquire))
    }

    /// Writes the metrics of the consumer, and logs when it is overtaken.
    fn report(&self, log: &dyn EventLog, now_ms: i64) {
        let position = self.position();
        let start = log.start();
        let lag = log.end().saturating_sub(position);
        let lost = start.saturating_sub(position);
        let waits_since = if lag > 0 { log.appended_ms(position.max(start)) } else { None };
        let lag_ms = waits_since.map_or(0, |appended_ms| (now_ms - appended_ms).max(0));

        let labels =
            [("consumer", self.name.to_string()), ("partition", self.partition.to_string())];
        metrics::gauge!("raingauge_consumer_position", &labels).set(position as f64);
        metrics::gauge!("raingauge_consumer_lag_events", &labels).set(lag as f64);
        metrics::gauge!("raingauge_consumer_lag_seconds", &labels).set(lag_ms as f64 / 1e3);
        metrics::gauge!("raingauge_consumer_overtaken_entries", &labels).set(lost as f64);

        if !self.is_overtaken.swap(lost > 0, Ordering::Relaxed) && lost > 0 {
            tracing::error!(
                consumer = %self.name,
                partition = self.partition,
                position,
                start,
                lost,
                "a consumer lagged too far behind the event log and was overtaken: the entries \
                 between its position and the log's start are lost to it"
            );
        }
    }
}

impl Registry {
    /// The consumers of a partition that committed before, whether they run in this process or not.
    pub fn of(store: &dyn ConsumerStore, partition: Partition) -> Result<Self, Error> {
        let registry = Self::default();
        for (name, position) in store.positions()? {
            registry.register(name, partition, Hold::WithinBound, position);
        }
        Ok(registry)
    }

    /// Registers a consumer, or puts one that is registered to this position.
    pub fn register(
        &self,
        name: Name,
        partition: Partition,
        hold: Hold,
        position: Offset,
    ) -> Arc<Place> {
        let mut places = self.places.lock();
        places.retain(|place| place.name != name || place.partition != partition);
        let place = Arc::new(Place {
            name,
            partition,
            hold,
            position: AtomicU64::new(position),
            history_from: AtomicU64::new(Offset::MAX),
            is_overtaken: AtomicBool::new(false),
        });
        places.push(Arc::clone(&place));
        place
    }

    /// What a partition of the log is needed for.
    pub fn needs(&self, partition: Partition) -> Needs {
        let mut needs = Needs { counting: Offset::MAX, others: Offset::MAX };
        for place in self.places.lock().iter().filter(|place| place.partition == partition) {
            let need = match place.hold {
                Hold::Always => &mut needs.counting,
                Hold::WithinBound => &mut needs.others,
            };
            *need = (*need).min(place.needed_from());
        }
        needs
    }

    /// Writes the metrics of all consumers of a partition, and logs which of them are overtaken.
    pub fn report(&self, log: &dyn EventLog, now_ms: i64) {
        let partition = log.partition();
        let places = self.places.lock().clone();
        let own = places.iter().filter(|place| place.partition == partition);
        own.for_each(|place| place.report(log, now_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_memory as memory;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn a_log_is_needed_from_the_least_of_the_consumers_places() {
        let store = memory::Consumers::default();
        store.commit(&name("idle"), 30, Vec::new()).unwrap();

        let registry = Registry::of(&store, 0).unwrap();
        assert_eq!(registry.needs(0), Needs { counting: Offset::MAX, others: 30 });
        assert_eq!(registry.needs(1), Needs::of_counting(Offset::MAX));

        let counting = registry.register(Name::counting(), 0, Hold::Always, 5);
        let busy = registry.register(name("busy"), 0, Hold::WithinBound, 40);
        registry.register(name("busy"), 1, Hold::WithinBound, 2);
        assert_eq!(registry.needs(0), Needs { counting: 5, others: 30 });
        counting.set_position(50);
        registry.register(name("idle"), 0, Hold::WithinBound, 60);
        assert_eq!(registry.needs(0), Needs { counting: 50, others: 40 });
        busy.need_history(Some(7));
        busy.set_position(70);
        assert_eq!(registry.needs(0), Needs { counting: 50, others: 7 });
        busy.need_history(None);
        assert_eq!(registry.needs(0), Needs { counting: 50, others: 60 });
    }
}
