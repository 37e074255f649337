//! Faults with an equality oracle: a cluster is broken under load, again and again, and every count is compared.
//!
//! ```text
//!   producers ── events, late ones and repetitions ──▶ two writers ─┐         model: each event once
//!   editor ───── new versions of counters ───────────▶ portal       ├─▶ engines        │
//!   askers ───── counts ─────────────────────────────▶ two readers ─┘                  ▼
//!   director ─── kills, pauses, rebalances, restarts all of them            compared at the end: 0 different
//! ```
//!
//! An event that is not acknowledged is sent again, with its identity, until it is. So the model knows what every count
//! has to be, although answers get lost.

mod compare;
mod deck;
mod inject;
mod model;
mod report;
mod roles;
mod samples;
mod servers;
mod traffic;

use crate::report::Machine;
use anyhow::{Context, Result, ensure};
use compare::Compared;
use deck::{Fault, Kind, Part};
use inject::{Cluster, PORTAL, READERS, WRITERS};
use model::{Names, Span};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
pub use report::Report;
use report::{Done, Episode};
use roles::{Role, Setup};
use samples::{Door, POLL};
use serde_json::Value;
use servers::Servers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use traffic::{Places, Traffic};

const PRODUCERS: usize = 3;
const ASKERS: usize = 3;
/// Load on a whole cluster, before the first fault.
const QUIET: Duration = Duration::from_secs(10);
/// How long every process may take to answer again after a fault.
const BACK_MAX: Duration = Duration::from_secs(180);
/// How long it may take until all that was sent is acknowledged, when nothing is broken any more.
const ACKNOWLEDGED_MAX: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Folder of running servers, as `scripts/services start` made it
    #[arg(long)]
    pub services: PathBuf,
    /// The script that started them
    #[arg(long, default_value = "scripts/services")]
    pub script: PathBuf,
    /// The raingauge program
    #[arg(long)]
    pub binary: PathBuf,
    /// How many faults
    #[arg(long, default_value_t = 100)]
    pub faults: usize,
    /// Chooses faults, targets, durations and events; default: a random one, which is printed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Rest after each fault, in seconds: half to one and a half times this
    #[arg(long, default_value_t = 2.0)]
    pub seconds_between: f64,
    /// Partitions of the log
    #[arg(long, default_value_t = 4)]
    pub partitions: u16,
    /// New events per second; late ones and repetitions are among them
    #[arg(long, default_value_t = 200.0)]
    pub events_per_s: f64,
    /// Batches of counts asked per second
    #[arg(long, default_value_t = 20.0)]
    pub counts_per_s: f64,
    /// Faults after which all counts are compared, besides the end
    #[arg(long, default_value_t = 25)]
    pub compare_every: usize,
    /// Folder for the logs of the roles; default: one below the servers' folder
    #[arg(long)]
    pub logs: Option<PathBuf>,
}

/// Runs the faults and compares. An error says what was waited for in vain; a deviation is in the report.
pub fn run(options: &Options) -> Result<Report> {
    let seed = options.seed.unwrap_or_else(rand::random);
    let started = jiff::Timestamp::now();
    let names = Names { run: format!("faults{}", started.as_millisecond()) };
    let servers = Servers::new(&options.script, &options.services)?;
    let folder = options.logs.clone().unwrap_or_else(|| options.services.join("logs").join(&names.run));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    eprintln!("faults: seed {seed}, logs of the roles in {}", folder.display());
    let setup = Setup::new(&options.binary, &absolute(&folder)?, &servers, &names.run, options.partitions)?;
    let mut cluster = Cluster::new(servers, setup)?;
    let ran = Director::new(options, seed, names, started.as_second()).run(&mut cluster);
    if ran.is_err() {
        // Whoever uses the servers next finds them whole.
        if let Err(error) = cluster.servers.mend() {
            eprintln!("faults: the servers could not all be brought back: {error:#}");
        }
    }
    ran.with_context(|| format!("seed {seed}, logs in {}", folder.display()))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}

/// Deals the faults out and keeps the record.
struct Director<'a> {
    options: &'a Options,
    seed: u64,
    names: Names,
    started_s: i64,
    /// The order of the faults. Whatever else is random has generators of its own.
    random: StdRng,
    episodes: Vec<Episode>,
    compared: Vec<Compared>,
    kinds: BTreeMap<&'static str, usize>,
    dealt: usize,
}

impl<'a> Director<'a> {
    fn new(options: &'a Options, seed: u64, names: Names, started_s: i64) -> Self {
        Self {
            options,
            seed,
            names,
            started_s,
            random: StdRng::seed_from_u64(seed),
            episodes: Vec::new(),
            compared: Vec::new(),
            kinds: BTreeMap::new(),
            dealt: 0,
        }
    }

