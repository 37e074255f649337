//! Removes the rows of versions that answer nothing, on a thread of its own.

use super::{TableError, failed, keys};
use crate::store::Store;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rows that one batch removes.
const ROWS_OF_BATCH: usize = 2_000;
/// How long the remover waits for readers of a version, and after an error.
const PAUSE: Duration = Duration::from_millis(20);

/// What readers of a version hold.
type Held = Arc<dyn Any + Send + Sync>;

pub struct Remover {
    shared: Arc<Shared>,
    versions: Mutex<Option<Sender<(Held, u64)>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    store: Arc<Store>,
    is_stopping: AtomicBool,
}

impl Remover {
    pub fn start(store: Arc<Store>) -> Self {
        let shared = Arc::new(Shared { store, is_stopping: AtomicBool::new(false) });
        let (sender, versions) = channel();
        let own = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("table-remover".to_owned()).spawn(move || {
                own.run(&versions);
            });

        // Without the thread, rows stay until the next start.
        let thread = thread.inspect_err(|error| {
            tracing::error!(%error, "the rows of replaced tables are not removed");
        });
        Self { shared, versions: Mutex::new(Some(sender)), thread: Mutex::new(thread.ok()) }
    }

    /// Removes the rows of a version as soon as nobody else holds it.
    pub fn remove(&self, held: Held, version: u64) {
        if let Some(versions) = &*self.versions.lock() {
            // An error means that the thread could not start, which was logged.
            let _ = versions.send((held, version));
        }
    }
}

impl Drop for Remover {
    /// Waits for the batch in progress.
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.versions.lock().take();
        if let Some(thread) = self.thread.lock().take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the thread that removes replaced tables has panicked");
            }
        }
    }
}

impl Shared {
    fn run(&self, versions: &Receiver<(Held, u64)>) {
        while let Ok((held, version)) = versions.recv() {
            while Arc::strong_count(&held) > 1 && !self.is_stopping() {
                std::thread::park_timeout(PAUSE);
            }
            while !self.is_stopping() {
                match self.remove_some(version) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => {
                        // The next start tries again.
                        tracing::error!(version, %error, "a replaced table was not removed");
                        break;
                    }
                }
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Removes some rows of a version, and its number with the last ones. Returns whether that was
    /// all.
    fn remove_some(&self, version: u64) -> Result<bool, TableError> {
        let keyspace = &self.store.keyspace;
        let mut batch = self.store.batch();
        let mut removed = 0;
        for guard in keyspace.prefix(keys::rows(version)).take(ROWS_OF_BATCH) {
            batch.remove(keyspace, guard.key().map_err(failed)?);
            removed += 1;
        }

        let is_all = removed < ROWS_OF_BATCH;
        if is_all {
            batch.remove(keyspace, keys::obsolete(version));
        }
        self.store.commit(batch)?;
        Ok(is_all)
    }
}
