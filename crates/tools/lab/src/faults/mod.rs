//! Fault injection with an equality oracle: a cluster under load is broken repeatedly, and every
//! count is compared with a model.
//!
//! ```text
//!   producers ── events, late ones, repetitions ──▶ two writers ─┐        model: each event once
//!   editor ───── new versions of counters ────────▶ portal       ├─▶ engines       │
//!   askers ───── counts ──────────────────────────▶ two readers ─┘                 ▼
//!   director ─── kills, pauses, rebalances, restarts all of them           compared: 0 different
//! ```
//!
//! An event that is not acknowledged is sent again, with the same identity, until it is. The model
//! therefore knows the correct value of every count, even though answers get lost.

mod compare;
mod deck;
mod inject;
mod model;
mod report;
mod samples;
mod traffic;

use crate::cluster::ClusterOptions;
use crate::cluster::roles::{Role, Setup};
use crate::report::Machine;
use anyhow::{Context, Result, ensure};
use clap::{Args, FromArgMatches};
use deck::Part;
pub use deck::{Fault, Kind};
use inject::{Cluster, PORTAL, READERS};
use model::{Names, Span};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
pub use report::Report;
use report::{Episode, InjectedFault};
use samples::{Door, POLL};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use traffic::{Totals, Traffic};

const PRODUCERS: usize = 3;
const ASKERS: usize = 3;
/// Longest time until every process answers again after a fault.
const BACK_MAX: Duration = Duration::from_secs(180);
/// Longest time until everything that was sent is acknowledged once nothing is broken.
const ACKNOWLEDGED_MAX: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub given: ClusterOptions,
    /// Number of faults
    #[arg(long, default_value_t = 100)]
    pub faults: usize,
    /// Only faults of this name, such as "Kafka paused"; may be repeated
    #[arg(long, value_name = "FAULT", value_parser = Kind::from_name)]
    pub only: Vec<Kind>,
    /// Seed for faults, targets, durations and events; default: a random one, which is printed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Pause after each fault, in seconds: 0.5 to 1.5 times this value
    #[arg(long, default_value_t = 2.0)]
    pub seconds_between: f64,
    /// Time under load before the first fault, in seconds
    #[arg(long, default_value_t = 10.0)]
    pub seconds_quiet: f64,
    /// Partitions of the log
    #[arg(long, default_value_t = 4)]
    pub partitions: u16,
    /// New events per second, including late ones and repetitions
    #[arg(long, default_value_t = 200.0)]
    pub events_per_s: f64,
    /// Batches of counts per second
    #[arg(long, default_value_t = 20.0)]
    pub counts_per_s: f64,
    /// Number of faults between comparisons of all counts; the last comparison is at the end
    #[arg(long, default_value_t = 25)]
    pub compare_every: usize,
    /// Folder for the logs of the roles; default: one below the servers' folder
    #[arg(long)]
    pub logs: Option<PathBuf>,
    /// File for all results as JSON; written after each comparison, and at the end even if the run
    /// fails
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// A raingauge setting that overrides this tool's value, for example
    /// cql.request_timeout_ms=5000
    #[arg(long = "set", value_name = "SETTING=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Exactly these faults, alone or in pairs, instead of random ones; for calls from code.
    #[arg(skip)]
    pub exactly: Vec<Vec<Fault>>,
}

