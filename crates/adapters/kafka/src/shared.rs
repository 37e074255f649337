//! What the logs of a topic, its sink and its group share.

use crate::context::Connection;
use crate::ends::{Ends, Watching};
use crate::error::Error;
use crate::options::Options;
use crate::producer::Producer;
use parking_lot::Mutex;
use raingauge_ports::dedupe::ChunkStore;
use raingauge_ports::log::Partition;
use std::collections::HashMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};

pub struct Shared {
    pub options: Arc<Options>,
    pub connection: Arc<Connection>,
    pub watching: Arc<Watching>,
    pub producer: Mutex<Option<Arc<Producer>>>,
    pub chunks: OnceLock<Arc<dyn ChunkStore>>,
    /// For each partition that this process counted, the offset before which dead letters have been
    /// sent.
    pub dead_lettered: Mutex<HashMap<Partition, Arc<AtomicI64>>>,
}

impl Shared {
    pub fn ends(&self) -> &Ends {
        &self.watching.ends
    }

    /// Where dedupe windows are stored; `None` if they are not.
    pub fn chunks(&self) -> Option<&Arc<dyn ChunkStore>> {
        self.chunks.get()
    }

    /// The producer, created when first needed.
    pub fn producer(&self) -> Result<Arc<Producer>, Error> {
        let mut producer = self.producer.lock();
        if let Some(producer) = &*producer {
            return Ok(Arc::clone(producer));
        }
        let made = Arc::new(Producer::new(&self.options, Arc::clone(&self.connection))?);
        Ok(Arc::clone(producer.insert(made)))
    }
}
