//! A run from the engines to the record.

use super::asking::{Asking, Kept};
use super::place::Place;
use super::probe::{Probe, Store};
use super::record::{Answered, Record, Sample, Step};
use super::scenario::Scenario;
use super::steps::Steps;
use super::stream::{Sent, Stream};
use super::truth::Truth;
use crate::cluster::servers::Servers;
use crate::fast::Fast;
use crate::http::load;
use crate::report::Machine;
use crate::traffic::arrivals::Clients;
use crate::traffic::questions::{Keys, Questions};
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CONNECTIONS: usize = 32;
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// How long the result cache keeps a sum, by the service's clock.
const RESULT_TTL_MS: i64 = 300_000;
/// How long an event may take on its way into the counts, by the machine's clock.
const COUNTED_MAX_MS: i64 = 5_000;
/// Between the start of the processes under the fast clock and its own: what they take to be ready.
const READY: Duration = Duration::from_secs(20);
const TABLES: [&str; 4] = ["minutely_count_table", "hourly_count_table", "daily_count_table", "tile_table"];

/// What the command line takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Folder of running servers, as `scripts/services start` made it
    #[arg(long)]
    pub services: PathBuf,
    /// The script that started them
    #[arg(long, default_value = "scripts/services")]
    pub script: PathBuf,
    /// The raingauge program; default: this one
    #[arg(long, default_value_os_t = crate::cli::this_program())]
    pub binary: PathBuf,
    /// The timeline and the traffic; default: the published ones
    #[arg(long)]
    pub scenario: Option<PathBuf>,
    /// Folder for the report, and for what the processes said
    #[arg(long)]
    pub out: PathBuf,
}

impl Arguments {
    pub fn options(&self) -> Options {
        let Self { services, script, binary, out, .. } = self.clone();
        Options { services, script, binary, logs: out.join("logs") }
    }
}

#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of running servers, as `scripts/services start` made it.
    pub services: PathBuf,
    /// The script that started them.
    pub script: PathBuf,
    /// The raingauge program.
    pub binary: PathBuf,
    /// Folder for the logs of the processes.
    pub logs: PathBuf,
}

/// What the threads beside the traffic bring home.
struct Beside {
    sent: Vec<Sent>,
    samples: Vec<Sample>,
    steps: Vec<Step>,
}

/// Runs a scenario from its first moment to its last.
pub fn run(scenario: &Scenario, options: &Options) -> Result<Record> {
    let (machine, started) = (Machine::here(), jiff::Timestamp::now());
    let servers = Servers::new(&options.script, &options.services)?;
    std::fs::create_dir_all(&options.logs).with_context(|| format!("cannot make {}", options.logs.display()))?;
    let name = format!("lab{}", started.as_millisecond());
    let keys = Keys::new(&scenario.traffic);
    let history = keys.history(&scenario.traffic, scenario.from_ms()?.div_euclid(1_000));
    let mut place = Place::new(scenario, &servers, &options.binary, &name, &std::path::absolute(&options.logs)?)?;
    let store = Store::connect(servers.needed("CQL")?)?;
    place.start_for_loading(scenario)?;
    place.make_counters(&keys)?;
    let buckets = place.load(&keys, &history)?;
    eprintln!("lab: {buckets} buckets of history are stored");
    flush_by_clock(&store, &servers, scenario, &name)?;
    place.stop()?;
    let clock = Fast::starting_in(READY, scenario.from_ms()?, scenario.factor);
    place.set("clock.experiment", &clock.setting());
    place.start()?;
    let engines = BTreeMap::from([("Cassandra".to_owned(), store.version()?)]);
    let watched = processes(&servers, &place)?;
    let probe = Probe {
        clock,
        processes: watched,
        reader: place.reader.target(),
        writer: place.writer.target(),
        store: Some(store),
        every: SAMPLE_EVERY,
    };
    let (answers, kept, beside) = drive(scenario, &keys, &place, probe)?;
    place.stop()?;
    let to_ms = clock.now_ms().min(scenario.to_ms()?);
    let happened = history.iter().map(|(rank, time_s)| (*rank, *time_s, i64::MIN)).chain(beside.sent.iter().copied());
    let truth = Truth::new(scenario.traffic.keys, happened);
    let allowed_ms = RESULT_TTL_MS + COUNTED_MAX_MS * i64::from(scenario.factor);
    Ok(Record {
        title: scenario.title.clone(),
        started: started.to_string(),
        machine,
        engines,
        seed: scenario.traffic.seed,
        factor: clock.factor(),
        timezone: scenario.traffic.timezone.clone(),
        from_ms: scenario.from_ms()?,
        to_ms,
        plan: scenario.plan.clone(),
        strategies: [scenario.before.clone(), scenario.after.clone()],
        traffic: described(scenario, buckets, beside.sent.len()),
        steps: beside.steps,
        answers,
        samples: beside.samples,
        checked: truth.check(&kept, allowed_ms),
    })
}

