//! One consumer of one partition of the log.

use crate::registry::{Hold, Place, Registry};
use raingauge_ports::consumers::{self, Change, ConsumerStore, KEY_LEN_MAX, Name};
use raingauge_ports::log::{self, Block, EventLog, Offset, Partition};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Store(#[from] consumers::Error),
    #[error(transparent)]
    Overtaken(Overtaken),
    #[error(
        "the consumer {consumer} includes the event log up to offset {position}, but the log ends \
         at {end}: restore both from the same backup"
    )]
    LogTooShort { consumer: Name, position: Offset, end: Offset },
}

/// The entries in `[position, start)`, which the log dropped before the consumer read them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "partition {partition} of the event log is read by the consumer {consumer} up to offset \
     {position}, and begins at offset {start}: what lay between has been dropped, and is lost"
)]
pub struct Overtaken {
    pub consumer: Name,
    pub partition: Partition,
    /// What lies before this is included.
    pub position: Offset,
    /// The log begins here.
    pub start: Offset,
}

impl Overtaken {
    /// The number of entries that are lost.
    pub fn entries(&self) -> u64 {
        self.start - self.position
    }

    /// Lets the consumer go on at the log's start. It must not be running.
    pub fn skip(&self, store: &dyn ConsumerStore) -> Result<(), consumers::Error> {
        store.commit(&self.consumer, self.start, Vec::new())
    }
}

/// A consumer. Its methods block the thread, which is its own.
pub struct Consumer {
    name: Name,
    log: Arc<dyn EventLog>,
    store: Arc<dyn ConsumerStore>,
    place: Arc<Place>,
    position: Offset,
}

impl Consumer {
    /// Goes on where the consumer committed last. One that never did begins at `first`, which is
    /// made durable at once, so that the log is kept for it from now on.
    pub fn open(
        name: Name,
        log: Arc<dyn EventLog>,
        store: Arc<dyn ConsumerStore>,
        registry: &Registry,
        first: Offset,
    ) -> Result<Self, Error> {
        let stored = store.positions()?.into_iter().find(|(stored, _)| *stored == name);
        let position = match stored {
            Some((_, position)) => position,
            None => {
                // A removal that was cut short leaves records without a position.
                store.remove(&name)?;
                store.commit(&name, first, Vec::new())?;
                first
            }
        };

        let end = log.end();
        if position > end {
            return Err(Error::LogTooShort { consumer: name, position, end });
        }

        let partition = log.partition();
        let place = registry.register(name.clone(), partition, Hold::WithinBound, position);
        Ok(Self { name, log, store, place, position })
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What lies before this is committed.
    pub fn position(&self) -> Offset {
        self.position
    }

    /// Where the consumer keeps its records.
    pub fn records(&self) -> &dyn ConsumerStore {
        &*self.store
    }

    /// Reads blocks from the one that holds `from` on, at least one and about `bytes_max` bytes.
    /// Waits for the first one for at most `timeout`, and returns none when none came. The entries
    /// behind the position may be read as often as the caller likes.
    pub fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        timeout: Duration,
    ) -> Result<Vec<Block>, Error> {
        assert!(from >= self.position, "what is committed is not read again");
        let blocks = self.read_now(from, bytes_max)?;
        if !blocks.is_empty() || timeout.is_zero() || self.log.wait_beyond(from, timeout) <= from {
            return Ok(blocks);
        }
        self.read_now(from, bytes_max)
    }

    fn read_now(&self, from: Offset, bytes_max: usize) -> Result<Vec<Block>, Error> {
        self.log.read(from, bytes_max).map_err(|error| match error {
            log::Error::Trimmed { start, .. } => Error::Overtaken(Overtaken {
                consumer: self.name.clone(),
                partition: self.log.partition(),
                position: self.position,
                start,
            }),
            error => error.into(),
        })
    }

