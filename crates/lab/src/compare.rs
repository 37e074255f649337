//! The whole experiment: raingauge and each peer in turn, one at a time, on the same history and the same questions.

use crate::cores::{self, Busy, Cores, Watch};
use crate::counts;
use crate::events::Drops;
use crate::http::Target;
use crate::ingest;
use crate::measure::{Measured, Pace, Run};
use crate::peers::drive::{self, Worker};
use crate::peers::{self, Servers, Writes, postgres, redis, sqlite};
use crate::report::{Machine, RAINGAUGE, Read, Report, Written};
use crate::server::{Lab, Server};
use crate::workload::{Settings, Workload};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Batch sizes and connections that every system's writes are tried with; the best one is then measured.
const WRITE_SHAPES: [(usize, usize); 5] = [(1_000, 1), (1_000, 4), (1_000, 16), (10_000, 1), (10_000, 4)];
const TRIAL: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub cores: Cores,
    /// How long each measurement takes, in seconds
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Connections that reads are sent on; each has one batch in flight
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// What `scripts/peers start` printed; without it only SQLite is compared
    #[arg(long)]
    pub peers: Option<PathBuf>,
    /// Folder for data, on the disk to be measured (default: the system's temporary folder)
    #[arg(long)]
    pub work_dir: Option<PathBuf>,
}

/// Writes to a peer on so many connections, and checks afterwards that everything was counted.
type MeasureWrites<'a> = &'a mut dyn FnMut(&Experiment, &Rc<Writes>, usize, &Run) -> Result<Measured>;

struct Experiment {
    options: Options,
    folder: tempfile::TempDir,
    workload: Rc<Workload>,
    now_s: i64,
    runtime: Runtime,
    report: Report,
}

/// Measures the peers and, where its program is given, raingauge.
pub fn run(options: Options, raingauge: Option<&Path>) -> Result<Report> {
    let machine = Machine::here();
    cores::pin_self(options.cores.client_core)?;
    let folder = match &options.work_dir {
        Some(path) => tempfile::tempdir_in(path),
        None => tempfile::tempdir(),
    }?;
    let now_s = crate::now_s();
    let workload = Rc::new(Workload::new(options.settings, now_s));
    let report = Report {
        started: jiff::Timestamp::from_second(now_s)?.to_string(),
        machine,
        keys: options.settings.keys,
        history_drops: options.settings.history,
        history_buckets: workload.buckets().count() as u64,
        reads: Vec::new(),
        writes: Vec::new(),
    };
    let servers = options.peers.as_deref().map(Servers::read).transpose()?;
    let mut experiment = Experiment { options, folder, workload, now_s, runtime: drive::runtime()?, report };
    if let Some(binary) = raingauge {
        experiment.raingauge(binary)?;
    }
    if let Some(servers) = &servers {
        experiment.redis(servers)?;
        experiment.postgres(servers)?;
    }
    experiment.sqlite()?;
    Ok(experiment.report)
}

fn say(text: &str) {
    eprintln!("lab: {text}");
}

impl Experiment {
    fn duration(&self) -> Duration {
        Duration::from_secs(self.options.seconds)
    }

    fn drops(&self, batch_events: usize) -> Rc<Drops> {
        Rc::new(Drops::new(self.options.settings.keys, batch_events, self.options.settings.seed, self.now_s))
    }

    fn raingauge(&mut self, binary: &Path) -> Result<()> {
        say("raingauge: starting, loading the history");
        let server = Server::start(binary, &self.folder.path().join("raingauge"), self.options.cores.server_core)?;
        let target = Target { address: server.address, token: None };
        let mut lab = Lab::prepare(&target, &self.workload)?;
        let loaded = lab.load_history(&self.workload)?;
        say(&format!("raingauge: {loaded} buckets loaded, reading"));
        self.raingauge_reads(&target)?;
        self.raingauge_writes(&mut lab)?;
        let took = server.stop()?;
        say(&format!("raingauge: stopped in {} ms", took.as_millis()));
        Ok(())
    }

    fn raingauge_reads(&mut self, target: &Target) -> Result<()> {
        let connections = self.options.connections;
        let watch = Watch::start(self.options.cores)?;
        let greatest = counts::measure(&self.workload, target, connections, Pace::Closed, self.duration(), true)?;
        let busy = watch.busy()?;
        let pace = Pace::Open(greatest.measured.requests_per_s / 2.0);
        let half = counts::measure(&self.workload, target, connections, pace, self.duration(), true)?;
        self.read(RAINGAUGE, "POST /v1/counts", connections, greatest.measured, busy, half.measured);
        Ok(())
    }

