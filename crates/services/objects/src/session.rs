//! What the keyspace remembers of a connection.

use crate::keyspace::Watch;
use crate::objects::Objects;
use crate::wake::Unblocker;
use bytes::Bytes;
use indexmap::IndexSet;
use raingauge_resp::{Drain, Gate};
use std::sync::Arc;

/// The state of one connection. Dropping it ends its watches.
pub struct Session {
    objects: Arc<Objects>,
    /// What the caller may do, and which keys are served here; the door sets it.
    pub gate: Gate,
    /// Whether its commands count as uses of their keys; the door sets it.
    pub touches: bool,
    pub(crate) database: u8,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) watch: Option<Watched>,
    /// The group of the last change that this connection made.
    pub(crate) last_stamp: u64,
    pub(crate) unblocker: Unblocker,
}

/// Commands between MULTI and EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    pub commands: Drain,
    /// Whether a command was refused, so that EXEC will be.
    pub is_aborted: bool,
}

/// Keys that must not change until EXEC.
pub(crate) struct Watched {
    pub watch: Arc<Watch>,
    pub keys: IndexSet<(u8, Bytes)>,
}

impl Session {
    pub(crate) fn new(objects: Arc<Objects>) -> Self {
        Self {
            objects,
            gate: Gate::open(),
            touches: true,
            database: 0,
            transaction: None,
            watch: None,
            last_stamp: 0,
            unblocker: Unblocker::default(),
        }
    }

    pub fn database(&self) -> u8 {
        self.database
    }

    /// Whether MULTI was sent, and EXEC not yet.
    pub fn in_multi(&self) -> bool {
        self.transaction.is_some()
    }

    /// Commands that wait for EXEC.
    pub fn queued(&self) -> usize {
        self.transaction.as_ref().map_or(0, |transaction| transaction.commands.len())
    }

    /// Keys that are watched.
    pub fn watched(&self) -> usize {
        self.watch.as_ref().map_or(0, |watched| watched.keys.len())
    }

    /// What ends the wait of a blocking command of this connection.
    pub fn unblocker(&self) -> Unblocker {
        self.unblocker.clone()
    }

    /// The group of the last change that this connection made; 0 before the first.
    pub fn last_stamp(&self) -> u64 {
        self.last_stamp
    }

    /// Makes it as new: no transaction, no watched keys, database 0.
    pub fn reset(&mut self) {
        self.database = 0;
        self.discard();
    }

    /// Forgets the open transaction and the watched keys.
    pub fn discard(&mut self) {
        self.transaction = None;
        self.unwatch();
    }

    /// Forgets the watched keys.
    pub(crate) fn unwatch(&mut self) {
        if let Some(watched) = self.watch.take() {
            self.objects.unwatch(&watched);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.unwatch();
    }
}
