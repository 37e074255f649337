//! The run: one system after another, with the same history, questions and events.

use super::clickhouse::ClickHouse;
use super::client::{Asker, Askings, Client, Mode, Peer, Writer};
use super::duckdb::DuckDb;
use super::embedded::Engine;
use super::question::{Kind, Question, questions};
use super::report::{ExcludedSystem, Read, Report, System, WriteResult};
use super::servers::{Launch, Running, Script, disk_bytes};
use super::{
    Writes, cassandra, drive, live_from_day_s, postgres, questdb, raingauge, redis, sqlite,
    victoriametrics,
};
use crate::cluster::roles::{Role, Setup};
use crate::cores::{self, Cores, Watch};
use crate::events::Drops;
use crate::measure::{Pace, Run};
use crate::process::usage_of_trees as usage;
use crate::report::{Machine, RAINGAUGE};
use crate::server::Lab;
use crate::workload::{Settings, Workload};
use anyhow::{Context, Result, ensure};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Number of questions of each kind that are verified before the measurement.
const CHECKED: u64 = 200;
const WARM_UP: Duration = Duration::from_millis(300);
const WRITE_WARM_UP: Duration = Duration::from_secs(1);
/// Longest time until acknowledged events become visible.
const SHOWN_MAX: Duration = Duration::from_secs(120);
const SHOWN_POLL: Duration = Duration::from_millis(50);
const MILLION: f64 = 1_000_000.0;

/// In order of measurement.
pub const NAMES: [&str; 9] = [
    RAINGAUGE,
    "redis",
    "postgresql",
    "sqlite",
    "clickhouse",
    "duckdb",
    "questdb",
    "victoriametrics",
    "cassandra",
];

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub cores: Cores,
    /// Duration of each loop of each question, in seconds
    #[arg(long, default_value_t = 2)]
    pub seconds: u64,
    /// Duration of each way of writing, in seconds
    #[arg(long, default_value_t = 5)]
    pub write_seconds: u64,
    /// Connections for questions, each with one in flight
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Only these systems, by name (raingauge, redis, postgresql, sqlite, clickhouse, duckdb,
    /// questdb, victoriametrics, cassandra)
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
    pub only: Vec<String>,
    /// The script that starts the peers
    #[arg(long, default_value = "scripts/peers")]
    pub script: PathBuf,
    /// Folder for data, on the disk to be measured (default: a new temporary folder)
    #[arg(long)]
    pub folder: Option<PathBuf>,
    /// The raingauge program; default: this one
    #[arg(long, default_value_os_t = crate::process::this_program())]
    pub raingauge: PathBuf,
}

/// A system that is ready to be measured.
struct Place {
    name: &'static str,
    version: String,
    pids: Vec<u32>,
    disk: PathBuf,
    /// The system runs in this process, so this process's own memory is subtracted.
    is_own: bool,
}

struct Bench {
    options: Options,
    folder: PathBuf,
    workload: Workload,
    questions: Vec<(Kind, Vec<Question>)>,
    now_s: i64,
    runtime: Runtime,
}

pub fn run(options: Options) -> Result<Report> {
    let machine = Machine::here();
    cores::pin_self(options.cores.client_core)?;

    let temporary = tempfile::tempdir()?;
    let folder = options.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;

    let now_s = crate::now_s();
    let workload = Workload::new(options.settings, now_s);
    let mut report = Report {
        started: jiff::Timestamp::from_second(now_s)?.to_string(),
        machine,
        keys: options.settings.keys,
        history_events: options.settings.history,
        connections: options.connections,
        systems: Vec::new(),
        left_out: Vec::new(),
    };

    let questions = Kind::ALL.map(|kind| (kind, questions(&workload, kind))).into();
    let bench = Bench { options, folder, workload, questions, now_s, runtime: drive::runtime()? };
    for name in NAMES {
        if !bench.options.only.is_empty() && !bench.options.only.iter().any(|only| only == name) {
            continue;
        }
        match bench.system(name) {
            Ok(Ok(system)) => report.systems.push(system),
            Ok(Err(why)) => leave_out(&mut report, name, why, false),
            Err(error) if name == RAINGAUGE => return Err(error),
            // The failure of one system does not prevent the measurement of the others.
            Err(error) => leave_out(&mut report, name, format!("{error:#}"), true),
        }
    }

    Ok(report)
}

