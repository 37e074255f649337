//! The same awards on databases, each as its users would do it.
//!
//! An award is a row of entries with a unique key, and a wallet that it is added to, both in one
//! durable transaction. One at a time it is a function or a prepared pair of statements; a batch is
//! one statement over arrays, which passes repeated keys over.

mod mysql;
mod postgres;
mod sqlite;

use super::{Members, POINTS};
use crate::report::{grouped, milliseconds};
use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, clap::Subcommand)]
pub enum System {
    /// PostgreSQL, synchronous_commit = on
    #[command(after_help = "Example: raingauge lab points-peer postgresql --port 5432")]
    Postgresql {
        #[arg(long)]
        port: u16,
        #[arg(long, default_value = "postgres")]
        user: String,
    },
    /// MariaDB, with its defaults: a sync at each commit
    #[command(
        after_help = "Example: raingauge lab points-peer mariadb --url mysql://root@127.0.0.1:3306/points"
    )]
    Mariadb {
        /// mysql://user:password@host:port/database
        #[arg(long)]
        url: String,
    },
    /// SQLite in this process, WAL, synchronous = FULL
    #[command(after_help = "Example: raingauge lab points-peer sqlite --folder /tmp/peer")]
    Sqlite {
        /// An empty folder
        #[arg(long)]
        folder: PathBuf,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    pub system: System,
    /// Members that the awards are for
    #[arg(long, default_value_t = 1_000_000, global = true)]
    pub members: u64,
    /// Exponent of Zipf's law by which members are drawn; 0 draws them evenly
    #[arg(long, default_value_t = 0.0, global = true)]
    pub skew: f64,
    /// Awards per statement, one measurement for each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 1_000], global = true)]
    pub batches: Vec<usize>,
    /// Connections, each with one statement at a time
    #[arg(long, default_value_t = 32, global = true)]
    pub connections: usize,
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 10, global = true)]
    pub seconds: u64,
    /// File for the measurements, as JSON
    #[arg(long, global = true)]
    pub json: Option<PathBuf>,
}

/// One award.
#[derive(Debug, Clone)]
pub struct Award {
    pub key: String,
    pub member: i64,
    pub points: i64,
}

/// Draws awards. One of a hundred repeats the one before it.
pub struct Draws {
    members: Members,
    random: StdRng,
    run: u64,
    next: u64,
}

/// A connection that awards.
trait Awarder {
    /// Awards a batch durably, each key once. Returns how many keys were new.
    async fn award(&mut self, batch: &[Award]) -> Result<u64>;
}

/// A system that can be connected to, and asked for all it has.
trait Ledger {
    type Awarder: Awarder;

    async fn connect(&self) -> Result<Self::Awarder>;
    /// Creates the tables, and the wallets of all members.
    async fn prepare(&self, members: u64) -> Result<()>;
    /// The points of all wallets, and of all entries.
    async fn totals(&self) -> Result<(i64, i64)>;
}

/// What was measured at one size of batches.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub batch: usize,
    pub connections: usize,
    pub awards_per_s: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

impl Draws {
    fn new(options: &Options, connection: usize) -> Self {
        Self {
            members: Members::new(options.members, options.skew),
            random: StdRng::seed_from_u64(connection as u64),
            run: rand::random(),
            next: 0,
        }
    }

    fn batch(&mut self, len: usize) -> Vec<Award> {
        let mut batch: Vec<Award> = Vec::with_capacity(len);
        while batch.len() < len {
            let repeats = self.random.random_range(0..100) == 0;
            if let Some(last) = batch.last().filter(|_| repeats).cloned() {
                batch.push(last);
                continue;
            }
            let member = self.members.draw(&mut self.random) as i64;
            let key = format!("{:016x}-{}", self.run, self.next);
            self.next += 1;
            batch.push(Award { key, member, points: POINTS as i64 });
        }
        batch
    }
}

