//! Each connection as others see it: `CLIENT LIST`, `CLIENT KILL`, `CLIENT PAUSE`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use raingauge_objects::{Closer, Unblocker};
use raingauge_resp::{Command, Id, Spec};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A connection, as others see it.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) since_ms: i64,
    pub(crate) names: Mutex<Names>,
    pub(crate) numbers: Numbers,
    /// Ends the wait of a blocking command.
    pub(crate) unblocker: Mutex<Option<Unblocker>>,
    /// Ends its subscriptions.
    pub(crate) closer: Mutex<Option<Closer>>,
    kill: AtomicBool,
    killed: Notify,
}

/// What the client says about itself, and as whom it logged in.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
    pub(crate) user: String,
}

/// Numbers of a connection, which it publishes after each read.
pub(crate) struct Numbers {
    pub(crate) active_ms: AtomicI64,
    pub(crate) database: AtomicU16,
    pub(crate) channels: AtomicUsize,
    pub(crate) patterns: AtomicUsize,
    pub(crate) shards: AtomicUsize,
    /// Commands in an open transaction; -1 without one.
    pub(crate) queued: AtomicI64,
    pub(crate) watched: AtomicUsize,
    pub(crate) unread_bytes: AtomicUsize,
    pub(crate) unsent_bytes: AtomicUsize,
    pub(crate) protocol: AtomicU16,
    /// Bytes received and sent, and commands.
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) last: AtomicU16,
    /// Whether a command waits for a key.
    pub(crate) blocked: AtomicBool,
    pub(crate) no_evict: AtomicBool,
    pub(crate) no_touch: AtomicBool,
    pub(crate) close_after_reply: AtomicBool,
}

impl Client {
    fn new(id: u64, address: SocketAddr, local: SocketAddr, now_ms: i64) -> Client {
        let numbers = Numbers {
            active_ms: AtomicI64::new(now_ms),
            database: AtomicU16::new(0),
            channels: AtomicUsize::new(0),
            patterns: AtomicUsize::new(0),
            shards: AtomicUsize::new(0),
            queued: AtomicI64::new(-1),
            watched: AtomicUsize::new(0),
            unread_bytes: AtomicUsize::new(0),
            unsent_bytes: AtomicUsize::new(0),
            protocol: AtomicU16::new(2),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            last: AtomicU16::new(u16::MAX),
            blocked: AtomicBool::new(false),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            close_after_reply: AtomicBool::new(false),
        };
        let names = Names { user: "default".into(), ..Names::default() };

        Client {
            id,
            address,
            local,
            since_ms: now_ms,
            names: Mutex::new(names),
            numbers,
            unblocker: Mutex::default(),
            closer: Mutex::default(),
            kill: AtomicBool::new(false),
            killed: Notify::new(),
        }
    }

    /// Asks the connection to close. A command of it that waits pops nothing any more, and no
    /// message counts as received by it.
    pub(crate) fn kill(&self) {
        if let Some(unblocker) = &*self.unblocker.lock() {
            unblocker.abandon();
        }
        if let Some(closer) = &*self.closer.lock() {
            closer.close();
        }
        self.kill.store(true, Ordering::Release);
        self.killed.notify_one();
    }

    /// Returns when another connection closed this one.
    pub(crate) async fn killed(&self) {
        while !self.kill.load(Ordering::Acquire) {
            self.killed.notified().await;
        }
    }

    /// Shows a command that ran, or that waits for something.
    pub(crate) fn note_last(&self, command: Command<'_>) {
        if let Some(spec) = command.spec() {
            self.numbers.last.store(spec.id as u16, Ordering::Relaxed);
        }
    }

    fn last(&self) -> &'static str {
        let last = self.numbers.last.load(Ordering::Relaxed);

