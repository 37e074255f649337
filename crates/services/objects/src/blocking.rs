//! Commands that wait until one of their keys has something to pop.
//!
//! A command that finds nothing is queued behind those that wait for the same keys. When a key
//! changes, the command that changed it is followed by the first in the queue, under the same lock
//! and in the same group, so nobody else pops first. A command that is tried again keeps its place,
//! by a ticket that it has from its first wait on.

use crate::admission;
use crate::execute::{Executed, execute};
use crate::keyspace::{Keyspace, Waiter};
use crate::objects::Objects;
use crate::run::{Run, Step};
use crate::wake::Wake;
use bytes::Bytes;
use indexmap::IndexSet;
use raingauge_resp::{Arguments, Command, Id, Replies, Spec};
use raingauge_values::Kind;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A command of a connection that waits.
pub(crate) struct Wait {
    waiter: Arc<Waiter>,
    /// When it waits no longer; never, without one.
    until: Option<Instant>,
}

/// Takes the command out of all queues when the connection stops waiting.
struct Queued<'a> {
    objects: &'a Objects,
    waiter: &'a Arc<Waiter>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Ok(mut keyspace) = self.objects.lock.hold() {
            keyspace.waiting().remove(self.waiter);
        }
    }
}

impl Objects {
    /// Waits for the keys of the next command, which is answered then, or is to be tried again.
    pub(crate) async fn wait_for_keys(&self, run: &mut Run<'_>) {
        let Some(Wait { waiter, mut until }) = run.wait.take() else { return };
        let Some(woken) = &mut run.woken else { return };
        let began = Instant::now();
        let queued = Queued { objects: self, waiter: &waiter };
        let wake = loop {
            tokio::select! {
                biased;
                wake = &mut *woken => break Some(wake),
                () = waiter.again.notified() => break None,
                () = over(until) => {
                    // One that is being served just now waits for that instead.
                    waiter.unblocker.end(Wake::TimedOut);
                    until = None;
                }
            }
        };
        drop(queued);
        run.waited += began.elapsed();

        let stamp = match wake {
            // The command is tried again.
            None => return,
            // It was abandoned: the connection is about to be closed.
            Some(Err(_)) => return std::future::pending().await,
            Some(Ok(Wake::Served { reply, stamp })) => {
                reply.iter().for_each(|part| run.out.raw(part));
                run.session.last_stamp = stamp;
                stamp
            }
            Some(Ok(Wake::Refused(failure))) => {
                run.out.fail(&failure);
                0
            }
            Some(Ok(Wake::TimedOut)) => {
                run.out.null_array();
                self.store().progress().submitted()
            }
        };
        run.note_segment(stamp, self.durable_stamp());
        run.advance();
    }
}

/// Waits for a moment; for ever without one.
async fn over(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

impl Run<'_> {
    /// Queues the next command, which found nothing.
    pub(crate) fn queue_behind(
        &mut self,
        keyspace: &mut Keyspace,
        spec: &Spec,
        command: Command<'_>,
        timeout_ms: i64,
    ) {
        let database = self.session.database;
        let mut keys = IndexSet::new();
        admission::visit_keys(spec, command.arguments, database, &mut |_, name, _| {
            keys.insert(Bytes::copy_from_slice(name));
        });
        let mut keys: Vec<Bytes> = keys.into_iter().collect();
        if matches!(spec.id, Id::Blmove | Id::Brpoplpush) {
            keys.truncate(1);
        }

        let ticket = *self.ticket.get_or_insert_with(|| keyspace.waiting().next_ticket());
        let protocol = self.out.protocol();
        let unblocker = self.session.unblocker.clone();
        // It stays while the command is tried again, so that its wait can be ended even then.
        self.woken.get_or_insert_with(|| {
            let (sender, woken) = oneshot::channel();
            unblocker.0.lock().put(sender);
            woken
        });
        let waiter = Waiter::new(command, database, keys, protocol, ticket, unblocker);
        keyspace.waiting().add(&waiter);
        // One that is tried again waits no longer for that.
        if self.waits_until.is_none() {
            let timeout = u64::try_from(timeout_ms).ok().filter(|timeout_ms| *timeout_ms > 0);
            let timeout = timeout.map(Duration::from_millis);
            self.waits_until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        }
        self.wait = Some(Wait { waiter, until: self.waits_until });
        // All keys were in memory together: the next attempt begins from the start.
        self.forget_rounds();
    }

    /// Tries a command again that has waited, unless its wait has ended.
    pub(crate) fn try_again(
        &mut self,
        keyspace: &mut Keyspace,
        spec: &'static Spec,
        arguments: Arguments<'_>,
    ) -> Step {
        let unblocker = self.session.unblocker.clone();
        // Held until the command has run, so that its wait does not end in between.
        let mut waking = unblocker.0.lock();
        if !waking.waits() {
            return self.stop_waiting(keyspace, spec, 0);
        }

        let step = self.command(keyspace, spec, arguments);
        if matches!(step, Step::Done { .. }) {
            waking.take();
        }
        step
    }
}

/// Runs commands that wait for keys that have changed, until nothing is left to pop or nobody
/// waits.
pub(crate) fn serve(keyspace: &mut Keyspace) {
    while let Some(((database, name), waiters)) = keyspace.waiting().next_ready() {
        for waiter in waiters {
            let place = keyspace.find(database, &name);
            let place = place.or_else(|| keyspace.add_flushed(database, &name));
            if place.is_none() {
                // A swap brought it, and only the store knows what it is.
                keyspace.waiting().retry(&waiter);
                continue;
            }
            let object = place.and_then(|place| keyspace.slot(place).object.as_ref());
            let Some(kind) = object.map(|object| object.value.kind()) else { break };
            serve_one(keyspace, &waiter, &name, kind);
        }
    }
}

/// Runs a command that waits for a key of this kind, unless it pops from another kind.
fn serve_one(keyspace: &mut Keyspace, waiter: &Arc<Waiter>, name: &[u8], kind: Kind) {
    let command = waiter.command();
    let Ok(spec) = command.check() else { return };
    let pops = match spec.id {
        Id::Bzpopmin | Id::Bzpopmax | Id::Bzmpop => Kind::Sorted,
        _ => Kind::List,
    };
    if pops != kind {
        return;
    }

    let database = waiter.database;
    let arguments = command.arguments;
    let Some(weight) = admission::admit_woken(keyspace, spec, arguments, database, name) else {
        return keyspace.waiting().retry(waiter);
    };

    // Held until the command has run, so that its wait does not end in between. One whose wait has
    // ended has only not left its queues yet.
    let mut waking = waiter.unblocker.0.lock();
    if !waking.waits() {
        return;
    }

    let mut reply = Replies::new(waiter.protocol);
    match execute(keyspace, database, spec, arguments, weight, &mut reply) {
        Executed::Waits { .. } => {}
        Executed::Done { .. } | Executed::Refused => {
            if let Some(sender) = waking.take() {
                keyspace.waiting().serve(waiter, sender, reply);
            }
        }
    }
}
