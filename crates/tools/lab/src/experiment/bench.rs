//! Runs an experiment, from the engines to the record.

use super::asking::{Asking, SampledCount};
use super::place::{self, Place};
use super::policy;
use super::probe::{Probe, Store};
use super::record::{BatchRecord, LAB, Record, Sample, Step};
use super::scenario::{Action, Scenario};
use super::steps::Steps;
use super::stream::{SentEvent, Stream};
use super::truth::Truth;
use crate::cluster::roles::Role;
use crate::cluster::servers::Servers;
use crate::cluster::{ClusterOptions, create_folder};
use crate::cores;
use crate::fast::Fast;
use crate::http::Target;
use crate::http::client::Client;
use crate::http::load::{self, Sockets};
use crate::measure::{Pace, Run};
use crate::plan::{DAY_S, HOUR_S, QUARTER_S, floor};
use crate::report::Machine;
use crate::traffic::arrivals::Clients;
use crate::traffic::questions::{self, Keys, Questions, RangeQuery};
use anyhow::{Context, Result, anyhow, ensure};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 32;
/// Lengths of the ranges that are compared at the end.
const COMPARED_S: [i64; 4] = [HOUR_S, DAY_S, 7 * DAY_S, 9 * DAY_S / 2];
const ASKED_AT_ONCE: usize = 500;
const EQUAL_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Time to live of a sum in the result cache, by the service's clock.
const RESULT_TTL_MS: i64 = 300_000;
/// Longest time until an event is counted, by the machine's clock.
const COUNTED_MAX_MS: i64 = 5_000;
/// Time that the processes get to become ready before the fast clock starts.
const READY: Duration = Duration::from_secs(20);
/// The servers that are monitored: part and server name.
const ENGINES: [(&str, &str); 4] =
    [("cassandra", "cassandra-1"), ("redis", "redis"), ("kafka", "kafka"), ("mariadb", "mariadb")];
const TABLES: [&str; 5] =
    ["minutely_count_table", "hourly_count_table", "daily_count_table", "tile_table", "span_table"];

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub given: ClusterOptions,
    /// The timeline and the traffic; default: the published ones
    #[arg(long)]
    pub scenario: Option<PathBuf>,
    /// Folder for the report and the logs of the processes
    #[arg(long)]
    pub out: PathBuf,
    /// Gives readers and clients real-time priority over everything else on this machine, as if
    /// they had machines of their own; requires root
    #[arg(long)]
    pub prefer: bool,
}

impl Options {
    /// Creates the folder for the logs of the processes.
    fn logs(&self) -> Result<PathBuf> {
        create_folder(&self.out.join("logs"))
    }
}

/// The engines and their processes, loaded and running under the fast clock.
pub struct Bench<'a> {
    scenario: &'a Scenario,
    place: Place,
    processes: BTreeMap<String, u32>,
    contact_points: Option<String>,
    keys: Keys,
    /// All events so far.
    happened: Vec<SentEvent>,
    buckets: usize,
    prefer: bool,
    clock: Fast,
    machine: Machine,
    started: jiff::Timestamp,
}

/// How counters are cached in a part of a run, by which plan they are read, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct Treatment<'a> {
    pub plan: &'a str,
    pub before: &'a str,
    pub after: &'a str,
    /// `None` sends batches at the times of the traffic model.
    pub pace: Option<Pace>,
}

/// An interval of the service's time, in milliseconds since 1970. Its first part, before the
/// recording, only fills caches, once per key.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub from_ms: i64,
    pub recorded_from_ms: i64,
    pub to_ms: i64,
}

/// The results of the threads that run beside the traffic.
struct Beside {
    sent: Vec<SentEvent>,
    samples: Vec<Sample>,
    steps: Vec<Step>,
}

/// Runs a scenario from start to end.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Record> {
    let mut bench = Bench::on_cluster(scenario, &[&scenario.plan], options)?;
    let treatment = Treatment {
        plan: &scenario.plan,
        before: &scenario.before,
        after: &scenario.after,
        pace: None,
    };
    let (from_ms, to_ms) = (scenario.from_ms()?, scenario.to_ms()?);
    let record = bench.record(
        treatment,
        Window { from_ms, recorded_from_ms: from_ms, to_ms },
        &scenario.actions()?,
    )?;
    bench.stop()?;
    Ok(record)
}