    /// Makes what the consumer made of the entries before `position` durable, and the position with
    /// it.
    pub fn commit(&mut self, position: Offset, changes: Vec<Change>) -> Result<(), Error> {
        assert!(position >= self.position, "a consumer does not go back");
        assert!(changes.iter().all(|(key, _)| key.len() <= KEY_LEN_MAX), "a key is too long");
        self.store.commit(&self.name, position, changes)?;
        self.position = position;
        self.place.set_position(position);
        Ok(())
    }

    /// Keeps the log from an earlier offset on while the consumer reads history behind its
    /// position; `None` ends that.
    pub fn need_history(&self, from: Option<Offset>) {
        self.place.need_history(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_memory as memory;
    use raingauge_ports::contract::log::batch;
    use raingauge_ports::log::{EventSink, Needs};

    const LONG: Duration = Duration::from_secs(60);

    struct World {
        log: Arc<memory::Log>,
        store: Arc<memory::Consumers>,
    }

    impl World {
        async fn new(ids: &[&str]) -> Self {
            let world = Self { log: Arc::default(), store: Arc::default() };
            for id in ids {
                world.log.append(batch(&[*id])).await.unwrap();
            }
            world
        }

        /// Opens the consumer `rain`, as a process does that starts.
        fn open(&self, first: Offset) -> Result<(Consumer, Registry), Error> {
            let registry = Registry::of(&*self.store, 0)?;
            let log = Arc::clone(&self.log) as Arc<dyn EventLog>;
            let store = Arc::clone(&self.store) as Arc<dyn ConsumerStore>;
            let consumer = Consumer::open(rain(), log, store, &registry, first)?;
            Ok((consumer, registry))
        }
    }

    fn rain() -> Name {
        Name::new("rain").unwrap()
    }

    #[tokio::test]
    async fn a_consumer_goes_on_where_it_committed_last() {
        let world = World::new(&["a", "b", "c"]).await;
        let (mut consumer, registry) = world.open(1).unwrap();
        assert_eq!(registry.needs(0), Needs { counting: Offset::MAX, others: 1 });

        let blocks = consumer.read(1, 1, LONG).unwrap();
        assert_eq!((blocks[0].base, blocks.len()), (1, 1));

        let change = (b"seen".to_vec(), Some(b"b".to_vec()));
        consumer.commit(2, vec![change]).unwrap();
        assert_eq!(registry.needs(0).others, 2);

        let (consumer, registry) = world.open(0).unwrap();
        assert_eq!((consumer.position(), registry.needs(0).others), (2, 2));
        assert_eq!(consumer.records().get(&rain(), b"seen").unwrap(), Some(b"b".to_vec()));
        consumer.need_history(Some(0));
        assert_eq!(registry.needs(0).others, 0);
        consumer.need_history(None);
        assert_eq!(registry.needs(0).others, 2);
    }

    #[tokio::test]
    async fn a_new_consumer_is_known_to_the_next_process_before_it_reads_anything() {
        let world = World::new(&["a", "b"]).await;
        drop(world.open(1).unwrap());
        assert_eq!(Registry::of(&*world.store, 0).unwrap().needs(0).others, 1);
        assert_eq!(world.open(2).unwrap().0.position(), 1);
    }

    #[tokio::test]
    async fn reading_waits_for_what_is_appended() {
        let world = World::new(&["a"]).await;
        let (consumer, _) = world.open(1).unwrap();
        assert!(consumer.read(1, 100, Duration::ZERO).unwrap().is_empty());
        let reading = std::thread::spawn(move || consumer.read(1, 100, LONG).unwrap());
        world.log.append(batch(&["b"])).await.unwrap();
        assert_eq!(reading.join().unwrap()[0].base, 1);
    }

    #[tokio::test]
    async fn a_log_that_ends_before_the_position_is_refused() {
        let world = World::new(&["a"]).await;
        world.store.commit(&rain(), 2, Vec::new()).unwrap();
        let opened = world.open(0).map(|(consumer, _)| consumer.position());
        assert!(matches!(opened, Err(Error::LogTooShort { position: 2, end: 1, .. })));
    }
}
