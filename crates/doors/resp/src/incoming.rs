//! Bytes that have arrived and wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raingauge_resp::Failure;

use crate::client::Client;
use crate::limits::RESP_INPUT_ALWAYS;

/// What a connection has received and not yet worked off: an unfinished command, or commands that
/// take their time and what came behind them.
pub(crate) struct Incoming {
    client: Arc<Client>,
    len: usize,
    /// Bytes of all connections.
    total: Arc<AtomicUsize>,
    total_max: usize,
}

impl Incoming {
    pub(crate) fn new(client: Arc<Client>, total: Arc<AtomicUsize>, total_max: usize) -> Incoming {
        Incoming { client, len: 0, total, total_max }
    }

    /// Takes note of how many bytes wait now.
    pub(crate) fn set(&mut self, len: usize) {
        if len >= self.len {
            self.total.fetch_add(len - self.len, Ordering::Relaxed);
        } else {
            self.total.fetch_sub(self.len - len, Ordering::Relaxed);
        }
        self.len = len;
        self.client.numbers.unread_bytes.store(len, Ordering::Relaxed);
    }

    /// Refuses an unfinished command of which too much has arrived. If it waited for others to
    /// finish, it might wait for ever.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if !self.is_too_much() {
            return Ok(());
        }

        Err(Failure::text(
            "ERR too much of unfinished commands waits on all connections: send smaller values, \
             or fewer at once",
        ))
    }

    /// Whether this connection has more than its share while too much waits on all of them.
    pub(crate) fn is_too_much(&self) -> bool {
        self.len > RESP_INPUT_ALWAYS && self.total.load(Ordering::Relaxed) > self.total_max
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.set(0);
    }
}
