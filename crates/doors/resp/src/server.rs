//! What all connections of the door share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use raingauge_objects::Objects;
use raingauge_people::tokens::Tokens;
use raingauge_ports::clock::Clock;
use raingauge_ports::objects::KeyCount;
use raingauge_resp::{Failure, SlotNode, Slots};

use crate::client::{Client, Clients};
use crate::incoming::Incoming;
use crate::nodes::{Node, host_and_port, id_of};
use crate::observed::Observed;
use crate::parameters::Parameters;
use crate::rain::Rain;
use crate::refusals::Refusals;
use crate::settings::{ClusterMode, Settings};
use crate::slowlog::Slowlog;
use crate::usage::Usage;

/// The version of Redis whose commands and replies the door has.
pub(crate) const REDIS_VERSION: &str = "7.2.4";

/// What the door is opened with.
pub struct Deps {
    pub objects: Arc<Objects>,
    pub tokens: Arc<Tokens>,
    /// Counts and events; none where the process has none.
    pub rain: Option<Arc<Rain>>,
    pub observed: Arc<Observed>,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    /// Where the door listens.
    pub address: SocketAddr,
}

/// The state of the door.
pub(crate) struct Server {
    pub(crate) objects: Arc<Objects>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) rain: Option<Arc<Rain>>,
    pub(crate) observed: Arc<Observed>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) address: SocketAddr,
    pub(crate) clients: Arc<Clients>,
    pub(crate) parameters: Parameters,
    pub(crate) usage: Usage,
    pub(crate) slowlog: Slowlog,
    pub(crate) refusals: Refusals,
    pub(crate) slots: Option<Arc<Slots>>,
    pub(crate) started_ms: i64,
    /// 40 hexadecimal digits that no other start has.
    pub(crate) run_id: String,
    pub(crate) totals: Totals,
    /// Bytes of replies that wait on all connections.
    pub(crate) unsent: Arc<AtomicUsize>,
    /// Bytes of requests that wait on all connections.
    unread: Arc<AtomicUsize>,
    /// Most bytes of each.
    waiting_max: usize,
    /// Keys of each database, as of the last time that they were asked for.
    pub(crate) keyspace: Mutex<Vec<(u8, KeyCount)>>,
}

/// Numbers of `INFO stats`.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) overrun_connections: AtomicU64,
    pub(crate) saved_ms: AtomicU64,
}

impl Server {
    pub(crate) fn new(deps: Deps) -> Server {
        let started_ms = deps.clock.now_ms();
        let seed = format!("{} {started_ms} {}", deps.address, std::process::id());
        let slots = slots(&deps.settings, deps.address).map(Arc::new);
        // Replies and requests never take as much memory as objects have: half of it is enough.
        let memory = deps.objects.options().resident_bytes;
        let waiting_max = (memory / 2).max(deps.settings.output_bytes_max);
        let parameters = Parameters::new(&deps.settings, deps.address.port(), slots.is_some());

        Server {
            slowlog: Slowlog::default(),
            refusals: Refusals::default(),
            clients: Arc::default(),
            usage: Usage::default(),
            totals: Totals::default(),
            unsent: Arc::default(),
            unread: Arc::default(),
            waiting_max,
            keyspace: Mutex::default(),
            run_id: id_of(&seed),
            started_ms,
            parameters,
            slots,
            objects: deps.objects,
            tokens: deps.tokens,
            rain: deps.rain,
            observed: deps.observed,
            clock: deps.clock,
            settings: deps.settings,
            address: deps.address,
        }
    }

    /// Whether too many replies wait on all connections together.
    pub(crate) fn is_output_full(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) > self.waiting_max
    }

    /// What a new connection counts the bytes with that it has received.
    pub(crate) fn incoming(&self, client: &Arc<Client>) -> Incoming {
        Incoming::new(Arc::clone(client), Arc::clone(&self.unread), self.waiting_max)
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.slots.is_some()
    }

    /// The map of slots, for commands that make no sense without one.
    pub(crate) fn slots(&self) -> Result<&Slots, Failure> {
        let refusal = Failure::text("ERR This instance has cluster support disabled");

        self.slots.as_deref().ok_or(refusal)
    }

    pub(crate) fn reset_stats(&self) {
        self.usage.reset();
        self.totals.received.store(0, Ordering::Relaxed);
        self.totals.sent.store(0, Ordering::Relaxed);
        self.totals.refused_connections.store(0, Ordering::Relaxed);
        self.totals.overrun_connections.store(0, Ordering::Relaxed);
        self.objects.reset_stats();
    }
}

/// The slots that the settings tell clients of.
fn slots(settings: &Settings, address: SocketAddr) -> Option<Slots> {
    let own = settings.own_address();
    let own = if own.is_empty() { address.to_string() } else { own };

    match settings.cluster {
        ClusterMode::No => None,

        ClusterMode::Single => {
            let announced = host_and_port(&own);
            let (host, port) = match announced {
                Some((host, port)) => (host.to_owned(), port),
                None => (address.ip().to_string(), address.port()),
            };
            let ranges = vec![(0, raingauge_resp::slot::COUNT - 1)];

            Slots::new(vec![SlotNode { id: id_of(&own), host, port, ranges }], 0).ok()
        }

        ClusterMode::Static => {
            let index = settings.nodes.iter().position(|node| node.address() == own)?;
            let nodes = settings.nodes.iter().map(Node::slot_node).collect();

            Slots::new(nodes, index).ok()
        }
    }
}
