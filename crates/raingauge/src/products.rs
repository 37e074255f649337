//! Products: what this program does beside counting, each added by one registration.
//!
//! ```text
//!   Product ── groups ──────▶ settings: reader, reference page, messages
//!      └────── configure ──▶ Opening ── Foundation ──▶ Additions
//!                                                       ├─ kinds ─────▶ drafts and approval
//!                                                       ├─ consumers ─▶ threads over the log
//!                                                       ├─ services ──▶ threads of their own
//!                                                       ├─ waits ─────▶ what senders wait for
//!                                                       ├─ routes ────▶ HTTP door, contract
//!                                                       ├─ methods ───▶ gRPC door
//!                                                       ├─ pages ─────▶ portal, navigation
//!                                                       ├─ objects ───▶ door for Redis clients
//!                                                       └─ tasks ─────▶ background work
//! ```
//!
//! A product brings its own services: its handlers and pages capture them, and neither the doors
//! nor the other services know them.

#[cfg(test)]
pub mod tests;

mod campaigns;
mod objects;
mod points;

pub use campaigns::HISTORY;
pub use objects::OpenObjects;

use crate::services::{BookPlace, Consumers, TopicPlace};
use anyhow::Context as _;
use raingauge_app::{Role, Wait};
use raingauge_consumers::{Consumer, Runner};
use raingauge_counters::Counters;
use raingauge_counters::documents::DocumentKind;
use raingauge_grpc::MethodSource;
use raingauge_http::Routes;
use raingauge_portal::Pages;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::DocumentStore;
use raingauge_ports::clock::Clock;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::{EventLog, EventSink, Offset};
use raingauge_ports::maintenance::Lease;
use raingauge_ports::points::Points;
use raingauge_ports::published::Published;
use raingauge_ports::scans::Scans;
use raingauge_reader::Reader as Counts;
use raingauge_settings::{Group, Reader};
use raingauge_writer::Ingest;
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The products of this program.
/// Each may use what those before it add.
pub const PRODUCTS: &[Product] = &[points::PRODUCT, campaigns::PRODUCT, objects::PRODUCT];

/// One product.
#[derive(Clone, Copy)]
pub struct Product {
    /// Its settings.
    pub groups: &'static [Group],
    /// Reads its settings, and returns what opens the product with them.
    pub configure: fn(&mut Reader) -> Opening,
}

/// Opens the services of a product, with its settings.
pub struct Opening {
    settings: Box<dyn ProductSettings>,
    open: Open,
    /// Topics of Kafka that it publishes to, which `raingauge migrate` makes.
    streams: Vec<String>,
}

type Open = Box<dyn Fn(Foundation) -> BoxFuture<'static, anyhow::Result<Additions>> + Send + Sync>;

/// The settings of a product, of any type.
trait ProductSettings: Any + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<S: PartialEq + Any + Send + Sync> ProductSettings for S {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<S>().is_some_and(|other| self == other)
    }
}

impl Opening {
    pub fn new<S, R>(settings: S, open: impl Fn(S, Foundation) -> R + Send + Sync + 'static) -> Self
    where
        S: Clone + PartialEq + Send + Sync + 'static,
        R: Future<Output = anyhow::Result<Additions>> + Send + 'static,
    {
        let own = settings.clone();
        let open: Open = Box::new(move |foundation| Box::pin(open(own.clone(), foundation)));
        Self { settings: Box::new(settings), open, streams: Vec::new() }
    }

    /// The same product, which publishes to a topic of Kafka.
    pub fn with_stream(mut self, topic: Option<String>) -> Self {
        self.streams.extend(topic);
        self
    }
}

/// A clock that is further from that of the machine is one of an experiment.
const EXPERIMENT_SHIFT_MS: u64 = 1_000;

/// The products of a configuration, with their settings.
#[derive(Clone, Default)]
pub struct Openings(Arc<[Opening]>);

/// What a product may build upon.
#[derive(Clone)]
#[allow(dead_code, reason = "each product uses a part of it")]
pub struct Foundation {
    /// The roles of this process.
    pub roles: Vec<Role>,
    pub data_dir: PathBuf,
    /// Bytes that are kept free on its disk.
    pub reserve_bytes: u64,
    /// Most table files that the store of counts keeps open, which follows the limit of the system.
    pub open_files_max: usize,
    /// The clock of events and counts.
    pub clock: Arc<dyn Clock>,
    /// The clock by which objects expire. It knows whether it is wrong.
    pub object_clock: Arc<dyn Clock>,
    /// The wall clock of people, independent of the log.
    pub wall_clock: Arc<dyn Clock>,
    /// Every partition of the log.
    pub logs: Vec<Arc<dyn EventLog>>,
    /// Where events and control entries are appended.
    pub sink: Arc<dyn EventSink>,
    /// Documents of products, in the database of the catalog.
    pub documents: Arc<dyn DocumentStore>,
    /// Where the books of points are.
    pub book_place: BookPlace,
    /// Where the topics of points are.
    pub topic_place: TopicPlace,
    /// The right to announce entries of points.
    pub points_lease: Arc<dyn Lease>,
    /// Awards points, where a product before this one does.
    pub points: Option<Arc<dyn Points>>,
    /// What is counted.
    pub published: Arc<Published>,
    /// The turns in which the log is read for callers.
    pub scans: Scans,
    pub consumers: Option<Consumers>,
    pub ingest: Arc<Ingest>,
    pub counters: Arc<Counters>,
    pub counts: Arc<Counts>,
}

/// What a product adds to a process.
pub struct Additions {
    /// Kinds of documents that are proposed as drafts, and approved.
    pub kinds: Vec<Arc<dyn DocumentKind>>,
    pub consumers: Vec<Runner>,
    /// Work in threads of its own, in the order in which it ends.
    pub services: Vec<Arc<dyn Service>>,
    /// What callers that send events may wait for.
    pub waits: Vec<Wait>,
    pub routes: Routes,
    /// Methods of the gRPC door.
    pub methods: Vec<Arc<dyn MethodSource>>,
    pub pages: Pages,
    /// Work that runs until the process ends.
    pub tasks: Vec<BoxFuture<'static, ()>>,
    /// Awards points for the products that follow.
    pub points: Option<Arc<dyn Points>>,
    /// What the door for Redis clients works on, where it is to open.
    pub objects: Option<OpenObjects>,
}

/// Work of a product that goes on while the process runs.
pub trait Service: Send + Sync {
    /// Why it makes no progress, in a sentence.
    fn trouble(&self) -> Option<String>;

