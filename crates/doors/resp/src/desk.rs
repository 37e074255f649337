//! The state of a connection that commands of the door read and change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use raingauge_objects::{Message, Space, Subscriber};
use raingauge_resp::{Failure, Id, Protocol, Spec};

use crate::client::Client;
use crate::ending::Ending;
use crate::login::Login;
use crate::refusals::Refusal;
use crate::server::Server;

/// What belongs to one connection, apart from its objects and its socket.
pub(crate) struct Desk {
    pub(crate) server: Arc<Server>,
    pub(crate) client: Arc<Client>,
    pub(crate) login: Login,
    pub(crate) protocol: Protocol,
    /// There from the first subscription on.
    pub(crate) subscriber: Option<Subscriber>,
    pub(crate) reply_mode: ReplyMode,
    /// Set by commands that end the connection.
    pub(crate) ending: Option<Ending>,
    /// As `CLIENT SETNAME` set it.
    pub(crate) name: String,
    /// What the command that runs next waited for, where its reply tells of it.
    pub(crate) waited: Option<bool>,
    /// What the walk for the command that runs next found; `None` inside a transaction, whose
    /// commands wait for nothing.
    pub(crate) slot_keys: Option<Result<SlotKeys, Failure>>,
}

/// The keys of a slot.
#[derive(Default)]
pub(crate) struct SlotKeys {
    pub(crate) count: i64,
    /// The first of them, as many as the command wants.
    pub(crate) names: Vec<Bytes>,
}

/// What `CLIENT REPLY` asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// The next command is not answered.
    SkipNext,
    /// This one is not answered, the next one is.
    Skipping,
}

impl ReplyMode {
    /// Whether the command that runs is not answered.
    pub(crate) fn is_silent(self) -> bool {
        matches!(self, ReplyMode::Off | ReplyMode::Skipping)
    }

    /// The mode behind a command that was not answered.
    pub(crate) fn after_one(self) -> ReplyMode {
        match self {
            ReplyMode::Skipping => ReplyMode::On,
            other => other,
        }
    }
}

impl Desk {
    pub(crate) fn new(server: Arc<Server>, client: Arc<Client>) -> Desk {
        let login = Login::new(Arc::clone(&server.tokens));

        Desk {
            server,
            client,
            login,
            protocol: Protocol::Two,
            subscriber: None,
            reply_mode: ReplyMode::On,
            ending: None,
            name: String::new(),
            waited: None,
            slot_keys: None,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.server.clock.now_ms()
    }

    /// Names the connection.
    pub(crate) fn set_name(&mut self, name: String) {
        self.client.names.lock().name.clone_from(&name);
        self.name = name;
    }

    /// Waits for the next message; for ever without subscriptions. `None`: see
    /// [`Subscriber::is_overrun`].
    pub(crate) async fn next_message(&self) -> Option<Message> {
        match &self.subscriber {
            Some(subscriber) => subscriber.next().await,
            None => std::future::pending().await,
        }
    }

    /// Names of a kind that the connection listens to.
    pub(crate) fn subscriptions(&self, space: Space) -> usize {
        self.subscriber.as_ref().map_or(0, |subscriber| subscriber.count(space))
    }

    /// Channels and patterns that the connection listens to.
    pub(crate) fn channels_and_patterns(&self) -> usize {
        self.subscriptions(Space::Channel) + self.subscriptions(Space::Pattern)
    }

    /// Whether messages and replies could be confused: in RESP2 while the connection listens.
    pub(crate) fn only_listens(&self) -> bool {
        let listens = self.channels_and_patterns() + self.subscriptions(Space::Shard) > 0;

        self.protocol == Protocol::Two && listens
    }

    /// Shows others how much the connection listens to; ends the subscriber when it is nothing.
    pub(crate) fn publish_subscriptions(&mut self) {
        let numbers = &self.client.numbers;
        let shards = self.subscriptions(Space::Shard);

        numbers.channels.store(self.subscriptions(Space::Channel), Ordering::Relaxed);
        numbers.patterns.store(self.subscriptions(Space::Pattern), Ordering::Relaxed);
        numbers.shards.store(shards, Ordering::Relaxed);
        if self.channels_and_patterns() + shards == 0 {
            self.subscriber = None;
            *self.client.closer.lock() = None;
        }
    }

    /// Keeps a refusal that a missing right caused, for `ACL LOG`.
    pub(crate) fn note_refusal(&self, spec: &'static Spec, failure: &Failure) {
        let reason = match failure.code() {
            "NOPERM" => "command",
            "WRONGPASS" => "auth",
            _ => {
                self.server.usage.rejected(spec);
                return;
            }
        };

        let now_ms = self.now_ms();
        let user = self.login.user().to_owned();
        let object = if spec.id == Id::Auth { user.clone() } else { spec.name.to_owned() };
        let refusal = Refusal { reason, object, user };
        self.server.refusals.note(refusal, self.client.line(now_ms), now_ms);
    }
}