impl<'a> Bench<'a> {
    /// Uses the engines of a cluster, with one reader per plan.
    pub fn on_cluster(scenario: &'a Scenario, plans: &[&str], options: &Options) -> Result<Self> {
        let machine = Machine::here();
        let started = jiff::Timestamp::now();
        let servers = options.given.servers()?;
        let name = format!("lab{}", started.as_millisecond());
        let place =
            Place::on_cluster(plans, &servers, &options.given.binary, &name, &options.logs()?)?;

        let mut bench = Self::loaded(scenario, place, options.prefer, (machine, started))?;
        let contact_points = servers.needed("CQL")?;
        flush_by_clock(&Store::connect(contact_points)?, &servers, scenario, &name)?;
        bench.contact_points = Some(contact_points.to_owned());

        for (part, name) in ENGINES {
            bench.processes.insert(part.to_owned(), servers.process(name)?);
        }
        bench.restart_fast()?;
        Ok(bench)
    }

    /// Uses the embedded engines, in one process.
    pub fn embedded(scenario: &'a Scenario, options: &Options) -> Result<Self> {
        let machine = Machine::here();
        let started = jiff::Timestamp::now();
        let place = Place::embedded(&options.given.binary, &options.logs()?)?;
        let mut bench = Self::loaded(scenario, place, options.prefer, (machine, started))?;
        bench.restart_fast()?;
        Ok(bench)
    }

    /// Starts the processes under a clock that stands at the beginning of the scenario and hardly
    /// moves, and loads the history.
    fn loaded(
        scenario: &'a Scenario,
        mut place: Place,
        prefer: bool,
        (machine, started): (Machine, jiff::Timestamp),
    ) -> Result<Self> {
        let clock = Fast::starting(scenario.from_ms()?, 1);
        place.set("clock.experiment", &clock.setting());
        place.start()?;

        let keys = Keys::new(&scenario.traffic);
        let history = keys.history(&scenario.traffic, scenario.from_ms()?.div_euclid(1_000));
        place.make_counters(&keys)?;

        let buckets = place.load(&keys, &history)?;
        eprintln!("lab: {buckets} buckets of history stored");

        let happened = history.into_iter().map(|(rank, time_s)| (rank, time_s, i64::MIN)).collect();
        let processes = BTreeMap::new();
        let contact_points = None;

        Ok(Self {
            scenario,
            place,
            processes,
            contact_points,
            keys,
            happened,
            buckets,
            prefer,
            clock,
            machine,
            started,
        })
    }

    /// Restarts the processes under the fast clock.
    fn restart_fast(&mut self) -> Result<()> {
        self.place.stop()?;
        self.clock = Fast::starting_in(READY, self.scenario.from_ms()?, self.scenario.factor);
        self.place.set("clock.experiment", &self.clock.setting());
        self.place.start()?;

        let running =
            |role: &Role| role.process().with_context(|| format!("{} is not running", role.name));
        self.processes.insert("writer".to_owned(), running(&self.place.writer)?);

        if self.prefer {
            self.place
                .answering()
                .into_iter()
                .try_for_each(|reader| cores::prefer_process(running(reader)?))?;
        }

        self.processes.insert(LAB.to_owned(), std::process::id());
        Ok(())
    }

    pub fn stop(mut self) -> Result<()> {
        self.place.stop()
    }

    /// The service's time.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Runs the traffic through a window of time, and records it.
    pub fn record(
        &mut self,
        treatment: Treatment<'_>,
        window: Window,
        actions: &[(i64, Action)],
    ) -> Result<Record> {
        let (mut answers, kept, beside) = self.drive(treatment, window, actions)?;
        answers.retain(|answered| answered.due_ms >= window.recorded_from_ms);

        let sent = beside.sent.len();
        self.happened.extend(beside.sent);

        let truth = Truth::new(self.scenario.traffic.keys, self.happened.iter().copied());
        let allowed_ms = RESULT_TTL_MS + COUNTED_MAX_MS * i64::from(self.scenario.factor);
        let samples = beside
            .samples
            .into_iter()
            .filter(|sample| sample.at_ms >= window.recorded_from_ms)
            .collect();

        Ok(Record {
            title: self.scenario.title.clone(),
            started: self.started.to_string(),
            machine: self.machine.clone(),
            engines: self.engines()?,
            seed: self.scenario.traffic.seed,
            factor: self.clock.factor(),
            timezone: self.scenario.traffic.timezone.clone(),
            from_ms: window.recorded_from_ms,
            to_ms: self.clock.now_ms().min(window.to_ms),
            plan: treatment.plan.to_owned(),
            strategies: [treatment.before.to_owned(), treatment.after.to_owned()],
            traffic: described(self.scenario, self.buckets, sent),
            steps: beside.steps,
            answers,
            samples,
            checked: truth.check(&kept, allowed_ms),
        })
    }

