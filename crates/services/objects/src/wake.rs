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

/// Ends the waits of the blocking commands of one connection.
#[derive(Clone, Default)]
pub struct Unblocker(pub(crate) Arc<Mutex<Waking>>);

/// How the wait of a connection can be ended. The sender is there while a command waits, and only
/// the first to take it ends the wait: the command of another connection that serves it, the
/// timeout, `CLIENT UNBLOCK` or `CLIENT KILL`.
#[derive(Default)]
pub(crate) struct Waking {
    sender: Option<oneshot::Sender<Wake>>,
    /// The connection is about to be closed: no command of it waits any more.
    is_abandoned: bool,
}

impl Waking {
    /// A command waits from now on, or again.
    pub fn put(&mut self, sender: oneshot::Sender<Wake>) {
        if !self.is_abandoned {
            self.sender = Some(sender);
        }
    }

    pub fn take(&mut self) -> Option<oneshot::Sender<Wake>> {
        self.sender.take()
    }

    pub fn waits(&self) -> bool {
        self.sender.is_some()
    }
}

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
        *self.0.lock() = Waking { sender: None, is_abandoned: true };
    }

    /// Ends the wait. Returns whether it had not ended before.
    pub(crate) fn end(&self, wake: Wake) -> bool {
        let sender = self.0.lock().take();
        sender.is_some_and(|sender| sender.send(wake).is_ok())
    }
}