        raingauge_resp::all().find(|spec| spec.id as u16 == last).map_or("NULL", |spec| spec.name)
    }

    /// Whether the connection listens to channels, and how `CLIENT LIST` calls its kind.
    pub(crate) fn kind(&self) -> &'static str {
        if self.listens() { "pubsub" } else { "normal" }
    }

    fn listens(&self) -> bool {
        let numbers = &self.numbers;
        let lists = [&numbers.channels, &numbers.patterns, &numbers.shards];

        lists.iter().any(|list| list.load(Ordering::Relaxed) > 0)
    }

    /// The letters of `CLIENT LIST`.
    fn flags(&self) -> String {
        let numbers = &self.numbers;
        let letters = [
            (self.listens(), 'P'),
            (numbers.queued.load(Ordering::Relaxed) >= 0, 'x'),
            (numbers.blocked.load(Ordering::Relaxed), 'b'),
            (numbers.no_evict.load(Ordering::Relaxed), 'e'),
            (numbers.no_touch.load(Ordering::Relaxed), 'T'),
            (numbers.close_after_reply.load(Ordering::Relaxed), 'c'),
        ];
        let flags: String =
            letters.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter).collect();

        if flags.is_empty() { "N".into() } else { flags }
    }

    /// The line of `CLIENT LIST`.
    pub(crate) fn line(&self, now_ms: i64) -> String {
        let names = self.names.lock().clone();
        let numbers = &self.numbers;
        let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        let unread = count(&numbers.unread_bytes);
        let unsent = count(&numbers.unsent_bytes);

        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db={} sub={} psub={} \
             ssub={} multi={} qbuf={unread} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=16384 \
             rbp=0 obl=0 oll=0 omem={unsent} tot-mem={} events=r cmd={} user={} redir=-1 resp={} \
             lib-name={} lib-ver={} tot-net-in={} tot-net-out={} tot-cmds={} watch={}",
            self.id,
            self.address,
            self.local,
            names.name,
            seconds_since(self.since_ms, now_ms),
            seconds_since(numbers.active_ms.load(Ordering::Relaxed), now_ms),
            self.flags(),
            numbers.database.load(Ordering::Relaxed),
            count(&numbers.channels),
            count(&numbers.patterns),
            count(&numbers.shards),
            numbers.queued.load(Ordering::Relaxed),
            unread + unsent,
            self.last(),
            names.user,
            numbers.protocol.load(Ordering::Relaxed),
            names.library,
            names.library_version,
            numbers.received.load(Ordering::Relaxed),
            numbers.sent.load(Ordering::Relaxed),
            numbers.commands.load(Ordering::Relaxed),
            count(&numbers.watched),
        )
    }
}

fn seconds_since(then_ms: i64, now_ms: i64) -> i64 {
    (now_ms - then_ms).max(0) / 1000
}

/// All connections of the door.
#[derive(Default)]
pub(crate) struct Clients {
    last_id: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
    pause: Mutex<Pause>,
    is_paused: AtomicBool,
    resumed: Notify,
}

/// Until when commands wait.
#[derive(Clone, Copy, Default)]
struct Pause {
    until_ms: i64,
    /// Reads go on.
    only_writes: bool,
}

/// A connection in the list of all, for as long as it lives.
pub(crate) struct Listed {
    clients: Arc<Clients>,
    pub(crate) client: Arc<Client>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.clients.all.lock().remove(&self.client.id);
    }
}

impl Clients {
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: SocketAddr,
        local: SocketAddr,
        now_ms: i64,
    ) -> Listed {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let client = Arc::new(Client::new(id, address, local, now_ms));
        self.all.lock().insert(id, Arc::clone(&client));

        Listed { clients: Arc::clone(self), client }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Connections that were ever opened.
    pub(crate) fn opened(&self) -> u64 {
        self.last_id.load(Ordering::Relaxed)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.all.lock().get(&id).cloned()
    }

    /// Lets commands wait until a time; a later end that was asked for before stays.
    pub(crate) fn pause(&self, until_ms: i64, only_writes: bool) {
        let mut pause = self.pause.lock();
        let goes_on = self.is_paused.load(Ordering::Relaxed);

        pause.only_writes = only_writes && (!goes_on || pause.only_writes);
        pause.until_ms = pause.until_ms.max(until_ms);
        self.is_paused.store(true, Ordering::Release);
    }

    pub(crate) fn resume(&self) {
        *self.pause.lock() = Pause::default();
        self.is_paused.store(false, Ordering::Release);
        self.resumed.notify_waiters();
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    /// Milliseconds for which a command has to wait now; none while nothing is paused.
    pub(crate) fn wait_ms(&self, now_ms: i64, writes: impl FnOnce() -> bool) -> Option<i64> {
        if !self.is_paused() {
            return None;
        }

        let pause = *self.pause.lock();
        if pause.until_ms <= now_ms {
            self.resume();
            return None;
        }

        (!pause.only_writes || writes()).then_some(pause.until_ms - now_ms)
    }

    /// Ends when the pause was ended after this call.
    pub(crate) fn resumed(&self) -> Notified<'_> {
        self.resumed.notified()
    }
}

/// Whether a command waits while writes are paused.
pub(crate) fn waits_with_writes(spec: &Spec) -> bool {
    spec.is_write() || matches!(spec.id, Id::Publish | Id::Spublish | Id::Exec)
}