    fn run(mut self, cluster: &mut Cluster) -> Result<Report> {
        let machine = Machine::here();
        cluster.setup.migrate()?;
        cluster.start()?;
        let counters = self.create_counters(cluster)?;
        let place = |index: usize| (index, cluster.roles[index].target());
        let places = Places {
            writers: WRITERS.map(place).to_vec(),
            readers: READERS.map(place).to_vec(),
            portal: place(PORTAL),
        };
        let Options { events_per_s, counts_per_s, .. } = *self.options;
        let span = Span::of_run(self.started_s);
        let traffic = Traffic::new(self.names.clone(), places, span, events_per_s, counts_per_s);
        let writers: Vec<_> = traffic.places.writers.iter().map(|(_, target)| target).collect();
        let reader = &traffic.places.readers[0].1;
        compare::wait_effective(&self.names, &writers, reader, self.options.partitions)?;
        let (shared, seed) = (&traffic, self.seed);
        std::thread::scope(|scope| {
            (0..PRODUCERS).for_each(|number| drop(scope.spawn(move || shared.produce(number as u64, PRODUCERS, seed))));
            (0..ASKERS).for_each(|number| drop(scope.spawn(move || shared.ask(number as u64, ASKERS, seed))));
            scope.spawn(|| shared.edit(&counters, seed));
            let broken = self.break_all(cluster, &traffic);
            // Whatever happened, the clients end, or the scope would not.
            traffic.ending.store(true, Ordering::Release);
            broken
        })?;
        Ok(self.report(machine, cluster, &traffic))
    }

    /// The portal makes them. The partitions learn of them in the order of their ids.
    fn create_counters(&self, cluster: &Cluster) -> Result<Vec<Value>> {
        let mut client = crate::http::client::Client::connect(&cluster.roles[PORTAL].target())?;
        let create = |counter: &Value| {
            let mut created = client.json("POST", "/v1/counters", counter.to_string().as_bytes())?;
            // What a change may not hold is what only the catalog knows.
            if let Some(members) = created.as_object_mut() {
                ["version", "changedBy", "reason", "changedAt"].iter().for_each(|name| drop(members.remove(*name)));
            }
            Ok(created)
        };
        self.names.counters().iter().map(create).collect()
    }

    fn break_all(&mut self, cluster: &mut Cluster, traffic: &Traffic) -> Result<()> {
        std::thread::sleep(QUIET);
        self.wait_until_all_answer(cluster, traffic, 0)?;
        let quiet_ms = traffic.samples.now_ms();
        self.record(traffic, Vec::new(), 0, quiet_ms, 0);
        let exists = |part| match part {
            Part::Redis => cluster.servers.address("REDIS").is_some(),
            _ => true,
        };
        let rounds = deck::deal(self.options.faults, exists, &mut self.random);
        let mut next_comparison = self.options.compare_every;
        for round in rounds {
            self.break_once(cluster, traffic, &round)?;
            if self.dealt >= next_comparison && self.dealt < self.options.faults {
                next_comparison += self.options.compare_every;
                self.compare(cluster, traffic, &[])?;
            }
        }
        cluster.servers.mend()?;
        let tables = self.start_tables_reader(cluster)?;
        self.compare(cluster, traffic, &[&tables])
    }

    /// One fault, or two at once: begun, left for a while, undone, and recovered from.
    fn break_once(&mut self, cluster: &mut Cluster, traffic: &Traffic, round: &[Fault]) -> Result<()> {
        let from_ms = traffic.samples.now_ms();
        let mut done = Vec::new();
        for fault in round {
            self.dealt += 1;
            *self.kinds.entry(fault.kind.name()).or_default() += 1;
            let (kind, target, at_ms) = (fault.kind.name(), cluster.target(fault), traffic.samples.now_ms());
            let lasted_ms = fault.lasts.as_millis() as u64;
            eprintln!(
                "faults: {} s: {} of {}: {kind}, {target}, {lasted_ms} ms",
                at_ms / 1_000,
                self.dealt,
                self.options.faults
            );
            done.push(Done { kind, target, at_ms, lasted_ms });
            cluster.begin(fault)?;
            // The second of two comes while the first lasts.
            std::thread::sleep(fault.lasts / round.len() as u32);
        }
        // Servers first: roles may wait for them.
        let (servers, roles): (Vec<&Fault>, Vec<&Fault>) = round
            .iter()
            .partition(|fault| matches!(fault.kind.part(), Part::Node | Part::Broker | Part::Redis | Part::Catalog));
        for fault in servers.into_iter().chain(roles) {
            cluster.end(fault, &mut self.random)?;
        }
        let mended_ms = traffic.samples.now_ms();
        cluster.wait_ready()?;
        // Whoever starts a node waits for this already.
        if round.iter().any(|fault| matches!(fault.kind, Kind::NodePaused | Kind::WritesTimeOut)) {
            cluster.servers.wait_for_nodes()?;
        }
        self.wait_until_all_answer(cluster, traffic, mended_ms)?;
        let back_ms = traffic.samples.now_ms() - mended_ms;
        std::thread::sleep(Duration::from_secs_f64(self.options.seconds_between * self.random.random_range(0.5..1.5)));
        cluster.check()?;
        let to_ms = traffic.samples.now_ms();
        self.record(traffic, done, from_ms, to_ms, back_ms);
        Ok(())
    }

