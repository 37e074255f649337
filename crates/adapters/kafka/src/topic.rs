//! The topic that events are counted from.

use crate::context::Connection;
use crate::ends::{self, Ends};
use crate::error::Error;
use crate::log::Log;
use crate::migrate;
use crate::options::Options;
use crate::producer::Producer;
use crate::shared::Shared;
use parking_lot::Mutex;
use raingauge_ports::dedupe::ChunkStore;
use raingauge_ports::log::Partition;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};

/// A topic that has been found suitable for counting. Cheap to clone.
#[derive(Clone)]
pub struct Topic(Arc<Shared>);

impl Topic {
    /// Finds the topic and checks whether it is suitable for counting.
    pub async fn open(options: Options) -> Result<Self, Error> {
        let connection = Connection::new(options.place());
        let asked = options.clone();
        let opening = Arc::clone(&connection);
        let watching = tokio::task::spawn_blocking(move || Ends::watch(&asked, opening))
            .await
            .map_err(|_| {
            Error::Settings("the topic could not be opened: raingauge is stopping".to_owned())
        })??;

        migrate::check(&options).await?;
        Ok(Self(Arc::new(Shared {
            options: Arc::new(options),
            connection,
            watching: Arc::new(watching),
            producer: Mutex::default(),
            chunks: OnceLock::new(),
            dead_lettered: Mutex::default(),
        })))
    }

    /// Stores the dedupe windows of counted partitions and restores them from there, so a successor
    /// reads only their end from the topic. Only the first call has an effect.
    pub fn keep_windows_in(&self, store: Arc<dyn ChunkStore>) {
        let _ = self.0.chunks.set(store);
    }

    /// The same topic for a reader that recognizes repetitions itself: its logs keep no dedupe
    /// window, so they return most repetitions as events, and begin anywhere at once.
    pub fn without_window(&self) -> Self {
        let options = Options { dedupe_window_ms: 0, ..self.options().clone() };
        Self(Arc::new(Shared {
            options: Arc::new(options),
            connection: self.connection(),
            watching: Arc::clone(&self.0.watching),
            producer: Mutex::default(),
            chunks: OnceLock::new(),
            dead_lettered: Mutex::default(),
        }))
    }

    /// The id that the brokers gave the topic; `None` if they know no ids.
    pub fn id(&self) -> Option<u128> {
        self.0.ends().topic_id()
    }

    /// Stops all reading, because the topic is not the one that was counted.
    pub fn refuse(&self) {
        self.0.ends().refuse(ends::recreated(&self.options().topic));
    }

    pub fn partitions(&self) -> Partition {
        self.0.ends().partitions()
    }

    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Opens one partition for counting; uncountable messages go to the dead-letter topic. Blocks
    /// the thread.
    pub fn counting_log(&self, partition: Partition) -> Result<Log, Error> {
        let dead_lettered = Arc::clone(
            self.0
                .dead_lettered
                .lock()
                .entry(partition)
                .or_insert_with(|| AtomicI64::new(-1).into()),
        );
        self.open_log(partition, Some(dead_lettered))
    }

    /// Opens one partition for reading only. Blocks the thread.
    pub fn log(&self, partition: Partition) -> Result<Log, Error> {
        self.open_log(partition, None)
    }

    fn open_log(
        &self,
        partition: Partition,
        dead_lettered: Option<Arc<AtomicI64>>,
    ) -> Result<Log, Error> {
        if partition >= self.partitions() {
            return Err(Error::NoPartition { topic: self.options().topic.clone(), partition });
        }
        let span = self.0.ends().span(partition).map_err(|error| Error::Unreachable {
            brokers: self.options().place(),
            reason: error.to_string(),
        })?;
        Ok(Log::new(Arc::clone(&self.0), partition, span, dead_lettered)?)
    }

    /// Returns once a topic with this name exists.
    pub(crate) async fn look_for(&self, name: &str) -> Result<(), Error> {
        let options = Options { topic: name.to_owned(), ..self.options().clone() };
        ends::find(&options, self.connection()).await.map(drop)
    }

    pub(crate) fn name(&self) -> Arc<str> {
        self.options().topic.as_str().into()
    }

    pub(crate) fn producer(&self) -> Result<Arc<Producer>, Error> {
        self.0.producer()
    }

    pub(crate) fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.0.connection)
    }
}
