//! Measures a reader under each cache strategy, and with the plain plan of the published
//! description, in one run.
//!
//! ```text
//!   stream ── events of now ──▶ writer, portal ─┐           CQL, Kafka, MySQL, Redis
//!   closed loop, then open ───▶ reader by tables├─▶ engines       none
//!   batches of ten ranges  ───▶ reader by tiles ┘                 none, result, phased, live: by /v1/cache-policy
//! ```
//!
//! All hold the same history and receive the same mix of questions. During each measurement some
//! answers are compared with the truth; after it, counts up to now are compared too, including the
//! events sent during the measurement.

mod mix;
mod report;
mod truth;

use crate::cluster::ClusterOptions;
use crate::cluster::roles::{Role, Setup};
use crate::counts::{self, CountSource};
use crate::events::{Drop, Ids, RenderedBody};
use crate::http::client::Client;
use crate::http::{NDJSON, load};
use crate::measure::{Measurement, Pace, Run};
use crate::metrics;
use crate::plan::{self, QUARTER_S};
use crate::policy;
use crate::report::Machine;
use crate::server::Lab;
use crate::workload::{Popularity, RangeQuery, Settings, Workload};
use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;
pub use report::Report;
use report::Row;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use truth::{Stream, Truth};

/// Number of distinct batches to cycle through: a cycle takes seconds even at the maximum rate.
const BATCHES: usize = 16_384;
/// Batches that are compared after each measurement.
const COMPARED: usize = 100;
/// Events per partition, enough that the probability of an empty partition is 10^-13.
const PROBES_PER_PARTITION: usize = 32;
const POLL: Duration = Duration::from_millis(20);
const EQUAL_MAX: Duration = Duration::from_secs(30);
const LOADED_MAX: Duration = Duration::from_secs(1_200);
/// Added to the length of a measurement that has to end before the next quarter hour.
const SLACK: Duration = Duration::from_secs(15);

/// The plans and strategies to measure, reader by reader.
const CASES: [(&str, &str); 5] = [
    ("tables", "none"),
    ("tiles", "none"),
    ("tiles", "result"),
    ("tiles", "phased"),
    ("tiles", "live"),
];

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub given: ClusterOptions,
    #[command(flatten)]
    pub settings: Settings,
    /// Partitions of the log
    #[arg(long, default_value_t = 1)]
    pub partitions: u16,
    /// Number of times that everything is measured
    #[arg(long, default_value_t = 2)]
    pub rounds: usize,
    /// Duration of each closed loop and each open loop, in seconds
    #[arg(long, default_value_t = 15)]
    pub seconds: u64,
    /// Duration of the warm-up that fills the caches, in seconds
    #[arg(long, default_value_t = 15)]
    pub warm_up: u64,
    /// Persistent connections, each with one batch in flight
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Batches per second of the open loops; default: half of the plain plan's maximum
    #[arg(long)]
    pub rate: Option<f64>,
    /// Events written per second during the measurements
    #[arg(long, default_value_t = 1_000)]
    pub events_per_s: usize,
    /// Folder for the logs of the roles; default: one below the servers' folder
    #[arg(long)]
    pub logs: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<Report> {
    let machine = Machine::here();
    let started = jiff::Timestamp::now();
    let name = format!("strategies{}", started.as_millisecond());
    let servers = options.given.servers()?;
    let logs = options.given.logs(options.logs.as_deref(), &name)?;
    let setup = Setup::new(&options.given.binary, &logs, &servers, &name, options.partitions)?;

    setup.migrate()?;
    let processes = Processes::start(&setup, servers.needed("REDIS")?)?;
    let workload = Workload::new(options.settings, started.as_second());
    let mut bench = Bench {
        options,
        processes,
        truth: Truth::new(&workload),
        popularity: Popularity::new(options.settings.keys),
        random: StdRng::seed_from_u64(options.settings.seed),
        rate_per_s: options.rate,
    };

    let history_buckets = bench.load(&workload)?;
    let mut rows = Vec::new();
    for round in 1..=options.rounds {
        for (plan, strategy) in CASES {
            rows.push(
                bench
                    .measure(round, plan, strategy)
                    .with_context(|| format!("{plan}, {strategy}"))?,
            );
        }
    }

    let rate_per_s = bench.rate_per_s.unwrap_or_default();
    bench.processes.stop()?;
    Ok(Report {
        started: started.to_string(),
        machine,
        nodes: servers.nodes(),
        partitions: options.partitions,
        keys: options.settings.keys,
        history_buckets,
        events_per_s: options.events_per_s,
        connections: options.connections,
        rate_per_s,
        rows,
    })
}