    /// Why this process should get no requests any more, in a sentence.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Ends it, behind what is under way. Blocks the thread.
    fn stop(&self);
}

impl Foundation {
    /// The clock by which points expire. That of the log knows whether it is wrong, and then
    /// nothing is removed; over the engines of a cluster, each turn compares it with the database.
    pub fn guarded_clock(&self) -> Arc<dyn Clock> {
        self.unless_experiment(&self.clock)
    }

    /// The clock by which objects expire: nothing does while it is wrong.
    pub fn object_clock(&self) -> Arc<dyn Clock> {
        self.unless_experiment(&self.object_clock)
    }

    /// A clock that may be judged; that of an experiment is set on purpose, and jumps.
    fn unless_experiment(&self, judged: &Arc<dyn Clock>) -> Arc<dyn Clock> {
        let wall = &self.wall_clock;
        let shift_ms = wall.now_ms().abs_diff(wall.machine_ms());
        let is_experiment = wall.pace() != 1 || shift_ms > EXPERIMENT_SHIFT_MS;
        Arc::clone(if is_experiment { wall } else { judged })
    }

    /// Opens a consumer of the log. One that never ran begins at `first`.
    #[allow(dead_code, reason = "campaigns commit to a ledger of their own")]
    pub fn consumer(&self, name: &str, first: Offset) -> anyhow::Result<Consumer> {
        let consumers = self.consumers.as_ref();
        let Consumers { store, registry } =
            consumers.context("over the engines of a cluster, only counting reads the log")?;
        let name = Name::new(name).with_context(|| format!("{name:?} names no consumer"))?;
        let log = self.logs.first().context("there is no log")?;
        Ok(Consumer::open(name, Arc::clone(log), Arc::clone(store), registry, first)?)
    }
}

impl Openings {
    /// Reads the settings of products.
    pub fn read(products: &[Product], reader: &mut Reader) -> Self {
        Self(products.iter().map(|product| (product.configure)(reader)).collect())
    }

    /// Topics of Kafka that the products publish to.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "only a cluster has topics"))]
    pub fn streams(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|opening| opening.streams.iter().map(String::as_str))
    }

    /// Opens the products, in their order.
    pub async fn open(&self, foundation: &Foundation) -> anyhow::Result<Additions> {
        let mut all = Additions::default();
        for opening in self.0.iter() {
            let foundation = Foundation { points: all.points.clone(), ..foundation.clone() };
            let Additions {
                kinds,
                consumers,
                services,
                waits,
                routes,
                methods,
                pages,
                tasks,
                points,
                objects,
            } = (opening.open)(foundation).await?;
            all.kinds.extend(kinds);
            all.consumers.extend(consumers);
            all.services.extend(services);
            all.waits.extend(waits);
            all.routes = all.routes.join(routes);
            all.methods.extend(methods);
            all.pages = all.pages.join(pages);
            all.tasks.extend(tasks);
            all.points = all.points.or(points);
            all.objects = all.objects.or(objects);
        }
        Ok(all)
    }
}

impl Default for Additions {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            consumers: Vec::new(),
            services: Vec::new(),
            waits: Vec::new(),
            routes: Routes::everywhere(),
            methods: Vec::new(),
            pages: Pages::default(),
            tasks: Vec::new(),
            points: None,
            objects: None,
        }
    }
}

impl PartialEq for Openings {
    fn eq(&self, other: &Self) -> bool {
        let is_equal = |(own, other): (&Opening, &Opening)| {
            let other: &dyn Any = &*other.settings;
            own.settings.equals(other)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&*other.0).all(is_equal)
    }
}

impl Eq for Openings {}

impl fmt::Debug for Openings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} products", self.0.len())
    }
}
