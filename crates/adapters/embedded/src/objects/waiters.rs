//! Callers that wait until a stamp is reached.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tokio::sync::oneshot;

/// Those who wait for one kind of progress, by stamp.
#[derive(Default)]
pub struct Waiters(Mutex<BinaryHeap<Reverse<Waiting>>>);

struct Waiting {
    stamp: u64,
    done: oneshot::Sender<()>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.stamp.cmp(&other.stamp)
    }
}

impl Waiters {
    /// Answers when the stamp is reached, or with an error when the store is closed.
    pub fn register(&self, stamp: u64) -> oneshot::Receiver<()> {
        let (done, receiver) = oneshot::channel();
        self.0.lock().push(Reverse(Waiting { stamp, done }));
        receiver
    }

    /// Answers those who wait for a stamp up to this one, and returns how many they are.
    pub fn reach(&self, stamp: u64) -> usize {
        let mut waiting = self.0.lock();
        let before = waiting.len();
        while let Some(Reverse(first)) = waiting.peek()
            && first.stamp <= stamp
        {
            if let Some(Reverse(first)) = waiting.pop() {
                // The caller may be gone.
                let _ = first.done.send(());
            }
        }
        before - waiting.len()
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Disappoints all of them.
    pub fn give_up(&self) {
        self.0.lock().clear();
    }
}