/// Asks, lets events happen, does the steps and looks, all at once, until the scenario ends.
fn drive(scenario: &Scenario, keys: &Keys, place: &Place, probe: Probe) -> Result<(Vec<Answered>, Vec<Kept>, Beside)> {
    let (clock, model) = (probe.clock, &scenario.traffic);
    let (reader, writer) = (place.reader.target(), place.writer.target());
    let mut steps = Steps::new(scenario, clock, &writer)?;
    steps.set_share(0)?;
    steps.wait_followed(&reader)?;
    let actions = scenario.actions()?;
    let stream = Stream::new(model, keys, clock, &writer)?;
    clock.wait_until(scenario.from_ms()?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| stream.run(&stop));
        let looking = scope.spawn(|| probe.run(&stop));
        let stepping = scope.spawn(|| steps.run(&actions, &stop));
        let asked = ask(scenario, keys, clock, &reader);
        stop.store(true, Ordering::Release);
        let panicked = |what: &'static str| move |_| anyhow!("the thread of the {what} panicked");
        let sent = sending.join().map_err(panicked("events"))?.context("the events")?;
        let samples = looking.join().map_err(panicked("probe"))?.context("the probe")?;
        let steps = stepping.join().map_err(panicked("steps"))?.context("the steps")?;
        let (answers, kept) = asked.context("the traffic")?;
        Ok((answers, kept, Beside { sent, samples, steps }))
    })
}

fn ask(
    scenario: &Scenario,
    keys: &Keys,
    clock: Fast,
    reader: &crate::http::Target,
) -> Result<(Vec<Answered>, Vec<Kept>)> {
    let (from_ms, to_ms) = (scenario.from_ms()?, scenario.to_ms()?);
    let clients = Clients::new(&scenario.traffic, clock, from_ms, to_ms)?;
    let mut asking = Asking::new(keys, Questions::new(&scenario.traffic), clock, reader.clone(), CONNECTIONS);
    let start = clock.instant(from_ms);
    let duration = clock.instant(to_ms).saturating_duration_since(start);
    load::follow(reader.address, CONNECTIONS, (start, duration), Box::new(clients), &mut asking)?;
    Ok((asking.answers, asking.kept))
}

/// Writes what is loaded to disk, and from then on as often as the scenario wants: compressed like everything else.
fn flush_by_clock(store: &Store, servers: &Servers, scenario: &Scenario, name: &str) -> Result<()> {
    servers.nodetool(1, &["flush"])?;
    let period_ms = u64::from(scenario.flush_hours) * 3_600_000 / u64::from(scenario.factor);
    for table in TABLES {
        store
            .execute(&format!("ALTER TABLE raingauge_{name}.{table} WITH memtable_flush_period_in_ms = {period_ms}"))?;
    }
    Ok(())
}

/// The processes that are looked at, by what they are.
fn processes(servers: &Servers, place: &Place) -> Result<BTreeMap<String, u32>> {
    let mut found = BTreeMap::from([("lab".to_owned(), std::process::id())]);
    for (part, name) in [("cassandra", "cassandra-1"), ("redis", "redis"), ("kafka", "kafka"), ("mariadb", "mariadb")] {
        found.insert(part.to_owned(), servers.process(name)?);
    }
    for (part, role) in [("reader", &place.reader), ("writer", &place.writer)] {
        found.insert(part.to_owned(), role.process().with_context(|| format!("the {part} does not run"))?);
    }
    Ok(found)
}

/// What the traffic was, for a reader of the report.
fn described(scenario: &Scenario, buckets: usize, sent: usize) -> BTreeMap<String, String> {
    let model = &scenario.traffic;
    let windows = model.windows.iter().map(|window| format!("{} h for {} %", window.hours, window.share));
    BTreeMap::from([
        ("configurations".to_owned(), model.counters.to_string()),
        ("keys".to_owned(), format!("{} by Zipf's law with exponent {}", model.keys, model.zipf)),
        (
            "batches".to_owned(),
            format!("{} a second on average, of {} to {} ranges", model.batches_per_s, model.batch[0], model.batch[1]),
        ),
        ("windows".to_owned(), windows.collect::<Vec<_>>().join(", ")),
        ("ranges that end now".to_owned(), format!("{} %", model.ends_now * 100.0)),
        (
            "history".to_owned(),
            format!("{} events over {} days in {buckets} buckets", model.history, model.history_days),
        ),
        ("events counted meanwhile".to_owned(), sent.to_string()),
    ])
}
