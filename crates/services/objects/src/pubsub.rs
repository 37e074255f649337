//! Channels: messages that reach who listens now, and nobody later.

use bytes::Bytes;
use indexmap::{IndexMap, IndexSet};
use parking_lot::{Mutex, RwLock};
use raingauge_resp::glob;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// How names of subscriptions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Channel,
    Pattern,
    Shard,
}

/// A message on its way to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The group that caused it: it may be sent when the group is durable. 0 waits for none.
    pub stamp: u64,
    pub space: Space,
    /// The pattern that led to this subscriber.
    pub pattern: Option<Bytes>,
    pub channel: Bytes,
    pub payload: Bytes,
}

impl Message {
    pub(crate) fn to_channel(channel: Bytes, payload: Bytes) -> Self {
        Self { stamp: 0, space: Space::Channel, pattern: None, channel, payload }
    }

    /// Bytes that it holds while it waits.
    fn len(&self) -> usize {
        const MESSAGE_BYTES: usize = 128;
        MESSAGE_BYTES + self.channel.len() + self.payload.len()
    }
}

/// All subscriptions of the process. Clones share them.
#[derive(Clone, Default)]
pub struct PubSub(Arc<Registry>);

#[derive(Default)]
struct Registry {
    names: RwLock<Names>,
    next_id: AtomicU64,
}

/// Subscribers by name, and by their numbers.
type Subscribers = HashMap<Bytes, IndexMap<u64, Arc<Inbox>>>;

#[derive(Default)]
struct Names {
    channels: Subscribers,
    patterns: Subscribers,
    shards: Subscribers,
}

impl Names {
    fn of(&self, space: Space) -> &Subscribers {
        match space {
            Space::Channel => &self.channels,
            Space::Pattern => &self.patterns,
            Space::Shard => &self.shards,
        }
    }

    fn of_mut(&mut self, space: Space) -> &mut Subscribers {
        match space {
            Space::Channel => &mut self.channels,
            Space::Pattern => &mut self.patterns,
            Space::Shard => &mut self.shards,
        }
    }

    /// The patterns that a channel matches. Shard channels have none.
    fn matching<'a>(
        &'a self,
        space: Space,
        channel: &'a [u8],
    ) -> impl Iterator<Item = (&'a Bytes, &'a IndexMap<u64, Arc<Inbox>>)> {
        let patterns = (space == Space::Channel).then_some(&self.patterns).into_iter().flatten();
        patterns.filter(move |(pattern, _)| glob::matches(pattern, channel, false))
    }
}

impl PubSub {
    /// A subscriber without subscriptions. Once more than `bytes_max` bytes wait for it, it is
    /// given up, and [`Subscriber::next`] says so.
    pub fn subscriber(&self, bytes_max: usize) -> Subscriber {
        let inbox = Arc::new(Inbox::new(bytes_max));
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let names = Default::default();
        Subscriber { registry: Arc::clone(&self.0), id, inbox, names }
    }

    /// How many subscribers a message would reach; one that it reaches twice counts twice.
    pub fn receivers(&self, space: Space, channel: &[u8]) -> usize {
        let names = self.0.names.read();
        let direct = names.of(space).get(channel).map_or(0, open);
        direct + names.matching(space, channel).map(|(_, inboxes)| open(inboxes)).sum::<usize>()
    }

    /// Sends a message to all who listen, and returns how many it reached.
    pub fn deliver(&self, message: &Message) -> usize {
        let names = self.0.names.read();
        let mut reached = 0;
        for inbox in
            names.of(message.space).get(&message.channel).into_iter().flat_map(|all| all.values())
        {
            inbox.push(message.clone());
            reached += 1;
        }

        for (pattern, inboxes) in names.matching(message.space, &message.channel) {
            for inbox in inboxes.values() {
                let pattern = Some(pattern.clone());
                inbox.push(Message { space: Space::Pattern, pattern, ..message.clone() });
                reached += 1;
            }
        }
        reached
    }

    /// Names that have subscribers and match a pattern.
    pub fn names(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Bytes> {
        let names = self.0.names.read();
        let is_asked = |name: &&Bytes| pattern.is_none_or(|glob| glob::matches(glob, name, false));
        names.of(space).keys().filter(is_asked).cloned().collect()
    }

    /// How many subscribers a name has.
    pub fn subscribers(&self, space: Space, name: &[u8]) -> usize {
        self.0.names.read().of(space).get(name).map_or(0, open)
    }

    /// How many names have subscribers.
    pub fn names_len(&self, space: Space) -> usize {
        self.0.names.read().of(space).len()
    }
}

/// How many subscribers still count.
fn open(inboxes: &IndexMap<u64, Arc<Inbox>>) -> usize {
    inboxes.values().filter(|inbox| !inbox.is_closed.load(Ordering::Acquire)).count()
}

/// Messages that wait for one subscriber.
struct Inbox {
    bytes_max: usize,
    /// Whether it receives no more messages.
    is_closed: AtomicBool,
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    is_overrun: bool,
}

impl Inbox {
    fn new(bytes_max: usize) -> Self {
        let is_closed = AtomicBool::new(false);
        Self { bytes_max, is_closed, queue: Mutex::default(), arrived: Notify::new() }
    }