fn leave_out(report: &mut Report, system: &str, why: String, has_failed: bool) {
    say(&format!("{system} was left out: {why}"));
    report.left_out.push(ExcludedSystem { system: system.to_owned(), why, has_failed });
}

fn say(text: &str) {
    eprintln!("lab: {text}");
}

impl Bench {
    /// Measures a system, or returns why it is not available.
    fn system(&self, name: &'static str) -> Result<Result<System, String>> {
        say(&format!("{name}: starting"));
        match name {
            RAINGAUGE => self.raingauge().map(Ok),
            "sqlite" => self.sqlite().map(Ok),
            _ => {
                let path = self.options.script.clone();
                let core = self.options.cores.server_core;
                let script = Script { path, folder: self.folder.join("servers"), core };
                match script.start(name)? {
                    Launch::Missing(why) => Ok(Err(why)),
                    Launch::Running(running) => self.server(name, Rc::new(running)).map(Ok),
                }
            }
        }
    }

    fn raingauge(&self) -> Result<System> {
        let data = self.folder.join(RAINGAUGE);
        let setup = Setup::embedded(&self.options.raingauge, &self.folder);
        let mut server = Role::new(RAINGAUGE, "reader,writer,portal", &[])?
            .on_core(self.options.cores.server_core);
        server.start(&setup)?;
        server.wait_ready(&setup)?;
        let lab = RefCell::new(Lab::prepare(&server.target(), &self.workload)?);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let place = Place {
            name: RAINGAUGE,
            version,
            pids: server.process().into_iter().collect(),
            disk: data,
            is_own: false,
        };
        let system =
            self.measure(&place, &raingauge::Raingauge { port: server.address.port(), lab })?;
        server.stop()?;
        Ok(system)
    }

    fn sqlite(&self) -> Result<System> {
        let disk = self.folder.join("sqlite");
        std::fs::create_dir(&disk)?;
        let peer =
            sqlite::Sqlite { path: disk.join("lab.sqlite"), live_from_s: self.live_from_s() };
        let version = sqlite::version().to_owned();
        let pids = vec![std::process::id()];
        self.measure(&Place { name: "sqlite", version, pids, disk, is_own: true }, &peer)
    }

    fn live_from_s(&self) -> i64 {
        live_from_day_s(&self.workload)
    }

    fn server(&self, name: &'static str, server: Rc<Running>) -> Result<System> {
        let port = server.port;
        let keys = self.options.settings.keys;
        let live_from_s = self.live_from_s();
        let version = server.version.clone();
        let pids = server.pids.clone();

        let disk = server.disk.clone();
        let place = Place { name, version, pids, disk, is_own: false };

        // The total starts at a day that the history reaches into; written events fall into its
        // last hours.
        match name {
            "redis" => self.measure(&place, &redis::Redis { port, keys, live_from_s }),
            "postgresql" => {
                let user = server.user.clone();
                self.measure(&place, &postgres::Postgres { port, user, live_from_s })
            }
            "clickhouse" => self.measure(&place, &Engine::<ClickHouse>::new(port, live_from_s)),
            "duckdb" => self.measure(&place, &Engine::<DuckDb>::new(port, live_from_s)),
            "questdb" => self.measure(&place, &questdb::QuestDb { port, live_from_s }),
            "victoriametrics" => {
                self.measure(&place, &victoriametrics::VictoriaMetrics { port, live_from_s })
            }
            _ => {
                let shared = RefCell::new(None);
                self.measure(&place, &cassandra::Cassandra { server, keys, live_from_s, shared })
            }
        }
    }