    /// Waits until every process has answered something that was asked after this moment.
    fn wait_until_all_answer(&self, cluster: &mut Cluster, traffic: &Traffic, since_ms: u64) -> Result<()> {
        let deadline = Instant::now() + BACK_MAX;
        for index in 0..cluster.roles.len() {
            while !traffic.samples.answered_since(index, since_ms) {
                cluster.check()?;
                let name = &cluster.roles[index].name;
                ensure!(
                    Instant::now() < deadline,
                    "waited {BACK_MAX:?} until {name} answered again; the last failures: {}",
                    traffic.last_failures()
                );
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }

    fn record(&mut self, traffic: &Traffic, faults: Vec<Done>, from_ms: u64, to_ms: u64, back_ms: u64) {
        let seen = |door| traffic.samples.seen(door, from_ms, to_ms);
        let (counts, events, changes) = (seen(Door::Counts), seen(Door::Events), seen(Door::Changes));
        self.episodes.push(Episode { faults, from_ms, to_ms, back_ms, counts, events, changes });
    }

    /// A reader that takes the counts from the three plain tables.
    fn start_tables_reader(&self, cluster: &Cluster) -> Result<Role> {
        let mut reader = Role::new("reader-tables", "reader", &[("CQL__READ_PLAN", "tables")])?;
        reader.start(&cluster.setup)?;
        reader.wait_ready(&cluster.setup)?;
        Ok(reader)
    }

    /// No new events; all that were sent are acknowledged and counted; then every count is compared.
    fn compare(&mut self, cluster: &mut Cluster, traffic: &Traffic, more: &[&Role]) -> Result<()> {
        traffic.producing.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + ACKNOWLEDGED_MAX;
        while traffic.backlog.load(Ordering::SeqCst) > 0 {
            cluster.check()?;
            ensure!(
                Instant::now() < deadline,
                "waited {ACKNOWLEDGED_MAX:?} until {} batches were acknowledged; the last failures: {}",
                traffic.backlog.load(Ordering::SeqCst),
                traffic.last_failures()
            );
            std::thread::sleep(POLL);
        }
        let writers: Vec<_> = traffic.places.writers.iter().map(|(_, target)| target).collect();
        compare::wait_applied(&self.names, &writers, self.options.partitions, self.compared.len())?;
        let known = READERS.iter().map(|reader| &cluster.roles[*reader]).chain(more.iter().copied());
        let readers: Vec<_> = known.map(|role| (role.name.clone(), role.target())).collect();
        let mut random = StdRng::seed_from_u64(self.seed ^ self.dealt as u64);
        let compared = compare::compare(&traffic.model(), traffic.span, &readers, self.dealt, &mut random)?;
        eprintln!(
            "faults: after {} faults {} counts and {} points of series were compared: {} different, deviation {}",
            self.dealt, compared.counts, compared.series_points, compared.different, compared.deviation
        );
        compared.differences.iter().for_each(|line| eprintln!("faults: DIFFERENT {line}"));
        self.compared.push(compared);
        traffic.producing.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn report(self, machine: Machine, cluster: &Cluster, traffic: &Traffic) -> Report {
        let number = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let impossible = traffic.impossible.lock().map(|lines| lines.clone()).unwrap_or_default();
        Report {
            started: jiff::Timestamp::from_second(self.started_s).map(|time| time.to_string()).unwrap_or_default(),
            machine,
            seed: self.seed,
            faults: self.dealt,
            seconds: traffic.samples.now_ms() / 1_000,
            nodes: cluster.servers.nodes(),
            partitions: self.options.partitions,
            events: number(&traffic.sent.events),
            events_late: number(&traffic.sent.late),
            events_repeated: number(&traffic.sent.repeated),
            changes: number(&traffic.sent.changes),
            kinds: self.kinds,
            compared: self.compared,
            impossible,
            episodes: self.episodes,
        }
    }
}
