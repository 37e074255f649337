//! A store between the service and the one in memory, which answers late, measures, or fails.

use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::objects::{
    Durability, Effect, EntryPage, Error, FoundHead, Group, Key, KeyCount, ObjectStore, Progress,
};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Semaphore;

pub(super) struct Between {
    store: Arc<memory::Objects>,
    /// One for each read of heads that is answered: with what was there when it was sent.
    pub answers: Semaphore,
    /// Reads of heads that were sent.
    pub reads: AtomicUsize,
    /// Reads of entries that were sent: of the first ones of an object, and of those behind them.
    pub first_reads: AtomicUsize,
    pub further_reads: AtomicUsize,
    /// One for each read of further entries that is answered.
    pub further_answers: Semaphore,
    /// Most bytes that one read of heads brought.
    pub read_bytes_max: AtomicUsize,
    /// Bytes of the largest group.
    pub group_bytes_max: AtomicUsize,
    /// Whether groups meet a defect.
    pub panics: AtomicBool,
    /// What groups are refused with.
    pub refusal: Mutex<Option<Error>>,
    /// Scans that succeed before one fails.
    pub sound_scans: AtomicUsize,
    /// After how many waits for durability nothing is refused any more.
    pub refused_waits: AtomicUsize,
}

impl Between {
    pub(super) fn new(store: &Arc<memory::Objects>) -> Self {
        Self {
            store: Arc::clone(store),
            answers: Semaphore::new(Semaphore::MAX_PERMITS),
            reads: AtomicUsize::default(),
            first_reads: AtomicUsize::default(),
            further_reads: AtomicUsize::default(),
            further_answers: Semaphore::new(Semaphore::MAX_PERMITS),
            read_bytes_max: AtomicUsize::default(),
            group_bytes_max: AtomicUsize::default(),
            panics: AtomicBool::default(),
            refusal: Mutex::default(),
            sound_scans: AtomicUsize::new(usize::MAX),
            refused_waits: AtomicUsize::new(usize::MAX),
        }
    }
}

impl ObjectStore for Between {
    fn heads(
        &self,
        keys: Vec<Key>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Option<Bytes>>, Error>> {
        Box::pin(async move {
            let len = Bytes::len;
            let heads = self.store.heads(keys, bytes_max).await;
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.answers.acquire().await.expect("open").forget();
            let brought = heads.as_ref().map_or(0, |heads| heads.iter().flatten().map(len).sum());
            self.read_bytes_max.fetch_max(brought, Ordering::SeqCst);
            heads
        })
    }

    fn entries(
        &self,
        database: u8,
        id: u64,
        after: Option<Bytes>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<EntryPage, Error>> {
        Box::pin(async move {
            if after.is_none() {
                self.first_reads.fetch_add(1, Ordering::SeqCst);
            } else {
                self.further_reads.fetch_add(1, Ordering::SeqCst);
                self.further_answers.acquire().await.expect("open").forget();
            }
            self.store.entries(database, id, after, bytes_max).await
        })
    }

    fn scan(
        &self,
        database: u8,
        after: Option<Bytes>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<FoundHead>, Error>> {
        if self.sound_scans.fetch_sub(1, Ordering::SeqCst) == 0 {
            return Box::pin(ready(Err(Error::Io("a bad sector".to_owned()))));
        }
        self.store.scan(database, after, len_max)
    }

    fn count(&self, database: u8) -> BoxFuture<'_, Result<KeyCount, Error>> {
        self.store.count(database)
    }

    fn due(&self, until_ms: i64, len_max: usize) -> BoxFuture<'_, Result<Vec<Key>, Error>> {
        self.store.due(until_ms, len_max)
    }

    fn submit(&self, group: Group) -> Result<u64, Error> {
        let bytes = group.effects.iter().map(Effect::len).sum();
        self.group_bytes_max.fetch_max(bytes, Ordering::SeqCst);
        assert!(!self.panics.load(Ordering::SeqCst), "a defect");
        if let Some(error) = self.refusal.lock().clone() {
            return Err(error);
        }
        self.store.submit(group)
    }

    fn durable(&self, stamp: u64, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        if self.refused_waits.fetch_sub(1, Ordering::SeqCst) == 1 {
            *self.refusal.lock() = None;
        }
        self.store.durable(stamp, durability)
    }

    fn progress(&self) -> &Progress {
        self.store.progress()
    }
}