    /// Queries a part of every key's time up to now, including the open quarter hour, until each
    /// count is correct: every strategy must return the same counts. Returns the number of counts
    /// compared.
    pub fn compare(&self, plan: &str) -> Result<usize> {
        let truth = Truth::new(self.scenario.traffic.keys, self.happened.iter().copied());
        let to_s = self.clock.now_ms().div_euclid(1_000);
        let from_s = |rank: u32| to_s - COMPARED_S[rank as usize % COMPARED_S.len()];
        let mut client = Client::connect(&self.place.reader(plan).target())?;
        let deadline = Instant::now() + EQUAL_MAX;

        let ranks: Vec<u32> = (0..self.scenario.traffic.keys).collect();
        for part in ranks.chunks(ASKED_AT_ONCE) {
            let asked: Vec<RangeQuery> = part
                .iter()
                .map(|rank| RangeQuery { rank: *rank, from_s: from_s(*rank), to_s })
                .collect();
            let right: Vec<Option<i64>> = asked
                .iter()
                .map(|asked| {
                    Some(truth.count(asked.rank, floor(asked.from_s, QUARTER_S), i64::MAX))
                })
                .collect();

            while place::counts(&mut client, &questions::body(&self.keys, &asked, true))? != right {
                ensure!(
                    Instant::now() < deadline,
                    "not all counts were correct within {EQUAL_MAX:?}"
                );
                std::thread::sleep(POLL);
            }
        }

        Ok(ranks.len())
    }