/// The processes of raingauge.
struct Processes {
    writer: Role,
    tiles: Role,
    tables: Role,
}

impl Processes {
    fn start(setup: &Setup, redis: &str) -> Result<Self> {
        // Slow requests are measured, not refused.
        let patient = [("CQL__REQUEST_TIMEOUT_MS", "10000"), ("CQL__SPECULATIVE_AFTER_MS", "0")];
        let cached = [
            ("CACHE__RESULT", "redis"),
            ("CACHE__REDIS_URLS", redis),
            ("CACHE__REDIS_TIMEOUT_MS", "200"),
            ("CLUSTER__INSTANCE", "tiles"),
        ];

        let plain = [
            ("CQL__READ_PLAN", "tables"),
            ("CLUSTER__PUBLISH_TILES", "no"),
            ("CLUSTER__INSTANCE", "tables"),
        ];

        let mut processes = Self {
            writer: Role::new("writer", "writer,portal", &patient)?,
            tiles: Role::new("reader-tiles", "reader", &[&patient[..], &cached].concat())?,
            tables: Role::new("reader-tables", "reader", &[&patient[..], &plain].concat())?,
        };

        for role in processes.all() {
            role.start(setup)?;
        }

        for role in processes.all() {
            role.wait_ready(setup)?;
        }
        Ok(processes)
    }

    fn all(&mut self) -> [&mut Role; 3] {
        [&mut self.writer, &mut self.tiles, &mut self.tables]
    }

    fn reader(&self, plan: &str) -> &Role {
        if plan == "tables" { &self.tables } else { &self.tiles }
    }

    fn stop(&mut self) -> Result<()> {
        self.all().into_iter().rev().try_for_each(Role::stop)
    }
}

struct Bench<'a> {
    options: &'a Options,
    processes: Processes,
    truth: Truth<'a>,
    popularity: Popularity,
    random: StdRng,
    /// Batches per second of the open loops.
    rate_per_s: Option<f64>,
}

