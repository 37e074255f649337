//! An engine whose nodes take ten minutes each, on a clock that follows the one of the runtime.

use raingauge_operations::maintenance::{Maintenance, Options, Schedules};
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::maintenance::{Compactor, Error, Lease, Node, Progress};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// 2026-11-20T00:00:00Z, when every test begins.
pub const MIDNIGHT_S: i64 = 1_795_132_800;
const NODE_TAKES: Duration = Duration::from_secs(600);

pub fn node(rack: &str, name: &str) -> Node {
    Node { rack: rack.to_owned(), name: name.to_owned() }
}

/// From midnight to a time of the day.
pub fn at(time: &str) -> Duration {
    let part = |at: usize| time[at..at + 2].parse::<u64>().expect("HH:MM:SS");
    Duration::from_secs(part(0) * 3_600 + part(3) * 60 + part(6))
}

pub fn options(schedule: &str) -> Options {
    Options {
        schedules: Schedules::parse(schedule, "UTC").expect("a schedule"),
        pause: Duration::from_secs(60),
        ..Options::default()
    }
}

pub fn maintenance(engine: &Engine, options: Options) -> Maintenance {
    let shared = Arc::new(engine.clone());
    Maintenance::start(
        Arc::clone(&shared) as Arc<dyn Compactor>,
        Arc::clone(&shared) as Arc<dyn Lease>,
        shared,
        options,
    )
}

/// Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    can_stop: bool,
    broken: Option<&'static str>,
    nodes: Vec<Node>,
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    leapt_s: AtomicI64,
    log: Mutex<Vec<String>>,
    lease: Mutex<Vec<String>>,
    at_once: AtomicUsize,
    at_once_max: AtomicUsize,
    lease_is_elsewhere: AtomicBool,
    lease_is_broken: AtomicBool,
    node_began: Mutex<Option<Instant>>,
}

impl Engine {
    pub fn new(nodes: Vec<Node>) -> Self {
        let shared = Shared {
            began: Instant::now(),
            leapt_s: AtomicI64::new(0),
            log: Mutex::default(),
            lease: Mutex::default(),
            at_once: AtomicUsize::new(0),
            at_once_max: AtomicUsize::new(0),
            lease_is_elsewhere: AtomicBool::new(false),
            lease_is_broken: AtomicBool::new(false),
            node_began: Mutex::default(),
        };
        Self { can_stop: true, broken: None, nodes, shared: Arc::new(shared) }
    }

    pub fn that_cannot_stop(self) -> Self {
        Self { can_stop: false, ..self }
    }

    /// One node fails, or the list of nodes when it is `list`, or everything breaks when it is
    /// `panic`.
    pub fn broken(self, what: &'static str) -> Self {
        Self { broken: Some(what), ..self }
    }

    /// The requests to the nodes, in order.
    pub fn log(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }

    /// What the lease was asked for; renewals are left out.
    pub fn lease(&self) -> Vec<String> {
        let mut asked = self.shared.lease.lock().unwrap().clone();
        asked.dedup();
        asked
    }

    pub fn at_once_max(&self) -> usize {
        self.shared.at_once_max.load(Ordering::SeqCst)
    }

    pub fn give_lease_away(&self) {
        self.shared.lease_is_elsewhere.store(true, Ordering::SeqCst);
    }

    pub fn break_lease(&self) {
        self.shared.lease_is_broken.store(true, Ordering::SeqCst);
    }

    /// Sets the clock, which the runtime does not notice.
    pub fn leap(&self, seconds: i64) {
        self.shared.leapt_s.fetch_add(seconds, Ordering::SeqCst);
    }

    fn note(&self, what: &str, node: &Node) {
        self.shared.log.lock().unwrap().push(format!("{what} {} {}", node.rack, node.name));
    }
}

impl Clock for Engine {
    fn now_ms(&self) -> i64 {
        let leapt_s = self.shared.leapt_s.load(Ordering::SeqCst);
        (MIDNIGHT_S + leapt_s) * 1_000 + self.shared.began.elapsed().as_millis() as i64
    }
}

/// Counts those who are at work, whether they end or are dropped.
struct AtWork<'a>(&'a Shared);

impl<'a> AtWork<'a> {
    fn new(shared: &'a Shared) -> Self {
        let now = shared.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        shared.at_once_max.fetch_max(now, Ordering::SeqCst);
        *shared.node_began.lock().unwrap() = Some(Instant::now());
        Self(shared)
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Compactor for Engine {
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<Node>, Error>> {
        Box::pin(async {
            match self.broken {
                Some("list") => Err(Error("nobody answers".to_owned())),
                _ => Ok(self.nodes.clone()),
            }
        })
    }

    fn compact<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.note("compact", node);
            let _at_work = AtWork::new(&self.shared);
            assert_ne!(node.name, "panic", "an engine may have faults");
            if self.broken == Some(node.name.as_str()) {
                return Err(Error("the disk is full".to_owned()));
            }
            sleep(NODE_TAKES).await;
            Ok(())
        })
    }

    fn can_stop(&self) -> bool {
        self.can_stop
    }

    fn stop<'a>(&'a self, node: &'a Node) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.note("stop", node);
            Ok(())
        })
    }

    fn progress<'a>(&'a self, _: &'a Node) -> BoxFuture<'a, Result<Option<Progress>, Error>> {
        let done =
            self.shared.node_began.lock().unwrap().map_or(0, |began| began.elapsed().as_secs());
        Box::pin(async move {
            Ok(Some(Progress { done, total: NODE_TAKES.as_secs(), unit: "bytes".to_owned() }))
        })
    }
}

impl Lease for Engine {
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>> {
        self.shared.lease.lock().unwrap().push("hold".to_owned());
        Box::pin(async {
            if self.shared.lease_is_broken.load(Ordering::SeqCst) {
                return Err(Error("nobody answers".to_owned()));
            }
            Ok(!self.shared.lease_is_elsewhere.load(Ordering::SeqCst))
        })
    }

    fn release(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.shared.lease.lock().unwrap().push("release".to_owned());
        Box::pin(async { Ok(()) })
    }
}