    fn measure<P: Peer>(&self, place: &Place, peer: &P) -> Result<System> {
        let name = place.name;
        let watch = Watch::start(self.options.cores)?;
        let began = Instant::now();
        let cpu_before_s = usage(&place.pids)?.cpu_s;
        let memory_before = if place.is_own { usage(&place.pids)?.memory_bytes } else { 0 };

        let disk_before = disk_bytes(&place.disk);
        self.runtime.block_on(peer.load(&self.workload)).context("loading the history")?;

        let loaded_s = began.elapsed().as_secs_f64();
        self.wait_answering(name, peer)?;
        self.runtime.block_on(peer.settle())?;

        let history_bytes = disk_bytes(&place.disk).saturating_sub(disk_before);
        say(&format!("{name}: history loaded in {loaded_s:.1} s, answers are correct"));

        let reads = self.reads(place, peer)?;
        let memory_bytes = usage(&place.pids)?.memory_bytes.saturating_sub(memory_before);
        let modes = peer.modes().into_iter();
        let writes =
            modes.map(|mode| self.writes(place, peer, mode)).collect::<Result<Vec<_>>>()?;
        let busy = watch.busy()?;
        let own_s = busy.client * began.elapsed().as_secs_f64();

        let theirs_s = if place.is_own { 0.0 } else { usage(&place.pids)?.cpu_s - cpu_before_s };
        let all_s = (busy.server_core + busy.client_core) * began.elapsed().as_secs_f64();
        Ok(System {
            name: name.to_owned(),
            version: place.version.clone(),
            how: peer.how().to_owned(),
            loaded_s,
            history_bytes_per_million: history_bytes as f64
                / self.options.settings.history.max(1) as f64
                * MILLION,
            memory_bytes,
            others_cores: ((all_s - own_s - theirs_s) / began.elapsed().as_secs_f64()).max(0.0),
            reads,
            writes,
        })
    }

    /// Waits until the history is visible, and then verifies answers of every kind.
    fn wait_answering<P: Peer>(&self, name: &str, peer: &P) -> Result<()> {
        let deadline = Instant::now() + SHOWN_MAX;
        for (_, questions) in &self.questions {
            let askings = Askings::<P::Client>::new(name, questions);
            let mut asker = Asker::new(self.runtime.block_on(peer.connect())?, &askings);
            let mut turn = 0;
            while turn < CHECKED {
                match self.runtime.block_on(drive::Worker::take(&mut asker, turn)) {
                    Ok(_) => turn += 1,
                    Err(error) if Instant::now() >= deadline => return Err(error),
                    Err(_) => {
                        std::thread::sleep(SHOWN_POLL);
                        asker = Asker::new(self.runtime.block_on(peer.connect())?, &askings);
                    }
                }
            }
        }

        Ok(())
    }

    fn clients<P: Peer>(&self, peer: &P, connections: usize) -> Result<Vec<P::Client>> {
        (0..connections).map(|_| self.runtime.block_on(peer.connect())).collect()
    }

    fn reads<P: Peer>(&self, place: &Place, peer: &P) -> Result<Vec<Read>> {
        let connections = self.options.connections.min(peer.connections_max());
        let mut clients = self.clients(peer, connections)?;
        let mut reads = Vec::new();

        for (number, (kind, questions)) in self.questions.iter().enumerate() {
            let askings = Askings::new(place.name, questions);
            let warm_up = if number == 0 { peer.warm_up() } else { WARM_UP };
            let (read, back) = self.read(place, *kind, &askings, clients, warm_up)?;
            clients = back;
            say(&format!(
                "{}, {}: {:.0}/s, p50 {:.3} ms, p99 {:.3} ms",
                place.name,
                kind.name(),
                read.greatest.requests_per_s,
                read.half.latency.p50_us / 1_000.0,
                read.half.latency.p99_us / 1_000.0
            ));
            reads.push(read);
        }

        Ok(reads)
    }