impl Options {
    /// The defaults of the command line.
    pub fn new(given: ClusterOptions) -> Self {
        let arguments = Self::augment_args(clap::Command::new("faults"));
        let matches = arguments.get_matches_from(["faults", "--services", "."]);
        let options = Self::from_arg_matches(&matches).expect("every other option has a default");
        Self { given, ..options }
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a setting must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Injects the faults and compares the counts. An error means that the run could not start.
/// Whatever ends it later, such as a difference or a timeout, is in the report.
pub fn run(options: &Options) -> Result<Report> {
    let seed = options.seed.unwrap_or_else(rand::random);
    let machine = Machine::here();
    let started = jiff::Timestamp::now();
    let names = Names { run: format!("faults{}", started.as_millisecond()) };
    let servers = options.given.servers()?;

    let folder = options.given.logs(options.logs.as_deref(), &names.run)?;
    eprintln!("faults: seed {seed}, logs of the roles in {}", folder.display());

    let mut setup =
        Setup::new(&options.given.binary, &folder, &servers, &names.run, options.partitions)?;
    options.settings.iter().for_each(|(name, value)| setup.set(name, value));

    let mut cluster = Cluster::new(servers, setup)?;
    let span = Span::of_run(started.as_second());
    let traffic = Traffic::new(
        names.clone(),
        cluster.places(),
        span,
        options.events_per_s,
        options.counts_per_s,
    );

    let mut director = Director::new(options, seed, names, &cluster, machine, started);
    let ran = director.run(&mut cluster, &traffic);
    if ran.is_err() {
        // Leaves the servers intact for the next user.
        if let Err(error) = cluster.servers.restore_all() {
            eprintln!("faults: could not restore all servers: {error:#}");
        }
    }

    let context =
        |error: anyhow::Error| format!("{error:#} (seed {seed}, logs in {})", folder.display());
    director.report.error = ran.err().map(context);
    director.write_report(&traffic)?;

    Ok(director.report)
}

/// Injects the faults and keeps the report.
struct Director<'a> {
    options: &'a Options,
    names: Names,
    /// Determines the order of the faults. Everything else that is random has its own generators.
    random: StdRng,
    /// The results so far.
    report: Report,
}

impl<'a> Director<'a> {
    fn new(
        options: &'a Options,
        seed: u64,
        names: Names,
        cluster: &Cluster,
        machine: Machine,
        started: jiff::Timestamp,
    ) -> Self {
        let planned = match options.exactly.iter().map(Vec::len).sum() {
            0 => options.faults,
            exactly => exactly,
        };
        let report = Report {
            started: started.to_string(),
            machine,
            seed,
            faults: 0,
            faults_planned: planned,
            error: Some("the run has not finished".to_owned()),
            seconds: 0,
            nodes: cluster.servers.nodes(),
            partitions: options.partitions,
            sent: Totals::default(),
            kinds: BTreeMap::new(),
            compared: Vec::new(),
            impossible: Vec::new(),
            availability: Vec::new(),
            episodes: Vec::new(),
        };
        Self { options, names, random: StdRng::seed_from_u64(seed), report }
    }

    fn run(&mut self, cluster: &mut Cluster, traffic: &Traffic) -> Result<()> {
        cluster.setup.migrate()?;
        cluster.start()?;

        let counters = self.create_counters(cluster)?;
        let reader = &traffic.places.readers[0].1;
        compare::wait_effective(&self.names, &traffic.writers(), reader, self.options.partitions)?;

        let seed = self.report.seed;
        std::thread::scope(|scope| {
            (0..PRODUCERS).for_each(|number| {
                drop(scope.spawn(move || traffic.produce(number as u64, PRODUCERS, seed)))
            });
            (0..ASKERS).for_each(|number| {
                drop(scope.spawn(move || traffic.ask(number as u64, ASKERS, seed)))
            });
            scope.spawn(|| traffic.edit(&counters, seed));

            let broken = self.break_all(cluster, traffic);

            // The clients must stop in any case: the scope waits for them.
            traffic.ending.store(true, Ordering::Release);
            broken
        })
    }

    /// Creates the counters through the portal. The partitions receive them in the order of their
    /// ids.
    fn create_counters(&self, cluster: &Cluster) -> Result<Vec<Value>> {
        let mut client = crate::http::client::Client::connect(&cluster.roles[PORTAL].target())?;
        let create = |counter: &Value| {
            let mut created =
                client.json("POST", "/v1/counters", counter.to_string().as_bytes())?;

            // Removes the members that only the catalog sets and that an update must not contain.
            if let Some(members) = created.as_object_mut() {
                ["version", "changedBy", "changedByKind", "reason", "changedAt"]
                    .iter()
                    .for_each(|name| drop(members.remove(*name)));
            }

            Ok(created)
        };
        self.names.counters().iter().map(create).collect()
    }

