//! Stores the chunks of a dedupe window in the background.

use parking_lot::Mutex;
use raingauge_ports::dedupe::{Chunk, ChunkStore};
use raingauge_ports::log::Partition;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of chunks that wait to be stored: some MB.
const WAITING_MAX: usize = 16;
/// How long a reader waits when the queue is full. The chunk is then dropped, and a successor reads
/// its messages instead.
const WAIT_MAX: Duration = Duration::from_secs(1);
const WAIT_STEP: Duration = Duration::from_millis(10);
/// How long storing a chunk is retried. The pause between two attempts doubles up to the maximum.
const TRY_MAX: Duration = Duration::from_secs(60);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A thread that stores chunks in order.
pub struct Keeper {
    partition: Partition,
    chunks: Mutex<SyncSender<Chunk>>,
    is_left: Arc<AtomicBool>,
}

impl Keeper {
    pub fn start(store: Arc<dyn ChunkStore>, partition: Partition) -> std::io::Result<Self> {
        let (sender, chunks) = sync_channel(WAITING_MAX);
        let is_left = Arc::<AtomicBool>::default();
        let left = Arc::clone(&is_left);
        let keep = move || store_all(&*store, partition, &chunks, &left);
        thread::Builder::new().name("window-keeper".to_owned()).spawn(keep)?;
        Ok(Self { partition, chunks: Mutex::new(sender), is_left })
    }

    /// Enqueues a chunk. Delays counting by at most [`WAIT_MAX`].
    pub fn keep(&self, mut chunk: Chunk) {
        let deadline = Instant::now() + WAIT_MAX;
        let chunks = self.chunks.lock();
        while let Err(TrySendError::Full(back)) = chunks.try_send(chunk) {
            if Instant::now() >= deadline {
                return dropped(self.partition, back.number, "too many chunks wait to be stored");
            }
            chunk = back;
            thread::sleep(WAIT_STEP);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.is_left.store(true, Ordering::Release);
    }
}

/// Ends when the keeper has been dropped and each chunk has been stored or tried once.
fn store_all(
    store: &dyn ChunkStore,
    partition: Partition,
    chunks: &Receiver<Chunk>,
    is_left: &AtomicBool,
) {
    for chunk in chunks {
        let deadline = Instant::now() + TRY_MAX;
        let mut pause = PAUSE_MIN;
        while let Err(error) = store.put(partition, &chunk) {
            if is_left.load(Ordering::Acquire) || Instant::now() >= deadline {
                dropped(partition, chunk.number, &error.to_string());
                break;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

fn dropped(partition: Partition, chunk: u64, reason: &str) {
    metrics::counter!("raingauge_dedupe_chunks_dropped_total").increment(1);
    tracing::warn!(
        partition,
        chunk,
        reason,
        "a part of the dedupe window could not be stored: a successor will read it from the log"
    );
}