    /// Measures questions. Closed loop: the maximum rate and its cost. Open loop at half of that
    /// rate: latency from the intended moment.
    fn read<C: Client>(
        &self,
        place: &Place,
        kind: Kind,
        askings: &Rc<Askings<C>>,
        clients: Vec<C>,
        warm_up: Duration,
    ) -> Result<(Read, Vec<C>)> {
        let askers = clients.into_iter().map(|client| Asker::new(client, askings)).collect();
        let duration = Duration::from_secs(self.options.seconds);
        let run = |pace, duration| Run { pace, warm_up: Duration::ZERO, duration };
        let (_, askers) = drive::drive(&self.runtime, askers, &run(Pace::Closed, warm_up))?;
        let watch = Watch::start(self.options.cores)?;

        let before = usage(&place.pids)?;
        let (greatest, askers) = drive::drive(&self.runtime, askers, &run(Pace::Closed, duration))?;
        let after = usage(&place.pids)?;
        let busy = watch.busy()?;

        ensure!(greatest.requests > 0, "no answer to {} within {duration:?}", kind.name());
        let pace = Pace::Open(greatest.requests_per_s / 2.0);
        let (half, askers) = drive::drive(&self.runtime, askers, &run(pace, duration))?;
        let units = greatest.units_per_s * greatest.elapsed_s;
        let cpu_s_per_million = (after.cpu_s - before.cpu_s) / units * MILLION;
        let read = Read { kind, greatest, half, cpu_s_per_million, busy };

        Ok((read, askers.into_iter().map(Asker::into_client).collect()))
    }

    fn writes<P: Peer>(&self, place: &Place, peer: &P, mode: Mode) -> Result<WriteResult> {
        let settings = self.options.settings;
        let name = place.name;
        let drops =
            Rc::new(Drops::new(settings.keys, mode.batch_events, settings.seed, self.now_s));

        // raingauge and QuestDB always deduplicate; the other systems do so only if the mode
        // requires it, because it is extra work for the client.
        let writes = Writes::new(drops, mode.exactly_once);
        let clients = self.clients(peer, mode.connections)?;
        self.runtime.block_on(peer.enter(&mode))?;

        let before = self.runtime.block_on(peer.total())?;
        let disk_before = disk_bytes(&place.disk);
        let workers = clients.into_iter().map(|client| Writer::new(client, &writes)).collect();
        let duration = Duration::from_secs(self.options.write_seconds);
        let run = Run { pace: Pace::Closed, warm_up: WRITE_WARM_UP, duration };

        let watch = Watch::start(self.options.cores)?;
        let began = Instant::now();
        let used = usage(&place.pids)?;
        let (measured, workers) = drive::drive(&self.runtime, workers, &run)?;

        // From the first request to the last answer, because a batch may take longer than the
        // recorder's window.
        let took_s = began.elapsed().as_secs_f64();
        let acknowledged = usage(&place.pids)?;
        let busy = watch.busy()?;
        let expected = before + writes.counted() as i64;
        let shown_s = self.wait_shown(peer, expected, began)?;

        // Work after the acknowledgement belongs to the measurement; queries for the total do not.
        let after = if shown_s.is_some() { usage(&place.pids)? } else { acknowledged };
        drop(workers);
        self.runtime.block_on(peer.settle())?;

        let disk = disk_bytes(&place.disk).saturating_sub(disk_before);
        let millions = writes.counted() as f64 / MILLION;
        let events_per_s = writes.counted() as f64 / took_s;
        say(&format!("{name}, {}: {events_per_s:.0} events/s", mode.how));

        Ok(WriteResult {
            mode,
            events: writes.counted(),
            events_per_s,
            shown_per_s: shown_s.map(|shown_s| writes.counted() as f64 / shown_s),
            latency: measured.latency,
            cpu_s_per_million: (after.cpu_s - used.cpu_s) / millions,
            disk_bytes_per_million: disk as f64 / millions,
            busy,
        })
    }

    /// Returns the time from `began` until all events were visible; `None` if they were as soon as
    /// they were acknowledged.
    fn wait_shown<P: Peer>(&self, peer: &P, expected: i64, began: Instant) -> Result<Option<f64>> {
        let deadline = Instant::now() + SHOWN_MAX;
        let mut is_first = true;

        loop {
            let total = self.runtime.block_on(peer.total())?;
            ensure!(total <= expected, "WRONG COUNT: {total} counted, {expected} written");

            if total == expected {
                return Ok((!is_first).then(|| began.elapsed().as_secs_f64()));
            }
            ensure!(
                Instant::now() < deadline,
                "only {total} of {expected} events are visible after {SHOWN_MAX:?}"
            );
            is_first = false;
            std::thread::sleep(SHOWN_POLL);
        }
    }
}
