//! Connections that wait for something to pop.

use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_resp::{Command, Drain, Failure, Protocol, Replies};
use std::collections::{HashMap, HashSet, VecDeque};
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
    /// The command has to be tried again.
    Retry,
    /// It is over, as after the timeout.
    TimedOut,
    Refused(Failure),
}

/// A command that waits for its keys.
pub(crate) struct Waiter {
    /// The database and names of the keys that wake it.
    pub database: u8,
    pub keys: Vec<Bytes>,
    pub protocol: Protocol,
    /// Its place among all that wait: those that began later have greater ones.
    ticket: u64,
    command: Drain,
    wake: Mutex<Option<oneshot::Sender<Wake>>>,
}

impl Waiter {
    pub(crate) fn new(
        command: Command<'_>,
        database: u8,
        keys: Vec<Bytes>,
        protocol: Protocol,
        ticket: u64,
    ) -> (Arc<Self>, oneshot::Receiver<Wake>) {
        let mut drain = Drain::new();
        drain.push(command.arguments);
        let (sender, receiver) = oneshot::channel();
        let wake = Mutex::new(Some(sender));
        (Arc::new(Self { database, keys, protocol, ticket, command: drain, wake }), receiver)
    }

    pub(crate) fn command(&self) -> Command<'_> {
        self.command.get(0)
    }

    fn wake(&self, wake: Wake) {
        if let Some(sender) = self.wake.lock().take() {
            // A connection that ended does not hear it.
            let _ = sender.send(wake);
        }
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
    /// Commands that ran in this hold, with their replies.
    served: Vec<(Arc<Waiter>, Replies)>,
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
    pub(crate) fn serve(&mut self, waiter: &Arc<Waiter>, reply: Replies) {
        self.remove(waiter);
        self.served.push((Arc::clone(waiter), reply));
    }

    /// Makes a command try again by itself.
    pub(crate) fn retry(&mut self, waiter: &Arc<Waiter>) {
        self.remove(waiter);
        waiter.wake(Wake::Retry);
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
        for (waiter, mut reply) in self.served.drain(..) {
            waiter.wake(Wake::Served { reply: reply.take(), stamp });
        }
    }

    /// Ends all waits with a failure.
    pub(crate) fn refuse_all(&mut self, failure: &Failure) {
        self.refuse_served(failure);
        for waiter in self.queues.drain().flat_map(|(_, queue)| queue) {
            waiter.wake(Wake::Refused(failure.clone()));
        }
    }

    /// Ends a hold whose group the store does not take now: those who were served wait on.
    pub(super) fn retry_served(&mut self) {
        for (waiter, _) in self.served.drain(..) {
            waiter.wake(Wake::Retry);
        }
    }

    /// Ends a hold whose group was refused for good.
    pub(super) fn refuse_served(&mut self, failure: &Failure) {
        for (waiter, _) in self.served.drain(..) {
            waiter.wake(Wake::Refused(failure.clone()));
        }
    }
}
