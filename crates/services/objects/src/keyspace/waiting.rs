//! Connections that wait for something to pop.

use crate::wake::{Unblocker, Wake};
use bytes::Bytes;
use raingauge_resp::{Command, Drain, Failure, Protocol, Replies};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};

/// A command that waits for its keys.
pub(crate) struct Waiter {
    /// The database and names of the keys that wake it.
    pub database: u8,
    pub keys: Vec<Bytes>,
    pub protocol: Protocol,
    /// Its place among all that wait: those that began later have greater ones.
    ticket: u64,
    command: Drain,
    /// Ends its wait.
    pub unblocker: Unblocker,
    /// Notified when the command has to be tried again.
    pub again: Notify,
}

impl Waiter {
    pub(crate) fn new(
        command: Command<'_>,
        database: u8,
        keys: Vec<Bytes>,
        protocol: Protocol,
        ticket: u64,
        unblocker: Unblocker,
    ) -> Arc<Self> {
        let mut drain = Drain::new();
        drain.push(command.arguments);
        let again = Notify::new();
        Arc::new(Self { database, keys, protocol, ticket, command: drain, unblocker, again })
    }

    pub(crate) fn command(&self) -> Command<'_> {
        self.command.get(0)
    }
}

/// A command that ran in this hold for a connection that waits.
struct Served {
    waiter: Arc<Waiter>,
    /// Taken from its unblocker.
    sender: oneshot::Sender<Wake>,
    reply: Replies,
}

impl Served {
    fn wake(self, wake: Wake) {
        // A connection that ended does not hear it.
        let _ = self.sender.send(wake);
    }
}

/// A key that wakes.
pub(crate) type Key = (u8, Bytes);

/// All commands that wait, by key, first come first.
#[derive(Default)]
pub(crate) struct Waiting {
    queues: HashMap<Key, VecDeque<Arc<Waiter>>>,
    newest_ticket: u64,
    /// Keys that changed since they were last looked at.
    ready: VecDeque<Key>,
    is_ready: HashSet<Key>,
    served: Vec<Served>,
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// The place of a command that begins to wait.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.newest_ticket += 1;
        self.newest_ticket
    }

    pub(crate) fn add(&mut self, waiter: &Arc<Waiter>) {
        for name in &waiter.keys {
            let queue = self.queues.entry((waiter.database, name.clone())).or_default();
            let at = queue.partition_point(|other| other.ticket < waiter.ticket);
            queue.insert(at, Arc::clone(waiter));
        }
    }

    #[cfg(test)]
    pub(crate) fn waiters(&self, database: u8, name: &'static str) -> usize {
        self.queues.get(&(database, name.into())).map_or(0, VecDeque::len)
    }

    pub(crate) fn remove(&mut self, waiter: &Arc<Waiter>) {
        for name in &waiter.keys {
            let key = (waiter.database, name.clone());
            let Some(queue) = self.queues.get_mut(&key) else { continue };
            queue.retain(|other| !Arc::ptr_eq(other, waiter));
            if queue.is_empty() {
                self.queues.remove(&key);
            }
        }
    }

    /// Notes that a key has something to pop.
    pub(super) fn set_ready(&mut self, database: u8, name: &Bytes) {
        let key = (database, name.clone());
        if self.queues.contains_key(&key) && self.is_ready.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// The next key that has something to pop, with those who wait for it.
    pub(crate) fn next_ready(&mut self) -> Option<(Key, Vec<Arc<Waiter>>)> {
        let key = self.ready.pop_front()?;
        self.is_ready.remove(&key);
        let waiters = self.queues.get(&key).into_iter().flatten().cloned().collect();
        Some((key, waiters))
    }

    /// Ends a wait with a reply, at the end of the hold.
    pub(crate) fn serve(
        &mut self,
        waiter: &Arc<Waiter>,
        sender: oneshot::Sender<Wake>,
        reply: Replies,
    ) {
        self.remove(waiter);
        self.served.push(Served { waiter: Arc::clone(waiter), sender, reply });
    }

    /// Makes a command try again by itself.
    pub(crate) fn retry(&mut self, waiter: &Arc<Waiter>) {
        self.remove(waiter);
        waiter.again.notify_one();
    }

    /// The keys of two databases for which commands wait, in the order of the first in each queue.
    pub(crate) fn keys_of(&self, a: u8, b: u8) -> Vec<Key> {
        let is_of = |database: u8| database == a || database == b;
        let queues = self.queues.iter().filter(|((database, _), _)| is_of(*database));
        let first = |queue: &VecDeque<Arc<Waiter>>| queue.front().map(|waiter| waiter.ticket);
        let mut keys: Vec<_> = queues.map(|(key, queue)| (first(queue), key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// Ends a hold: those who were served hear of it.
    pub(super) fn end_hold(&mut self, stamp: u64) {
        for mut served in self.served.drain(..) {
            let reply = served.reply.take();
            served.wake(Wake::Served { reply, stamp });
        }
    }

    /// Ends all waits with a failure.
    pub(crate) fn refuse_all(&mut self, failure: &Failure) {
        self.refuse_served(failure);
        for waiter in self.queues.drain().flat_map(|(_, queue)| queue) {
            waiter.unblocker.end(Wake::Refused(failure.clone()));
        }
    }

    /// Ends a hold whose group the store does not take now: those who were served wait on.
    pub(super) fn retry_served(&mut self) {
        for Served { waiter, sender, .. } in self.served.drain(..) {
            waiter.unblocker.0.lock().put(sender);
            waiter.again.notify_one();
        }
    }

    /// Ends a hold whose group was refused for good.
    pub(super) fn refuse_served(&mut self, failure: &Failure) {
        for served in self.served.drain(..) {
            served.wake(Wake::Refused(failure.clone()));
        }
    }
}
