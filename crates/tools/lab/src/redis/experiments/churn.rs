//! A sorted set that gains members and loses as many, for minutes: stores on log-structured trees
//! have become slower and slower on such a queue, because they read over what was deleted.

use super::record::{Curve, Finding, Panel, Record, shown};
use super::servers::Named;
use crate::experiment::report::rules::Verdict;
use anyhow::{Result, ensure};
use raingauge_resp_client::Connection;
use std::time::{Duration, Instant};

const QUEUE: &[u8] = b"lab:queue";
/// Members that are added and removed by one pipeline.
const PIPELINE: u64 = 50;
/// Members that stay.
const MEMBERS: u64 = 1_000;
/// Least share of the first interval's rate that the last one must have.
const LASTING: f64 = 0.9;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// A server, as NAME=HOST:PORT; may be repeated
    #[arg(long = "server", required = true)]
    pub servers: Vec<Named>,
    /// Length of the run, in seconds
    #[arg(long, default_value_t = 600)]
    pub seconds: u64,
    /// Number of intervals whose rates are compared
    #[arg(long, default_value_t = 10)]
    pub intervals: u32,
}

/// Runs the churn on every server.
pub fn run(options: &Options) -> Result<Record> {
    let mut record = Record::new(
        "redis-churn",
        "A sorted set that gains and loses members",
        "Commands per second, ZADD and ZREMRANGEBYRANK in pipelines of 100, over the time of the run.",
    );
    record.set("seconds", options.seconds);
    record.columns = vec!["until s", "commands/s"];

    let mut curves = Vec::new();
    for server in &options.servers {
        let rates = rates(server, options)?;
        let name = server.name.clone();
        for (until_s, rate) in &rates {
            record.row(&name, "churn", vec![*until_s, *rate]);
        }

        let share = rates.first().zip(rates.last()).map(|(first, last)| last.1 / first.1);
        record.findings.push(Finding {
            claim: format!("{name}: the rate lasts"),
            reference: "falls to a hundredth on Kvrocks (its issue 494)",
            here: share.map_or("–".to_owned(), |share| format!("{} x at the end", shown(share))),
            verdict: Verdict::known(share.map(|share| share >= LASTING)),
            rule: "the last interval has at least 0.9 of the first one's rate",
        });
        curves.push(Curve { name, points: rates });
    }

    let title = "Commands per second".to_owned();
    record.panels.push(Panel { title, x: "seconds", is_logarithmic: false, curves });
    Ok(record)
}

fn rates(server: &Named, options: &Options) -> Result<Vec<(f64, f64)>> {
    let mut connection = server.connect()?;
    connection.done(&[b"DEL", QUEUE])?;
    let mut next = 0;
    while next < MEMBERS {
        turn(&mut connection, &mut next, false)?;
    }

    let length = Duration::from_secs(options.seconds) / options.intervals.max(1);
    let mut rates = Vec::new();
    for interval in 1..=options.intervals.max(1) {
        let began = Instant::now();
        let mut commands = 0;
        while began.elapsed() < length {
            turn(&mut connection, &mut next, true)?;
            commands += 2 * PIPELINE;
        }
        let rate = commands as f64 / began.elapsed().as_secs_f64();
        rates.push(((length * interval).as_secs_f64(), rate));
    }

    let count = connection.done(&[b"ZCARD", QUEUE])?.integer();
    ensure!(count == Some(MEMBERS as i64), "the queue has {count:?} members");
    Ok(rates)
}

fn turn(connection: &mut Connection, next: &mut u64, removes: bool) -> Result<()> {
    for _ in 0..PIPELINE {
        let number = next.to_string();
        connection.push(&[b"ZADD", QUEUE, number.as_bytes(), number.as_bytes()]);
        *next += 1;
        if removes {
            connection.push(&[b"ZREMRANGEBYRANK", QUEUE, b"0", b"0"]);
        }
    }
    connection.flush()?;
    let replies = if removes { 2 * PIPELINE } else { PIPELINE };
    for _ in 0..replies {
        let reply = connection.reply()?;
        ensure!(reply.integer() == Some(1), "the queue answered {reply:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::server::Redis;

    #[test]
    fn rates_are_recorded_by_interval() {
        let Some(redis) = Redis::start(&[]).unwrap() else {
            return;
        };
        let server = Named { name: "redis".to_owned(), address: redis.address() };
        let options = Options { servers: vec![server], seconds: 1, intervals: 4 };
        let record = run(&options).unwrap();
        assert_eq!((record.rows.len(), record.findings.len()), (4, 1));
        assert!(record.rows.iter().all(|row| row.values[1] > 0.0));
    }
}