    fn push(&self, message: Message) {
        let mut queue = self.queue.lock();
        if queue.is_overrun || self.is_closed.load(Ordering::Acquire) {
            return;
        }

        queue.bytes += message.len();
        if queue.bytes > self.bytes_max {
            *queue = Queue { is_overrun: true, ..Queue::default() };
        } else {
            queue.messages.push_back(message);
        }
        drop(queue);
        self.arrived.notify_one();
    }
}

/// Ends the subscriptions of a connection that is about to be closed.
pub struct Closer(Arc<Inbox>);

impl Closer {
    /// Messages no longer arrive, and no longer count as received.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
    }
}

/// The subscriptions of one connection. Dropping it ends them.
pub struct Subscriber {
    registry: Arc<Registry>,
    id: u64,
    inbox: Arc<Inbox>,
    names: [IndexSet<Bytes>; 3],
}

impl Subscriber {
    /// What ends its subscriptions from outside.
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.inbox))
    }

    /// Begins to listen. Returns whether it did not before.
    pub fn subscribe(&mut self, space: Space, name: Bytes) -> bool {
        if !self.names[space as usize].insert(name.clone()) {
            return false;
        }

        let mut names = self.registry.names.write();
        let subscribers = names.of_mut(space).entry(name).or_default();
        subscribers.insert(self.id, Arc::clone(&self.inbox));
        true
    }

    /// Stops to listen. Returns whether it did before.
    pub fn unsubscribe(&mut self, space: Space, name: &[u8]) -> bool {
        if !self.names[space as usize].swap_remove(name) {
            return false;
        }

        let mut names = self.registry.names.write();
        let names = names.of_mut(space);
        if let Some(subscribers) = names.get_mut(name) {
            subscribers.shift_remove(&self.id);
            if subscribers.is_empty() {
                names.remove(name);
            }
        }
        true
    }

    /// How many names it listens to.
    pub fn count(&self, space: Space) -> usize {
        self.names[space as usize].len()
    }

    /// The names that it listens to, in the order in which it began, unless subscriptions have
    /// ended since.
    pub fn names(&self, space: Space) -> Vec<Bytes> {
        self.names[space as usize].iter().cloned().collect()
    }

    /// The next message, if one waits.
    pub fn try_next(&self) -> Option<Message> {
        let mut queue = self.inbox.queue.lock();
        let message = queue.messages.pop_front()?;
        queue.bytes -= message.len();
        Some(message)
    }

    /// Whether more waited than it may, so that messages are lost and it gets no more.
    pub fn is_overrun(&self) -> bool {
        self.inbox.queue.lock().is_overrun
    }

    /// Waits for the next message. `None`: see [`Subscriber::is_overrun`].
    pub async fn next(&self) -> Option<Message> {
        loop {
            if let Some(message) = self.try_next() {
                return Some(message);
            }
            if self.is_overrun() {
                return None;
            }
            self.inbox.arrived.notified().await;
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        for space in [Space::Channel, Space::Pattern, Space::Shard] {
            for name in self.names(space) {
                self.unsubscribe(space, &name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(pubsub: &PubSub, channel: &'static str, payload: &'static str) -> usize {
        pubsub.deliver(&Message::to_channel(channel.into(), payload.into()))
    }

    #[tokio::test]
    async fn messages_reach_channels_and_patterns() {
        let pubsub = PubSub::default();
        let mut one = pubsub.subscriber(10_000);
        let mut other = pubsub.subscriber(10_000);
        assert!(one.subscribe(Space::Channel, "news.rain".into()));
        assert!(!one.subscribe(Space::Channel, "news.rain".into()));
        assert!(other.subscribe(Space::Pattern, "news.*".into()));
        assert_eq!(pubsub.receivers(Space::Channel, b"news.rain"), 2);

        assert_eq!(send(&pubsub, "news.rain", "wet"), 2);
        assert_eq!(send(&pubsub, "sports", "dry"), 0);
        let message = one.next().await.expect("a message");
        assert_eq!((message.pattern, &message.payload[..]), (None, &b"wet"[..]));
        assert_eq!(other.next().await.expect("a message").pattern, Some("news.*".into()));

        other.closer().close();
        assert_eq!(pubsub.receivers(Space::Channel, b"news.rain"), 1);
        assert_eq!(pubsub.subscribers(Space::Pattern, b"news.*"), 0);
        drop(other);
        assert_eq!(pubsub.names_len(Space::Pattern), 0);
        assert!(one.unsubscribe(Space::Channel, b"news.rain"));
        assert_eq!(send(&pubsub, "news.rain", "wet"), 0);
    }

    #[tokio::test]
    async fn a_subscriber_that_falls_behind_is_given_up() {
        let pubsub = PubSub::default();
        let mut slow = pubsub.subscriber(1_000);
        slow.subscribe(Space::Channel, "a".into());
        for _ in 0..100 {
            send(&pubsub, "a", "message");
        }
        assert_eq!(slow.next().await, None);
        assert!(slow.is_overrun());
    }
}