impl Bench<'_> {
    /// Creates the counter, loads the history, and waits until both readers return it. Returns the
    /// number of buckets.
    fn load(&mut self, workload: &Workload) -> Result<u64> {
        let began = Instant::now();
        let mut lab = Lab::prepare(&self.processes.writer.target(), workload)?;
        self.wait_effective()?;

        let buckets = lab.load_history(workload)?;
        let to_s = workload.end_s;
        let whole = |city| RangeQuery { city, from_s: workload.start_s(), to_s };
        let batches: Vec<Vec<RangeQuery>> =
            (0..self.options.settings.keys).map(|city| vec![whole(city)]).collect();

        for plan in ["tiles", "tables"] {
            self.wait_equal(plan, &batches, false, LOADED_MAX)?;
        }
        eprintln!(
            "strategies: {buckets} buckets of history stored after {:.0} s",
            began.elapsed().as_secs_f64()
        );
        Ok(buckets)
    }

    /// Waits until every partition counts with the new counter.
    fn wait_effective(&self) -> Result<()> {
        let deadline = Instant::now() + LOADED_MAX;

        // Each round uses a city that no other query uses.
        for city in self.options.settings.keys.. {
            let sent = send_probes(&self.processes.writer, city, self.options.partitions)?;
            let now_s = crate::now_s();
            let asked = RangeQuery { city, from_s: now_s - QUARTER_S, to_s: now_s };
            if ask(&self.processes.tiles, &[asked], true).is_ok_and(|counts| counts == [sent]) {
                break;
            }
            ensure!(
                Instant::now() < deadline,
                "the counter did not take effect within {LOADED_MAX:?}"
            );
            std::thread::sleep(POLL);
        }

        Ok(())
    }

    fn measure(&mut self, round: usize, plan: &'static str, strategy: &'static str) -> Result<Row> {
        self.set_policy(strategy)?;
        self.wait_for_room();

        let now_s = crate::now_s();
        let batches = mix::batches(&self.popularity, &mut self.random, now_s, BATCHES);
        let stream = Stream::start(
            &self.processes.writer.target(),
            self.options.settings.keys,
            self.options.events_per_s,
            rand::random(),
        )?;

        let reader = self.processes.reader(plan);
        let target = reader.target();
        let connections = self.options.connections;
        let truth = &self.truth;
        let judge =
            |asked: &RangeQuery, covered| mix::judge(asked, covered, truth, strategy == "phased");
        let mut asking = CountSource::new(&batches, &target, connections, judge);
        let mut drive = |pace, warm_up: u64, seconds: u64| {
            let warm_up = Duration::from_secs(warm_up);
            let duration = Duration::from_secs(seconds);
            load::run(target.address, connections, &Run { pace, warm_up, duration }, &mut asking)
        };

        drive(Pace::Closed, 0, self.options.warm_up)?;
        let before = Costs::of(reader, strategy)?;
        let greatest = drive(Pace::Closed, 0, self.options.seconds)?.measured;
        let costs = Costs::of(reader, strategy)?.since(&before);
        let rate_per_s = *self.rate_per_s.get_or_insert(greatest.requests_per_s / 2.0);
        let paced = drive(Pace::OpenShared(rate_per_s), 1, self.options.seconds)?.measured;

        let checked = asking.checked;
        self.truth.add(&stream.stop()?);

        let compared = self.compare_up_to_now(plan)?;
        say(round, plan, strategy, &greatest);
        Ok(Row {
            round,
            plan,
            strategy,
            greatest,
            paced,
            requests_per_count: costs.requests / costs.counts,
            rows_per_count: costs.rows / costs.counts,
            hit_share: (strategy != "none").then_some(costs.hits / costs.counts),
            failed_share: costs.failed / costs.counts,
            batches_compared: checked + compared,
        })
    }

    /// Waits for the next quarter hour if it would begin during the measurement and change the
    /// ranges that end now.
    fn wait_for_room(&self) {
        let needed = Duration::from_secs(self.options.warm_up + 2 * self.options.seconds) + SLACK;
        let now_s = crate::now_s();
        let left_s = plan::floor(now_s, QUARTER_S) + QUARTER_S - now_s;
        if (left_s as u64) < needed.as_secs() && needed.as_secs() < QUARTER_S as u64 {
            eprintln!("strategies: waiting {left_s} s for the next quarter hour");
            std::thread::sleep(Duration::from_secs(left_s as u64 + 2));
        }
    }

    /// Sets the policy at the portal, and waits until the readers follow it.
    fn set_policy(&self, strategy: &str) -> Result<()> {
        let version =
            policy::set(&self.processes.writer.target(), &json!({ "strategy": strategy }), "")?;
        policy::wait_followed(
            &[self.processes.tiles.target(), self.processes.tables.target()],
            version,
        )
    }

    /// Compares counts up to now, including the open quarter hour: every strategy must return the
    /// same counts.
    fn compare_up_to_now(&mut self, plan: &str) -> Result<u64> {
        let now_s = crate::now_s();
        let mut batches = mix::batches(&self.popularity, &mut self.random, now_s, COMPARED);
        batches.iter_mut().flatten().for_each(|asked| asked.to_s = now_s);
        self.wait_equal(plan, &batches, true, EQUAL_MAX)?;
        Ok(batches.len() as u64)
    }

    /// Queries until every count is correct or the time is up.
    fn wait_equal(
        &self,
        plan: &str,
        batches: &[Vec<RangeQuery>],
        fresh: bool,
        time: Duration,
    ) -> Result<()> {
        let deadline = Instant::now() + time;

        // Several batches per request, since single ones would mostly wait for answers.
        for chunk in batches.chunks(500 / batches[0].len()) {
            let asked = chunk.concat();
            let right = asked.iter().map(|asked| self.right(asked, fresh)).collect::<Vec<i64>>();

            loop {
                let counts = ask(self.processes.reader(plan), &asked, fresh);
                if counts.as_ref().is_ok_and(|counts| *counts == right) {
                    break;
                }
                ensure!(
                    Instant::now() < deadline,
                    "waited {time:?}: {}",
                    difference(&asked, &right, counts)
                );
                std::thread::sleep(POLL);
            }
        }

        Ok(())
    }

    fn right(&self, asked: &RangeQuery, fresh: bool) -> i64 {
        let to_s = if fresh { asked.to_s + QUARTER_S } else { asked.to_s };
        self.truth.count(asked.city, asked.from_s, to_s)
    }
}