    fn break_all(&mut self, cluster: &mut Cluster, traffic: &Traffic) -> Result<()> {
        let from_ms = traffic.samples.now_ms();
        std::thread::sleep(Duration::from_secs_f64(self.options.seconds_quiet));
        self.wait_until_all_answer(cluster, traffic, from_ms)?;
        self.record(traffic, Vec::new(), from_ms, 0);

        let mut next_comparison = self.options.compare_every;
        for round in self.deal(cluster) {
            self.break_once(cluster, traffic, &round)?;
            if self.report.faults >= next_comparison
                && self.report.faults < self.report.faults_planned
            {
                next_comparison += self.options.compare_every;
                self.compare(cluster, traffic, &[])?;
            }
        }

        cluster.servers.restore_all()?;
        let tables = self.start_tables_reader(cluster)?;
        self.compare(cluster, traffic, &[&tables])
    }

    fn deal(&mut self, cluster: &Cluster) -> Vec<Vec<Fault>> {
        if !self.options.exactly.is_empty() {
            return self.options.exactly.clone();
        }
        let exists = |kind: Kind| {
            let is_wanted = self.options.only.is_empty() || self.options.only.contains(&kind);
            is_wanted && (kind.part() != Part::Redis || cluster.servers.address("REDIS").is_some())
        };
        deck::deal(self.options.faults, exists, &mut self.random)
    }

    /// Injects one fault, or two at once, and records its effect on the clients even if recovery
    /// fails.
    fn break_once(
        &mut self,
        cluster: &mut Cluster,
        traffic: &Traffic,
        round: &[Fault],
    ) -> Result<()> {
        let from_ms = traffic.samples.now_ms();
        let mut done = Vec::new();
        let back_ms = self.break_and_mend(cluster, traffic, round, &mut done);
        self.record(traffic, done, from_ms, *back_ms.as_ref().unwrap_or(&0));
        back_ms.map(drop)
    }

    /// Begins the fault, lets it last, undoes it and waits for recovery. Returns the duration of
    /// the recovery in milliseconds.
    fn break_and_mend(
        &mut self,
        cluster: &mut Cluster,
        traffic: &Traffic,
        round: &[Fault],
        done: &mut Vec<InjectedFault>,
    ) -> Result<u64> {
        for fault in round {
            self.report.faults += 1;
            *self.report.kinds.entry(fault.kind.name()).or_default() += 1;

            let kind = fault.kind.name();
            let target = cluster.target(fault);
            let at_ms = traffic.samples.now_ms();
            let lasted_ms = fault.lasts.as_millis() as u64;

            eprintln!(
                "faults: {} s: {} of {}: {kind}, {target}, {lasted_ms} ms",
                at_ms / 1_000,
                self.report.faults,
                self.report.faults_planned
            );
            done.push(InjectedFault { kind, target, at_ms, lasted_ms });
            cluster.begin(fault)?;

            // The second of two begins while the first lasts.
            std::thread::sleep(fault.lasts / round.len() as u32);
        }

        // Servers first: roles may wait for them.
        let (servers, roles): (Vec<&Fault>, Vec<&Fault>) = round.iter().partition(|fault| {
            matches!(fault.kind.part(), Part::Node | Part::Broker | Part::Redis | Part::Catalog)
        });
        for fault in servers.into_iter().chain(roles) {
            cluster.end(fault, &mut self.random)?;
        }

        let mended_ms = traffic.samples.now_ms();
        cluster.wait_ready()?;

        // A restart of a node already waits for this.
        if round.iter().any(|fault| matches!(fault.kind, Kind::NodePaused | Kind::WritesTimeOut)) {
            cluster.servers.wait_for_nodes()?;
        }
        self.wait_until_all_answer(cluster, traffic, mended_ms)?;

        let back_ms = traffic.samples.now_ms() - mended_ms;
        std::thread::sleep(Duration::from_secs_f64(
            self.options.seconds_between * self.random.random_range(0.5..1.5),
        ));
        cluster.check()?;

        Ok(back_ms)
    }

