//! A worker that needs 1,500 commands on a sorted set for every message: one by one, in three
//! batches (write, read, write), and in two with a third fewer commands.
//!
//! A round trip through a network is simulated by the client, which waits after the last reply of
//! each round trip. The time of a message is then that of the commands plus the waits, as on a real
//! network of that delay.

use super::record::{Curve, Finding, Panel, Record, shown};
use super::servers::Named;
use crate::experiment::report::rules::Verdict;
use anyhow::{Result, ensure};
use raingauge_resp_client::{Connection, Reply};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

const BOARD: &[u8] = b"lab:board";
/// Commands of a message, and those that are left after the second refactoring.
const COMMANDS: usize = 1_500;
const COMMANDS_FEWER: usize = 1_050;
const LOAD_PIPELINE: usize = 1_000;
/// The last part of a wait is spent spinning, because sleeps end late.
const SPIN: Duration = Duration::from_micros(200);

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// A server, as NAME=HOST:PORT; may be repeated
    #[arg(long = "server", required = true)]
    pub servers: Vec<Named>,
    /// Members of the board
    #[arg(long, default_value_t = 1_000_000)]
    pub members: u64,
    /// Messages per measurement
    #[arg(long, default_value_t = 20)]
    pub messages: usize,
    /// Added time of a round trip, in microseconds
    #[arg(long, value_delimiter = ',', default_values_t = [0, 100, 250, 500, 1_000, 2_000])]
    pub rtt_us: Vec<u64>,
    /// Seed of members and scores
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How the commands of a message are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    OneByOne,
    ThreeBatches,
    TwoBatches,
}

const WAYS: [Way; 3] = [Way::OneByOne, Way::ThreeBatches, Way::TwoBatches];

impl Way {
    fn words(self) -> &'static str {
        match self {
            Self::OneByOne => "one by one",
            Self::ThreeBatches => "3 batches",
            Self::TwoBatches => "2 batches",
        }
    }

    /// The batches of a message, each with whether it writes.
    fn batches(self) -> &'static [(usize, bool)] {
        const THIRD: usize = COMMANDS / 3;
        match self {
            Self::OneByOne | Self::ThreeBatches => &[(THIRD, true), (THIRD, false), (THIRD, true)],
            Self::TwoBatches => &[(COMMANDS_FEWER / 2, false), (COMMANDS_FEWER / 2, true)],
        }
    }
}

/// Measures every server at every round-trip time.
pub fn run(options: &Options) -> Result<Record> {
    let mut record = Record::new(
        "redis-pipeline",
        "1,500 commands a message",
        "Milliseconds of a message whose worker sends 1,500 commands on a sorted set one by one, in 3 batches, \
         or 1,050 in 2 batches, over the time of a round trip that is added.",
    );
    record.set("members", options.members);
    record.set("messages", options.messages);
    record.set("seed", options.seed);
    record.columns = vec!["added ms", "p50 ms", "max ms", "server ms", "times faster"];

    for server in &options.servers {
        load(server, options)?;
        measure(server, options, &mut record)?;
    }
    Ok(record)
}

fn load(server: &Named, options: &Options) -> Result<()> {
    let mut connection = server.connect()?;
    connection.done(&[b"DEL", BOARD])?;
    let mut random = StdRng::seed_from_u64(options.seed);
    let members: Vec<u64> = (0..options.members).collect();
    for part in members.chunks(LOAD_PIPELINE) {
        for member in part {
            let score = random.random_range(0..1_000_000_u32).to_string();
            connection.push(&[b"ZADD", BOARD, score.as_bytes(), member_name(*member).as_bytes()]);
        }
        connection.flush()?;
        for _ in part {
            let reply = connection.reply()?;
            ensure!(reply.error().is_none(), "a member could not be added: {reply:?}");
        }
    }

    let count = connection.done(&[b"ZCARD", BOARD])?;
    ensure!(count.integer() == Some(options.members as i64), "the board has {count:?} members");
    Ok(())
}

fn member_name(member: u64) -> String {
    format!("finding:{member:09}")
}

fn measure(server: &Named, options: &Options, record: &mut Record) -> Result<()> {
    let mut connection = server.connect()?;
    let mut curves: Vec<Curve> = WAYS
        .iter()
        .map(|way| Curve { name: format!("{}: {}", server.name, way.words()), points: vec![] })
        .collect();
    let mut gains = vec![];

    for rtt_us in &options.rtt_us {
        let wait = Duration::from_micros(*rtt_us);
        let mut slow_ms = f64::NAN;
        for (place, way) in WAYS.into_iter().enumerate() {
            let mut random = StdRng::seed_from_u64(options.seed + 1);
            // The first message warms caches up.
            message(&mut connection, way, Duration::ZERO, options, &mut random)?;

            let before_us = server_us(server)?;
            let mut times = Vec::with_capacity(options.messages);
            for _ in 0..options.messages.max(1) {
                times.push(message(&mut connection, way, wait, options, &mut random)?);
            }
            let spent_us = server_us(server)?.zip(before_us).map(|(after, before)| after - before);

            times.sort_unstable();
            let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
            let median = ms(times[times.len() / 2]);
            let server_ms = spent_us.map_or(f64::NAN, |us| us / 1_000.0 / times.len() as f64);
            if way == Way::OneByOne {
                slow_ms = median;
            }

            let added_ms = *rtt_us as f64 / 1_000.0;
            let values =
                vec![added_ms, median, ms(times[times.len() - 1]), server_ms, slow_ms / median];
            record.row(&server.name, way.words(), values);
            curves[place].points.push((added_ms, median));
            if way != Way::OneByOne {
                gains.push((way, added_ms, slow_ms / median));
            }
        }
    }

    findings(server, &gains, record);
    record.panels.push(Panel {
        title: format!("{}: milliseconds of a message", server.name),
        x: "added round-trip time, ms",
        is_logarithmic: true,
        curves,
    });
    Ok(())
}

