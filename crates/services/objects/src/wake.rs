//! How the wait of a blocking command ends.

use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_resp::Failure;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What ends a wait.
#[derive(Debug)]
pub(crate) enum Wake {
    /// The command ran when one of its keys changed. Its reply waits for the group.
    Served {
        reply: Vec<Bytes>,
        stamp: u64,
    },
    /// It is over, as after the timeout.
    TimedOut,
    Refused(Failure),
}

/// Ends the wait of a blocking command of one connection. The sender is there while the command
/// waits, and only the first to take it ends the wait: the command of another connection that
/// serves it, the timeout, `CLIENT UNBLOCK` or `CLIENT KILL`.
#[derive(Clone, Default)]
pub struct Unblocker(pub(crate) Arc<Mutex<Option<oneshot::Sender<Wake>>>>);

impl Unblocker {
    /// Answers the command that waits as if its time were over, or with an error. Returns whether
    /// one waited.
    pub fn unblock(&self, with_error: bool) -> bool {
        let error = Failure::text("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        let wake = if with_error { Wake::Refused(error) } else { Wake::TimedOut };
        self.end(wake)
    }

    /// Ends the wait of a connection that is about to be closed. Its command pops nothing any more,
    /// and is not answered.
    pub fn abandon(&self) {
        self.0.lock().take();
    }

    /// Ends the wait. Returns whether it had not ended before.
    pub(crate) fn end(&self, wake: Wake) -> bool {
        let sender = self.0.lock().take();
        sender.is_some_and(|sender| sender.send(wake).is_ok())
    }
}
