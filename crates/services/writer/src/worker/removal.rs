//! Removes retired generations beside counting, on a thread of its own that may wait for the store.

use parking_lot::{Condvar, Mutex};
use raingauge_ports::buckets::{BucketRetention, Error, Generation};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Tiles, or keys, that are removed in one step.
const STEP: usize = 2_000;
/// The pause after a failure of the store, and the pause between two steps: counting goes first.
const PAUSE: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_millis(20);

/// The generations to remove, and those that are removed.
#[derive(Default)]
pub struct Removals {
    inner: Mutex<Inner>,
    wanted: Condvar,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<(Generation, Option<Vec<u8>>)>,
    /// Removed generations that have not been reported to the log yet.
    removed: Vec<Generation>,
    /// Generations that are gone, although the log does not say so yet.
    done: Vec<Generation>,
    has_ended: bool,
}

impl Removals {
    /// Queues new retired generations, and forgets those that are no longer retired.
    pub fn want(&self, retired: &[Generation]) {
        let mut inner = self.inner.lock();
        inner.done.retain(|generation| retired.contains(generation));
        for generation in retired {
            let is_known = inner.done.contains(generation)
                || inner.waiting.iter().any(|(waiting, _)| waiting == generation);
            if !is_known {
                inner.waiting.push_back((*generation, None));
            }
        }
        self.wanted.notify_all();
    }

    /// Returns the generations removed since the last call. Their removal is durable after the next
    /// commit.
    pub fn take_removed(&self) -> Vec<Generation> {
        std::mem::take(&mut self.inner.lock().removed)
    }

    /// Removes a little. Returns whether there was anything.
    pub fn step(&self, store: &dyn BucketRetention) -> Result<bool, Error> {
        let Some((generation, mut cursor)) = self.inner.lock().waiting.front().cloned() else {
            return Ok(false);
        };
        store.remove(generation, &mut cursor, STEP)?;

        let mut inner = self.inner.lock();
        if cursor.is_some() {
            if let Some(front) = inner.waiting.front_mut() {
                front.1 = cursor;
            }
        } else {
            inner.waiting.pop_front();
            inner.removed.push(generation);
            inner.done.push(generation);
        }

        Ok(true)
    }

    /// Removes on a thread of its own, until [`Removals::end`].
    pub fn start(self: &Arc<Self>, store: Arc<dyn BucketRetention>) -> Result<(), std::io::Error> {
        let removals = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("remover".to_owned())
            .spawn(move || run(&removals, &*store))
            .map(drop)
    }

    pub fn end(&self) {
        self.inner.lock().has_ended = true;
        self.wanted.notify_all();
    }

    /// Waits until there is something to remove, for `pause` at most. Returns whether removal
    /// continues at all.
    fn wait(&self, pause: Option<Duration>) -> bool {
        let mut inner = self.inner.lock();
        if let Some(pause) = pause.filter(|_| !inner.has_ended) {
            self.wanted.wait_for(&mut inner, pause);
        }
        while inner.waiting.is_empty() && !inner.has_ended {
            self.wanted.wait(&mut inner);
        }
        !inner.has_ended
    }
}

fn run(removals: &Weak<Removals>, store: &dyn BucketRetention) {
    let mut pause = None;
    while let Some(removals) = removals.upgrade() {
        if !removals.wait(pause) {
            return;
        }
        pause = match removals.step(store) {
            Ok(_) => Some(REST),
            Err(error) => {
                tracing::warn!(%error, "replaced counts are removed later");
                Some(PAUSE)
            }
        };
    }
}