    fn raingauge_writes(&mut self, lab: &mut Lab) -> Result<()> {
        let mut best: Option<(f64, usize, usize)> = None;
        for (batch_events, connections) in WRITE_SHAPES {
            let drops = self.drops(batch_events);
            // Waiting until all is applied keeps one trial's backlog out of the next.
            match ingest::measure(lab, &drops, connections, Pace::Closed, TRIAL, true) {
                Ok(trial) => note_trial(RAINGAUGE, &mut best, trial.acknowledged_per_s, batch_events, connections),
                Err(error) => say(&format!("raingauge: {batch_events} x {connections} failed: {error:#}")),
            }
        }
        let (_, batch_events, connections) = best.context("no shape of ingest worked on raingauge")?;
        let drops = self.drops(batch_events);
        let watch = Watch::start(self.options.cores)?;
        let ingested = ingest::measure(lab, &drops, connections, Pace::Closed, self.duration(), true)?;
        self.report.writes.push(Written {
            system: RAINGAUGE.to_owned(),
            how: "POST /v1/events, NDJSON".to_owned(),
            durable: true,
            dedupe: true,
            batch_events,
            connections,
            events_per_s: ingested.acknowledged_per_s,
            applied_per_s: ingested.applied_per_s,
            latency: ingested.measured.latency,
            busy: watch.busy()?,
        });
        Ok(())
    }

    fn redis(&mut self, servers: &Servers) -> Result<()> {
        let port = servers.redis_port;
        say(&format!("Redis {}: loading the history", servers.redis_version));
        self.runtime.block_on(redis::ensure_empty(port))?;
        self.runtime.block_on(redis::ensure_empty(servers.redis_durable_port))?;
        self.runtime.block_on(redis::load_history(port, &self.workload))?;
        let readers = redis::readers(&self.runtime, port, &self.workload, self.options.connections)?;
        self.peer_reads(&format!("Redis {}", servers.redis_version), "pipelined MGET", readers)?;
        let durable = (servers.redis_durable_port, true, "appendfsync always");
        for (port, durable, how) in [(port, false, "in memory only"), durable] {
            for dedupe in [false, true] {
                let ids = if dedupe { "SET NX per id, then " } else { "" };
                let how = format!("{ids}INCRBY, {how}");
                let (keys, from_s) = (self.options.settings.keys, peers::live_from_day_s(&self.workload));
                let system = format!("Redis {}", servers.redis_version);
                self.peer_writes(
                    &system,
                    &how,
                    durable,
                    dedupe,
                    &WRITE_SHAPES,
                    &mut |this, writes, connections, run| {
                        let before = this.runtime.block_on(redis::total(port, keys, from_s))?;
                        let workers = redis::writers(&this.runtime, port, writes, connections)?;
                        let (measured, _) = drive::drive(&this.runtime, workers, run)?;
                        writes.check("Redis", before, this.runtime.block_on(redis::total(port, keys, from_s))?)?;
                        Ok(measured)
                    },
                )?;
            }
        }
        Ok(())
    }

    fn postgres(&mut self, servers: &Servers) -> Result<()> {
        let system = format!("PostgreSQL {}", servers.postgres_version);
        say(&format!("{system}: loading the history"));
        self.runtime.block_on(postgres::create(servers))?;
        self.runtime.block_on(postgres::load_history(servers, &self.workload))?;
        let readers = postgres::readers(&self.runtime, servers, &self.workload, self.options.connections)?;
        self.peer_reads(&system, "SUM over the index, one query", readers)?;
        for dedupe in [false, true] {
            let how = if dedupe { "table of ids, upsert" } else { "upsert" };
            let from_s = peers::live_from_day_s(&self.workload);
            self.peer_writes(&system, how, true, dedupe, &WRITE_SHAPES, &mut |this, writes, connections, run| {
                let before = this.runtime.block_on(postgres::total(servers, from_s))?;
                let workers = postgres::writers(&this.runtime, servers, writes, connections)?;
                let (measured, _) = drive::drive(&this.runtime, workers, run)?;
                writes.check("PostgreSQL", before, this.runtime.block_on(postgres::total(servers, from_s))?)?;
                Ok(measured)
            })?;
        }
        Ok(())
    }