    /// Waits until every process has answered a request that began after this moment.
    fn wait_until_all_answer(
        &self,
        cluster: &mut Cluster,
        traffic: &Traffic,
        since_ms: u64,
    ) -> Result<()> {
        let deadline = Instant::now() + BACK_MAX;
        for index in 0..cluster.roles.len() {
            while !traffic.samples.answered_since(index, since_ms) {
                cluster.check()?;
                let name = &cluster.roles[index].name;
                ensure!(
                    Instant::now() < deadline,
                    "{name} did not answer again within {BACK_MAX:?}; the last failures: {}",
                    traffic.last_failures()
                );
                std::thread::sleep(POLL);
            }
        }

        Ok(())
    }

    /// Records what the clients observed from `from_ms` until now.
    fn record(
        &mut self,
        traffic: &Traffic,
        faults: Vec<InjectedFault>,
        from_ms: u64,
        back_ms: u64,
    ) {
        let to_ms = traffic.samples.now_ms();
        let seen = |door| traffic.samples.seen(door, from_ms, to_ms);
        let counts = seen(Door::Counts);
        let events = seen(Door::Events);
        let changes = seen(Door::Changes);

        self.report.episodes.push(Episode {
            faults,
            from_ms,
            to_ms,
            back_ms,
            counts,
            events,
            changes,
        });
    }

    /// Starts a reader that reads counts from the three plain tables.
    fn start_tables_reader(&self, cluster: &Cluster) -> Result<Role> {
        let mut reader = Role::new("reader-tables", "reader", &[("CQL__READ_PLAN", "tables")])?;
        reader.start(&cluster.setup)?;
        reader.wait_ready(&cluster.setup)?;
        Ok(reader)
    }

    /// Stops new events, waits until all events are acknowledged and counted, and compares every
    /// count.
    fn compare(&mut self, cluster: &mut Cluster, traffic: &Traffic, more: &[&Role]) -> Result<()> {
        traffic.producing.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + ACKNOWLEDGED_MAX;
        while traffic.backlog.load(Ordering::SeqCst) > 0 {
            cluster.check()?;
            ensure!(
                Instant::now() < deadline,
                "{} batches were not acknowledged within {ACKNOWLEDGED_MAX:?}; the last failures: {}",
                traffic.backlog.load(Ordering::SeqCst),
                traffic.last_failures()
            );
            std::thread::sleep(POLL);
        }

        let round = self.report.compared.len();
        compare::wait_applied(&self.names, &traffic.writers(), self.options.partitions, round)?;

        let known =
            READERS.iter().map(|reader| &cluster.roles[*reader]).chain(more.iter().copied());
        let readers: Vec<_> = known.map(|role| (role.name.clone(), role.target())).collect();
        let dealt = self.report.faults;
        let mut random = StdRng::seed_from_u64(self.report.seed ^ dealt as u64);
        let compared =
            compare::compare(&traffic.model(), traffic.span, &readers, dealt, &mut random)?;

        eprintln!(
            "faults: after {dealt} faults {} counts and {} points of series were compared: {} different, deviation {}",
            compared.counts, compared.series_points, compared.different, compared.deviation
        );
        compared.differences.iter().for_each(|line| eprintln!("faults: DIFFERENT {line}"));
        self.report.compared.push(compared);
        self.write_report(traffic)?;
        traffic.producing.store(true, Ordering::SeqCst);

        Ok(())
    }

    /// Updates the report, and writes it to its file if one is given.
    fn write_report(&mut self, traffic: &Traffic) -> Result<()> {
        self.report.seconds = traffic.samples.now_ms() / 1_000;
        self.report.sent = traffic.sent.totals();
        self.report.impossible = traffic.impossible.lock().clone();
        self.report.availability = report::availability(&self.report.episodes);
        let Some(path) = &self.options.json else {
            return Ok(());
        };
        let json = serde_json::to_vec_pretty(&self.report)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))
    }
}
