//! Rebuilds the window before a position from stored chunks, reading ahead while it inserts them.

use crate::reader::Reader;
use crate::shared::Shared;
use raingauge_ports::cluster::Error;
use raingauge_ports::dedupe::{ChunkStore, chunk_of};
use raingauge_ports::log::{Offset, Partition};
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Chunks in one read; with those being inserted, up to 25 MB.
const AT_ONCE: u64 = 16;

type Answer = Result<Vec<Option<Vec<u8>>>, Error>;

pub struct Restoring {
    store: Arc<dyn ChunkStore>,
    partition: Partition,
    rules: u64,
    /// The chunks that were not requested yet.
    rest: Range<u64>,
    /// The pending answer.
    coming: Option<JoinHandle<Answer>>,
    restored: u64,
}

impl Restoring {
    /// Begins with the chunk of this number; `None` if no chunks are stored.
    pub fn begin(
        shared: &Shared,
        partition: i32,
        reader: &mut Reader,
        number: u64,
    ) -> Option<Self> {
        let store = Arc::clone(shared.chunks()?);
        let until = chunk_of(shared.options.base() + reader.answers_from() as Offset);
        let rules = reader.recorder().rules();
        let partition = partition as Partition;
        let mut restoring =
            Self { store, partition, rules, rest: number..until, coming: None, restored: 0 };
        // Usually all of the chunks exist, or none, so one is requested first.
        restoring.ask(1);
        Some(restoring)
    }

    /// Number of chunks inserted.
    pub fn restored(&self) -> u64 {
        self.restored
    }

    fn ask(&mut self, len: u64) {
        let end = self.rest.end.min(self.rest.start + len);
        let numbers = std::mem::replace(&mut self.rest.start, end)..end;
        if numbers.is_empty() {
            return;
        }
        let store = Arc::clone(&self.store);
        let partition = self.partition;
        let rules = self.rules;
        let read = move || store.get(partition, rules, numbers);
        self.coming = std::thread::Builder::new().name("window-chunks".to_owned()).spawn(read).ok();
    }

    /// Inserts the next chunks. Returns whether there may be more; the first missing one ends it.
    pub fn step(&mut self, reader: &mut Reader) -> bool {
        let Some(coming) = self.coming.take() else {
            return false;
        };
        if self.restored > 0 {
            self.ask(AT_ONCE);
        }

        let chunks = match coming.join() {
            Ok(Ok(chunks)) => chunks,
            Ok(Err(error)) => {
                tracing::warn!(partition = self.partition, %error, "the stored window cannot be read; reading the log");
                return false;
            }
            Err(_) => return false,
        };

        for chunk in chunks {
            if !chunk.is_some_and(|bytes| reader.restore(&bytes)) {
                return false;
            }
            self.restored += 1;
        }

        if self.coming.is_none() {
            self.ask(AT_ONCE);
        }
        self.coming.is_some()
    }
}