    fn sqlite(&mut self) -> Result<()> {
        let system = format!("SQLite {}", sqlite::version());
        let path = self.folder.path().join("lab.sqlite");
        say(&format!("{system}: loading the history"));
        sqlite::create(&path)?;
        sqlite::load_history(&path, &self.workload)?;
        let reader = sqlite::Reader::new(&path, self.workload.clone())?;
        self.peer_reads(&system, "SUM, in process, one core", vec![reader])?;
        let from_s = peers::live_from_day_s(&self.workload);
        // One writer at a time is all that SQLite has.
        let shapes: Vec<_> = WRITE_SHAPES.into_iter().filter(|&(_, connections)| connections == 1).collect();
        for dedupe in [false, true] {
            let how =
                if dedupe { "table of ids, upsert, WAL, synchronous=FULL" } else { "upsert, WAL, synchronous=FULL" };
            self.peer_writes(&system, how, true, dedupe, &shapes, &mut |this, writes, _, run| {
                let before = sqlite::total(&path, from_s)?;
                let (measured, _) = drive::drive(&this.runtime, vec![sqlite::Writer::new(&path, writes)?], run)?;
                writes.check("SQLite", before, sqlite::total(&path, from_s)?)?;
                Ok(measured)
            })?;
        }
        Ok(())
    }

    fn peer_reads<W: Worker>(&mut self, system: &str, how: &str, workers: Vec<W>) -> Result<()> {
        say(&format!("{system}: reading"));
        let connections = workers.len();
        let closed = Run { pace: Pace::Closed, warm_up: Duration::from_secs(1), duration: self.duration() };
        let watch = Watch::start(self.options.cores)?;
        let (greatest, workers) = drive::drive(&self.runtime, workers, &closed)?;
        let busy = watch.busy()?;
        let open = Run { pace: Pace::Open(greatest.requests_per_s / 2.0), ..closed };
        let (half, _) = drive::drive(&self.runtime, workers, &open)?;
        self.read(system, how, connections, greatest, busy, half);
        Ok(())
    }

    fn read(&mut self, system: &str, how: &str, connections: usize, greatest: Measured, busy: Busy, half: Measured) {
        say(&format!("{system}: {:.0} batches/s", greatest.requests_per_s));
        self.report.reads.push(Read {
            system: system.to_owned(),
            how: how.to_owned(),
            connections,
            greatest,
            busy,
            half,
        });
    }

    /// Tries every shape briefly, then measures the best one.
    fn peer_writes(
        &mut self,
        system: &str,
        how: &str,
        durable: bool,
        dedupe: bool,
        shapes: &[(usize, usize)],
        measure: MeasureWrites<'_>,
    ) -> Result<()> {
        let mut best = None;
        for &(batch_events, connections) in shapes {
            let writes = Writes::new(self.drops(batch_events), dedupe);
            let run = Run { pace: Pace::Closed, warm_up: TRIAL / 4, duration: TRIAL };
            let trial = measure(self, &writes, connections, &run)?;
            note_trial(system, &mut best, trial.units_per_s, batch_events, connections);
        }
        let (_, batch_events, connections) = best.context("no shape to try")?;
        let writes = Writes::new(self.drops(batch_events), dedupe);
        let run = Run { pace: Pace::Closed, warm_up: TRIAL / 4, duration: self.duration() };
        let watch = Watch::start(self.options.cores)?;
        let measured = measure(self, &writes, connections, &run)?;
        let busy = watch.busy()?;
        say(&format!("{system}, {how}: {:.0} events/s", measured.units_per_s));
        self.report.writes.push(Written {
            system: system.to_owned(),
            how: how.to_owned(),
            durable,
            dedupe,
            batch_events,
            connections,
            events_per_s: measured.units_per_s,
            applied_per_s: None,
            latency: measured.latency,
            busy,
        });
        Ok(())
    }
}

fn note_trial(
    system: &str,
    best: &mut Option<(f64, usize, usize)>,
    rate: f64,
    batch_events: usize,
    connections: usize,
) {
    say(&format!("{system}: batches of {batch_events} on {connections} connections: {rate:.0} events/s"));
    if best.is_none_or(|(best_rate, ..)| rate > best_rate) {
        *best = Some((rate, batch_events, connections));
    }
}
