//! The bound of what waits for a confirmation.

use crate::producer::{Outcome, RETRY_AFTER, Ticket};
use raingauge_ports::log;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;

/// Room for the bytes of unconfirmed batches.
pub struct Room {
    bytes_max: usize,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Room {
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, waiting_bytes: Arc::default() }
    }

    /// Reserves room for a batch unless too many bytes wait already. A batch larger than the whole
    /// limit is sent alone.
    pub fn ticket_for(
        &self,
        bytes: usize,
    ) -> Result<(Arc<Ticket>, oneshot::Receiver<Outcome>), log::Error> {
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel);
        let waiting = Arc::clone(&self.waiting_bytes);
        let (sender, receiver) = oneshot::channel();
        let ticket = Ticket::new(move |outcome| {
            waiting.fetch_sub(bytes, Ordering::AcqRel);
            // The request may have been abandoned.
            drop(sender.send(outcome));
        });
        if before > 0 && before + bytes > self.bytes_max {
            return Err(log::Error::Busy { retry_after: RETRY_AFTER });
        }
        Ok((ticket, receiver))
    }
}