pub fn run(options: &Options) -> Result<Vec<Measured>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &options.system {
            System::Postgresql { port, user } => {
                let ledger = postgres::Postgres { port: *port, user: user.clone() };
                measure(&ledger, options, options.connections).await
            }
            System::Mariadb { url } => {
                let ledger = mysql::MariaDb { url: url.clone() };
                measure(&ledger, options, options.connections).await
            }
            // It has one writer at a time.
            System::Sqlite { folder } => {
                let ledger = sqlite::Sqlite { path: folder.join("points.sqlite") };
                measure(&ledger, options, 1).await
            }
        }
    })
}

async fn measure<L: Ledger>(
    ledger: &L,
    options: &Options,
    connections: usize,
) -> Result<Vec<Measured>> {
    ledger.prepare(options.members).await?;
    let mut all = Vec::new();
    let mut expected = 0;
    for batch in &options.batches {
        let mut loops = Vec::new();
        let until = Instant::now() + Duration::from_secs(options.seconds);
        for connection in 0..connections {
            let mut awarder = ledger.connect().await?;
            let mut draws = Draws::new(options, connection);
            loops.push(async move {
                let mut latencies = Histogram::<u64>::new(3)?;
                let mut new = 0;
                let mut sent = 0;
                while Instant::now() < until {
                    let awards = draws.batch(*batch);
                    let began = Instant::now();
                    new += awarder.award(&awards).await?;
                    latencies.record(began.elapsed().as_micros() as u64)?;
                    sent += awards.len() as u64;
                }
                anyhow::Ok((new, sent, latencies))
            });
        }

        let began = Instant::now();
        let mut latencies = Histogram::<u64>::new(3)?;
        let mut sent = 0;
        for ended in join_all(loops).await {
            let (new_of_one, sent_of_one, of_one) = ended?;
            expected += new_of_one as i64 * POINTS as i64;
            sent += sent_of_one;
            latencies.add(of_one)?;
        }
        all.push(Measured {
            batch: *batch,
            connections,
            awards_per_s: sent as f64 / began.elapsed().as_secs_f64(),
            p50_us: latencies.value_at_quantile(0.5),
            p99_us: latencies.value_at_quantile(0.99),
            max_us: latencies.max(),
        });
    }

    let totals = ledger.totals().await?;
    ensure!(
        totals == (expected, expected),
        "wallets and entries have {totals:?} points, and {expected} were awarded"
    );
    Ok(all)
}

/// Runs futures beside each other on this thread.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in &mut running {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(found) => *output = Some(found),
                    std::task::Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

pub fn text(measured: &[Measured]) -> String {
    let lines = measured.iter().map(|one| {
        format!(
            "batches of {}, {} connections: {} awards/s; ms p50 {} p99 {} max {}\n",
            one.batch,
            one.connections,
            grouped(one.awards_per_s),
            milliseconds(one.p50_us as f64),
            milliseconds(one.p99_us as f64),
            milliseconds(one.max_us as f64),
        )
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(system: System, connections: usize) {
        let options = Options {
            system,
            members: 100,
            skew: 1.0,
            batches: vec![1, 50],
            connections,
            seconds: 1,
            json: None,
        };
        // It ends with an error unless each key was awarded once.
        let measured = run(&options).unwrap();
        assert_eq!(measured.len(), 2);
        assert!(measured.iter().all(|one| one.awards_per_s > 0.0));
    }

    #[test]
    fn awards_on_sqlite_are_made_once_each() {
        let folder = tempfile::tempdir().unwrap();
        check(System::Sqlite { folder: folder.path().to_owned() }, 1);
    }

    #[test]
    fn awards_on_mariadb_are_made_once_each() {
        match std::env::var("RAINGAUGE_TEST_MYSQL") {
            Ok(url) => check(System::Mariadb { url }, 8),
            Err(_) => eprintln!("skipped: RAINGAUGE_TEST_MYSQL is not set"),
        }
    }

    #[test]
    fn awards_on_postgresql_are_made_once_each() {
        let port = std::env::var("RAINGAUGE_TEST_POSTGRESQL").ok();
        match port.and_then(|port| port.parse().ok()) {
            Some(port) => check(System::Postgresql { port, user: "postgres".to_owned() }, 8),
            None => eprintln!("skipped: RAINGAUGE_TEST_POSTGRESQL, a port, is not set"),
        }
    }
}