fn difference(asked: &[RangeQuery], right: &[i64], counts: Result<Vec<i64>>) -> String {
    match counts {
        Err(error) => format!("{error:#}"),
        Ok(counts) => {
            let mut all = asked.iter().zip(right).zip(counts);
            let wrong = all.find(|((_, right), count)| *right != count);
            wrong.map_or_else(String::new, |((asked, right), count)| {
                format!("WRONG COUNT: {asked:?} returned {count}, expected {right}")
            })
        }
    }
}

/// Queries the counts of ranges.
fn ask(reader: &Role, asked: &[RangeQuery], fresh: bool) -> Result<Vec<i64>> {
    let body = counts::body(asked, fresh);
    let answer = Client::connect(&reader.target())?.json("POST", "/v1/counts", body.as_bytes())?;
    let answer: counts::Answer = serde_json::from_value(answer)?;
    let count =
        |item: counts::Item| item.count.with_context(|| format!("no count for {}", item.key));
    answer.results.into_iter().map(count).collect()
}

/// Sends events of one city that spread over all partitions, and waits until they are counted.
/// Returns their number.
fn send_probes(writer: &Role, city: u32, partitions: u16) -> Result<i64> {
    let drop = Drop { city, time_s: crate::now_s(), amount_cents: 100 };
    let mut body =
        RenderedBody::new(&vec![drop; PROBES_PER_PARTITION * usize::from(partitions)], |_| {
            Vec::new()
        });
    body.renew(&mut Ids::new(rand::random()));
    let mut client = Client::connect(&writer.target())?;
    let answer = client.call_with(NDJSON, "POST", "/v1/events?wait=applied", &body.bytes)?;
    ensure!(answer.status == 200, "POST /v1/events answered {}: {}", answer.status, answer.text());
    Ok(body.events() as i64)
}

fn say(round: usize, plan: &str, strategy: &str, measured: &Measurement) {
    eprintln!(
        "strategies: round {round}: {plan}, {strategy}: {:.0} counts/s",
        measured.units_per_s
    );
}

/// The cumulative cost of a reader's counts.
struct Costs {
    counts: f64,
    requests: f64,
    rows: f64,
    hits: f64,
    failed: f64,
}

impl Costs {
    fn of(reader: &Role, strategy: &str) -> Result<Self> {
        let page = metrics_page(reader)?;
        let label = format!("strategy=\"{strategy}\"");
        let of_strategy = |name: &str| metrics::sum(&page, name, &label);
        Ok(Self {
            counts: metrics::sum(&page, "raingauge_range_counts_total", ""),
            requests: metrics::sum(&page, "raingauge_cql_read_requests_total", ""),
            rows: metrics::sum(&page, "raingauge_cql_read_rows_total", ""),
            hits: of_strategy("raingauge_cache_hits_total"),
            failed: of_strategy("raingauge_cache_errors_total")
                + of_strategy("raingauge_cache_skipped_total"),
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            counts: (self.counts - before.counts).max(1.0),
            requests: self.requests - before.requests,
            rows: self.rows - before.rows,
            hits: self.hits - before.hits,
            failed: self.failed - before.failed,
        }
    }
}

fn metrics_page(role: &Role) -> Result<String> {
    Ok(Client::connect(&role.target())?.call("GET", "/metrics", b"")?.text())
}
