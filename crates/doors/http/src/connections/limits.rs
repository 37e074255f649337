//! Time limits of connections.

use std::time::Duration;

/// Time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first byte of a request to the end of its head; for the first request, from the
    /// beginning of the connection.
    pub head: Duration,
    /// Longest time without a request.
    pub idle: Duration,
    /// Longest time without progress in sending.
    pub write: Duration,
}

impl Limits {
    pub fn shortest(&self) -> Duration {
        self.head.min(self.idle).min(self.write)
    }
}