fn findings(server: &Named, gains: &[(Way, f64, f64)], record: &mut Record) {
    let claims = [
        (Way::ThreeBatches, "3 batches are 10 to 12 times faster", "10–12 x", 10.0),
        (Way::TwoBatches, "2 batches are 15 times faster", "15 x", 15.0),
    ];
    for (way, claim, reference, least) in claims {
        let of_way =
            || gains.iter().filter(|(of, ..)| *of == way).map(|(_, rtt, gain)| (*rtt, *gain));
        let shown_gains: Vec<String> =
            of_way().map(|(rtt, gain)| format!("{} x at {rtt} ms", shown(gain))).collect();
        let is_reached = of_way().map(|(_, gain)| gain >= least).reduce(|all, one| all && one);
        record.findings.push(Finding {
            claim: format!("{}: {claim}", server.name),
            reference,
            here: shown_gains.join(", "),
            verdict: Verdict::known(is_reached),
            rule: "at least as much at every round-trip time",
        });
    }
}

/// Sends the commands of a message. Returns its time.
fn message(
    connection: &mut Connection,
    way: Way,
    wait: Duration,
    options: &Options,
    random: &mut StdRng,
) -> Result<Duration> {
    let began = Instant::now();
    for (len, writes) in way.batches() {
        let trips = if way == Way::OneByOne { *len } else { 1 };
        for _ in 0..trips {
            let commands = len / trips;
            for _ in 0..commands {
                push(connection, *writes, options, random);
            }
            connection.flush()?;
            for _ in 0..commands {
                let reply: Reply = connection.reply()?;
                ensure!(reply.error().is_none(), "the board answered {reply:?}");
            }
            pause(wait);
        }
    }
    Ok(began.elapsed())
}

fn push(connection: &mut Connection, writes: bool, options: &Options, random: &mut StdRng) {
    let member = member_name(random.random_range(0..options.members));
    let member = member.as_bytes();
    match (writes, random.random_range(0..3)) {
        (true, 0) => connection.push(&[b"ZINCRBY", BOARD, b"1", member]),
        (true, _) => {
            let score = random.random_range(0..1_000_000_u32).to_string();
            connection.push(&[b"ZADD", BOARD, score.as_bytes(), member]);
        }
        (false, 0) => connection.push(&[b"ZREVRANGE", BOARD, b"0", b"9"]),
        (false, _) => connection.push(&[b"ZREVRANK", BOARD, member]),
    }
}

/// Waits for an exact time.
fn pause(wait: Duration) {
    let until = Instant::now() + wait;
    if wait > SPIN {
        std::thread::sleep(wait - SPIN);
    }
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// The time that the server has spent on commands, in microseconds, if it says so.
fn server_us(server: &Named) -> Result<Option<f64>> {
    let answer = server.connect()?.call(&[b"INFO", b"commandstats"])?;
    let text = String::from_utf8_lossy(answer.bytes().unwrap_or_default()).into_owned();
    let time = |line: &str| -> Option<f64> {
        let rest = line.strip_prefix("cmdstat_z")?;
        let (_, after) = rest.split_once("usec=")?;
        after.split(',').next()?.parse().ok()
    };
    let times: Vec<f64> = text.lines().filter_map(time).collect();
    Ok((!times.is_empty()).then(|| times.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::server::Redis;

    #[test]
    fn every_way_is_measured_at_every_round_trip_time() {
        let Some(redis) = Redis::start(&[]).unwrap() else {
            return;
        };
        let server = Named { name: "redis".to_owned(), address: redis.address() };
        let options = Options {
            servers: vec![server],
            members: 2_000,
            messages: 2,
            rtt_us: vec![0, 300],
            seed: 1,
        };
        let record = run(&options).unwrap();

        assert_eq!((record.rows.len(), record.panels.len(), record.findings.len()), (6, 1, 2));
        let round_trips = record.rows.iter().map(|row| row.values[0]);
        assert_eq!(round_trips.collect::<Vec<_>>(), [0.0, 0.0, 0.0, 0.3, 0.3, 0.3]);
        assert!(record.rows[0].values[3] > 0.0, "Redis says how long commands took");
    }
}
