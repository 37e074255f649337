//! What the tests run on: a service over a store in memory, and a clock that stands still.

use super::between::Between;
use crate::{Objects, Options, Ran, Session, Subscriber};
use raingauge_memory as memory;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::objects::{ObjectControl, ObjectStore};
use raingauge_resp::{Command, Controls, Drain, Failure, Id, Protocol, Replies, Spec};
use std::sync::Arc;

/// The time at which the clock stands at first, in seconds since 1970.
pub(super) const NOW_S: i64 = 1_800_000_000;

/// Runs the commands of a door: all of them answer `DOOR`. The last word of CONFIG SET names the
/// events that are published.
pub(super) struct Door(pub Arc<Objects>);

impl Controls for Door {
    fn control(&mut self, command: Command<'_>, replies: &mut Replies) -> Result<(), Failure> {
        if command.spec().is_some_and(|spec| spec.id == Id::ConfigSet) {
            let events = String::from_utf8_lossy(command.arguments.at(3));
            self.0.set_notify_flags(&events).map_err(Failure::text)?;
        }
        replies.simple("DOOR");
        Ok(())
    }

    fn ran(&mut self, _: &'static Spec, _: u64, _: bool) {}
}

pub(super) struct Stage {
    pub objects: Arc<Objects>,
    pub store: Arc<memory::Objects>,
    pub clock: Arc<ManualClock>,
}

/// One connection.
pub(super) struct Client {
    pub objects: Arc<Objects>,
    pub session: Session,
    pub protocol: Protocol,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::of_memory(64 << 20)
    }

    /// With a number of bytes for resident objects.
    pub(super) fn of_memory(resident_bytes: usize) -> Self {
        let mut options = Options::of_memory(resident_bytes);
        options.limits.object_bytes_max = 16 << 20;
        Self::with(options, |store| store)
    }

    /// With a store that stands between the service and the one in memory.
    pub(super) fn with<S: ObjectStore + 'static>(
        options: Options,
        wrap: impl FnOnce(Arc<memory::Objects>) -> Arc<S>,
    ) -> Self {
        let store = Arc::new(memory::Objects::new());
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let control: Arc<dyn ObjectControl> = Arc::clone(&store) as _;
        let between = wrap(Arc::clone(&store));
        let objects = Objects::open(between, control, Arc::clone(&clock) as _, options);
        Self { objects, store, clock }
    }

    /// The service again, over the same store, as after a restart.
    pub(super) fn reopened(&self) -> Self {
        self.reopened_with(self.objects.options().clone())
    }

    /// As [`Stage::reopened`], with other options.
    pub(super) fn reopened_with(&self, options: Options) -> Self {
        let store: Arc<dyn ObjectStore> = Arc::clone(&self.store) as _;
        let control: Arc<dyn ObjectControl> = Arc::clone(&self.store) as _;
        let clock = Arc::clone(&self.clock);
        let objects = Objects::open(store, control, Arc::clone(&clock) as _, options);
        Self { objects, store: Arc::clone(&self.store), clock }
    }

    /// Another service over the same content, with a store that stands between.
    pub(super) fn behind(&self, options: Options, between: Between) -> (Self, Arc<Between>) {
        let between = Arc::new(between);
        let store: Arc<dyn ObjectStore> = Arc::clone(&between) as _;
        let control: Arc<dyn ObjectControl> = Arc::clone(&self.store) as _;
        let clock = Arc::clone(&self.clock);
        let objects = Objects::open(store, control, Arc::clone(&clock) as _, options);
        (Self { objects, store: Arc::clone(&self.store), clock }, between)
    }

    pub(super) fn client(&self) -> Client {
        let objects = Arc::clone(&self.objects);
        Client { session: objects.session(), objects, protocol: Protocol::Two }
    }

    pub(super) fn subscriber(&self) -> Subscriber {
        self.objects.pubsub().subscriber(1 << 20)
    }
}

/// The events of keys of database 0 that a listener has received, each with its key.
pub(super) fn heard(listener: &Subscriber) -> Vec<String> {
    let messages = std::iter::from_fn(|| listener.try_next());
    let events = messages.map(|message| {
        let event = String::from_utf8_lossy(&message.channel).replace("__keyevent@0__:", "");
        format!("{event} {}", String::from_utf8_lossy(&message.payload))
    });
    events.collect()
}

impl Client {
    /// Sends one command, its words apart by spaces, and returns the reply with its lines apart by
    /// spaces.
    pub(super) async fn send(&mut self, command: &str) -> String {
        self.send_all(&[command]).await
    }

    /// Sends a pipeline, and returns all replies.
    pub(super) async fn send_all(&mut self, commands: &[&str]) -> String {
        self.run(commands).await.1
    }

    /// Sends a pipeline, and returns what became of it.
    pub(super) async fn run(&mut self, commands: &[&str]) -> (Ran, String) {
        let commands: Vec<Vec<&[u8]>> = commands
            .iter()
            .map(|command| command.split(' ').map(str::as_bytes).collect())
            .collect();
        let commands: Vec<&[&[u8]]> = commands.iter().map(Vec::as_slice).collect();
        let drain = Drain::of(&commands);
        let mut replies = Replies::new(self.protocol);
        let mut door = Door(Arc::clone(&self.objects));
        let mut ran = Ran::default();
        loop {
            let from = ran.next;
            let part =
                self.objects.run(&mut self.session, &mut door, &drain, from, &mut replies).await;
            ran.segments.extend(part.segments);
            ran.next = part.next;
            if part.next == drain.len() || part.next == from {
                break;
            }
        }

        let replies = replies.take().concat();
        let text = String::from_utf8_lossy(&replies).replace("\r\n", " ");
        (ran, text.strip_suffix(' ').unwrap_or(&text).to_owned())
    }

    /// Sends commands one by one, each with the reply that it must have.
    pub(super) async fn expect(&mut self, dialogue: &[(&str, &str)]) {
        for (command, reply) in dialogue {
            assert_eq!(self.send(command).await, *reply, "{command}");
        }
    }
}
