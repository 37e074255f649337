//! Rebuilding the window before a place from stored chunks, which are read ahead while others are
//! put in.

use crate::reader::Reader;
use crate::topic::Shared;
use raingauge_ports::cluster::Error;
use raingauge_ports::dedupe::{ChunkStore, chunk_of};
use raingauge_ports::log::{Offset, Partition};
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Chunks that are read at once: with those that are being put in, up to 25 MB.
const AT_ONCE: u64 = 16;

type Answer = Result<Vec<Option<Vec<u8>>>, Error>;

pub struct Restoring {
    store: Arc<dyn ChunkStore>,
    partition: Partition,
    rules: u64,
    /// The chunks that were not asked for yet.
    rest: Range<u64>,
    /// The answer that is waited for.
    coming: Option<JoinHandle<Answer>>,
    restored: u64,
}

impl Restoring {
    /// Begins with the chunk of this number, where chunks are stored at all.
    pub fn begin(
        shared: &Shared,
        partition: i32,
        reader: &mut Reader,
        number: u64,
    ) -> Option<Self> {
        let store = Arc::clone(shared.chunks()?);
        let until = chunk_of(shared.options.base() + reader.answers_from() as Offset);
        let (rules, partition) = (reader.recorder().rules(), partition as Partition);
        let mut restoring =
            Self { store, partition, rules, rest: number..until, coming: None, restored: 0 };
        // Most likely it is there, and all behind it, or it is not, and nor are those.
        restoring.ask(1);
        Some(restoring)
    }

    /// Chunks that were put in.
    pub fn restored(&self) -> u64 {
        self.restored
    }

    fn ask(&mut self, len: u64) {
        let end = self.rest.end.min(self.rest.start + len);
        let numbers = std::mem::replace(&mut self.rest.start, end)..end;
        if numbers.is_empty() {
            return;
        }
        let (store, partition, rules) = (Arc::clone(&self.store), self.partition, self.rules);
        let read = move || store.get(partition, rules, numbers);
        self.coming = std::thread::Builder::new().name("window-chunks".to_owned()).spawn(read).ok();
    }

    /// Puts in the next chunks. Answers whether there may be more: the first one that is missing
    /// ends it.
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