    fn engines(&self) -> Result<BTreeMap<String, String>> {
        match &self.contact_points {
            Some(contact_points) => Ok(BTreeMap::from([(
                "Cassandra".to_owned(),
                Store::connect(contact_points)?.version()?,
            )])),
            None => {
                Ok(BTreeMap::from([("embedded".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]))
            }
        }
    }

    /// Runs the traffic, the events, the steps and the probe concurrently until the window is over.
    fn drive(
        &self,
        treatment: Treatment<'_>,
        window: Window,
        actions: &[(i64, Action)],
    ) -> Result<(Vec<BatchRecord>, Vec<SampledCount>, Beside)> {
        let (reader, writer) =
            (self.place.reader(treatment.plan).target(), self.place.writer.target());
        let steps = Steps::new([treatment.before, treatment.after], self.clock, &writer)?;
        policy::wait_followed(&reader, steps.set_share(0)?)?;

        let stream = Stream::new(&self.scenario.traffic, &self.keys, self.clock, &writer)?;
        let probe = self.probe(treatment.plan)?;
        self.clock.wait_until(window.from_ms);

        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| stream.run(&stop));
            let looking = scope.spawn(|| probe.run(&stop));
            let stepping = scope.spawn(|| steps.run(actions, &stop));
            let filling = (window.recorded_from_ms > window.from_ms)
                .then(|| scope.spawn(|| self.fill(&reader)));
            let asked = scope.spawn(|| self.ask(&reader, window, treatment.pace)).join();

            stop.store(true, Ordering::Release);
            let panicked =
                |what: &'static str| move |_| anyhow!("the thread of the {what} panicked");
            let sent = sending.join().map_err(panicked("events"))?.context("the events")?;
            let samples = looking.join().map_err(panicked("probe"))?.context("the probe")?;
            let steps = stepping.join().map_err(panicked("steps"))?.context("the steps")?;

            if let Some(filling) = filling {
                filling.join().map_err(panicked("filling"))?.context("the filling of caches")?;
            }
            let (answers, kept) = asked.map_err(panicked("traffic"))?.context("the traffic")?;
            Ok((answers, kept, Beside { sent, samples, steps }))
        })
    }

    /// Queries each key once in every window, as the clients of a long-running service have done.
    fn fill(&self, reader: &Target) -> Result<()> {
        let model = &self.scenario.traffic;
        let mut client = Client::connect(reader)?;
        let ranks = (0..model.keys).collect::<Vec<u32>>();

        for (window, part) in model
            .windows
            .iter()
            .flat_map(|window| ranks.chunks(ASKED_AT_ONCE).map(move |part| (window, part)))
        {
            let to_s = self.clock.now_ms().div_euclid(1_000);
            let from_s = to_s - i64::from(window.hours) * HOUR_S;
            let asked: Vec<RangeQuery> =
                part.iter().map(|rank| RangeQuery { rank: *rank, from_s, to_s }).collect();
            place::counts(&mut client, &questions::body(&self.keys, &asked, false))?;
        }

        Ok(())
    }

    fn probe(&self, plan: &str) -> Result<Probe> {
        let mut processes = self.processes.clone();
        let reader = self.place.reader(plan);
        if reader.process() != self.place.writer.process() {
            processes.insert(
                "reader".to_owned(),
                reader.process().context("the reader is not running")?,
            );
        }

        Ok(Probe {
            clock: self.clock,
            processes,
            reader: reader.target(),
            writer: self.place.writer.target(),
            store: self.contact_points.as_deref().map(Store::connect).transpose()?,
            every: SAMPLE_EVERY,
        })
    }

    fn ask(
        &self,
        reader: &Target,
        window: Window,
        pace: Option<Pace>,
    ) -> Result<(Vec<BatchRecord>, Vec<SampledCount>)> {
        let model = &self.scenario.traffic;
        let clock = self.clock;

        if self.prefer {
            cores::prefer_self()?;
        }
        let mut asking =
            Asking::new(&self.keys, Questions::new(model), clock, reader.clone(), CONNECTIONS);
        let start = clock.instant(window.from_ms);
        let duration = clock.instant(window.to_ms).saturating_duration_since(start);

        match pace {
            None => {
                let clients = Clients::new(model, clock, window.from_ms, window.to_ms)?;
                let times = (start, duration);
                let sockets = Sockets::open(reader.address, CONNECTIONS)?;
                load::follow(sockets, times, Box::new(clients), &mut asking)?;
            }
            Some(pace) => {
                let run = Run { pace, warm_up: Duration::ZERO, duration };
                load::run(reader.address, CONNECTIONS, &run, &mut asking)?;
            }
        }
        Ok((asking.answers, asking.kept))
    }
}

/// Flushes the loaded data to disk, and sets the flush period of the scenario, scaled to the fast
/// clock.
fn flush_by_clock(store: &Store, servers: &Servers, scenario: &Scenario, name: &str) -> Result<()> {
    servers.nodetool(1, &["flush"])?;
    let period_ms = u64::from(scenario.flush_hours) * 3_600_000 / u64::from(scenario.factor);
    for table in TABLES {
        store.execute(&format!(
            "ALTER TABLE raingauge_{name}.{table} WITH memtable_flush_period_in_ms = {period_ms}"
        ))?;
    }
    Ok(())
}

/// Describes the traffic for readers of the report.
fn described(scenario: &Scenario, buckets: usize, sent: usize) -> BTreeMap<String, String> {
    let model = &scenario.traffic;
    let windows =
        model.windows.iter().map(|window| format!("{} h for {} %", window.hours, window.share));
    BTreeMap::from([
        ("configurations".to_owned(), model.counters.to_string()),
        ("keys".to_owned(), format!("{} by Zipf's law with exponent {}", model.keys, model.zipf)),
        (
            "batches".to_owned(),
            format!(
                "{} per second on average, of {} to {} ranges",
                model.batches_per_s, model.batch[0], model.batch[1]
            ),
        ),
        ("windows".to_owned(), windows.collect::<Vec<_>>().join(", ")),
        ("ranges that end now".to_owned(), format!("{} %", model.ends_now * 100.0)),
        (
            "history".to_owned(),
            format!(
                "{} events over {} days in {buckets} buckets",
                model.history, model.history_days
            ),
        ),
        ("events during the run".to_owned(), sent.to_string()),
    ])
}
