//! How long a request may take.

use std::time::Duration;
use tokio::time::Instant;

/// Time that is left to tell what became of events that were waited for.
const ANSWERING_MAX: Duration = Duration::from_secs(1);

/// When a request is answered with `timeout`.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    pub at: Instant,
    timeout: Duration,
}

impl Deadline {
    /// Of a request that begins now.
    pub fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// The end of a wait for events to be counted: the answer still has to tell what became of
    /// them.
    pub fn for_counting(self) -> Instant {
        self.at - ANSWERING_MAX.min(self.timeout / 4)
    }
}
