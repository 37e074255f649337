//! The oracle: compares every count of every reader with the model.

use super::model::{Model, Names, Span};
use super::traffic::counts_of;
use crate::http::client::Client;
use crate::http::{JSON, NDJSON, Target};
use crate::plan::HOUR_S;
use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Random ranges per key, in addition to the whole span and each day.
const RANDOM_RANGES: usize = 16;
const RANGES_PER_REQUEST: usize = 250;
const DIFFERENCES_MAX: usize = 50;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest time for a reader to answer once nothing is broken.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// Longest time until all acknowledged events are counted.
const APPLIED_MAX: Duration = Duration::from_secs(300);
/// Events per partition, enough that the probability of an empty partition is 10^-13.
const SPREAD_PER_PARTITION: usize = 32;

/// The result of one comparison.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Comparison {
    /// Number of faults injected before.
    pub after_faults: usize,
    pub readers: Vec<String>,
    pub keys: usize,
    pub counts: u64,
    pub series_points: u64,
    pub different: u64,
    /// The sum of all absolute differences.
    pub deviation: u64,
    /// Descriptions of the first differences.
    pub differences: Vec<String>,
}

impl Comparison {
    fn note(&mut self, what: impl FnOnce() -> String, count: i64, expected: i64) {
        if count == expected {
            return;
        }
        self.different += 1;
        self.deviation += count.abs_diff(expected);
        if self.differences.len() < DIFFERENCES_MAX {
            self.differences.push(format!("{}: {count}, expected {expected}", what()));
        }
    }
}

/// Events that spread over all partitions, one per line.
fn spread(names: &Names, kind: &str, id: &str, partitions: u16, data: &Value) -> String {
    let time = jiff::Timestamp::now();
    let line = |number: usize| {
        let event = json!({
            "specversion": "1.0", "id": format!("{id}-{number}"), "source": names.run, "type": kind,
            "time": time.to_string(), "data": data,
        });
        format!("{event}\n")
    };
    (0..SPREAD_PER_PARTITION * usize::from(partitions)).map(line).collect()
}

/// Waits until everything in the log so far is counted, by appending marker events that no counter
/// counts.
pub fn wait_applied(
    names: &Names,
    writers: &[&Target],
    partitions: u16,
    round: usize,
) -> Result<()> {
    let body =
        spread(names, &names.marker_type(), &format!("marker-{round}"), partitions, &Value::Null);
    send_applied(writers, &body)
}

fn send_applied(writers: &[&Target], body: &str) -> Result<()> {
    let deadline = Instant::now() + APPLIED_MAX;
    for target in writers.iter().cycle() {
        match ask(target, NDJSON, "POST", "/v1/events?wait=applied", body.as_bytes()) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() >= deadline => {
                return Err(
                    error.context(format!("not all events were counted within {APPLIED_MAX:?}"))
                );
            }
            Err(_) => std::thread::sleep(Duration::from_millis(250)),
        }
    }

    bail!("there is no writer")
}

/// Waits until every partition has the new counters, that is, until the probes in all partitions
/// are counted.
pub fn wait_effective(
    names: &Names,
    writers: &[&Target],
    reader: &Target,
    partitions: u16,
) -> Result<()> {
    let deadline = Instant::now() + APPLIED_MAX;
    let probes = (SPREAD_PER_PARTITION * usize::from(partitions)) as i64;
    for round in 0.. {
        let id = format!("probe-{round}");
        send_applied(
            writers,
            &spread(names, &names.probe_type(), &id, partitions, &json!({ "round": round })),
        )?;

        let now_s = crate::now_s();
        let range = json!({ "key": names.probe_key(round), "fromTime": now_s - HOUR_S, "toTime": now_s + HOUR_S });
        let body = json!({ "requests": [range] }).to_string();
        let asked = ask(reader, JSON, "POST", "/v1/counts", body.as_bytes())
            .and_then(|body| counts_of(&body, 1));
        if asked.as_ref().is_ok_and(|counts| counts[0] == probes) {
            break;
        }

        ensure!(
            Instant::now() < deadline,
            "a new counter did not count {probes} probes within {APPLIED_MAX:?}; the last answer: {asked:?}"
        );
    }

    Ok(())
}

fn ask(target: &Target, kind: &str, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>> {
    let mut client = Client::connect_within(target, ANSWER_TIMEOUT)?;
    let answer = client.call_with(kind, method, path, body)?;
    ensure!(answer.status == 200, "{method} {path} answered {}: {}", answer.status, answer.text());
    Ok(answer.body)
}

/// Retries while the reader cannot answer, until a deadline.
fn ask_until<T>(name: &str, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + ANSWER_MAX;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context(format!("{name} did not answer within {ANSWER_MAX:?}")));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(250)),
        }
    }
}

/// Compares the whole span, each day and random ranges of every key, and each hour of the span.
pub fn compare(
    model: &Model,
    span: Span,
    readers: &[(String, Target)],
    after_faults: usize,
    random: &mut StdRng,
) -> Result<Comparison> {
    let names = readers.iter().map(|(name, _)| name.clone()).collect();
    let keys = model.keys();
    let mut compared =
        Comparison { after_faults, readers: names, keys: keys.len(), ..Comparison::default() };

    for (name, target) in readers {
        let mut ranges = Vec::new();
        for key in &keys {
            ranges.push((key, span.from_s, span.to_s));
            ranges.extend(span.days().map(|(from_s, to_s)| (key, from_s, to_s)));
            ranges.extend(
                (0..RANDOM_RANGES)
                    .map(|_| span.random_range(random))
                    .map(|(from, to)| (key, from, to)),
            );
        }

        for some in ranges.chunks(RANGES_PER_REQUEST) {
            compare_counts(model, name, target, some, &mut compared)?;
        }

        for key in &keys {
            compare_series(model, name, target, key, span, &mut compared)?;
        }
    }

    Ok(compared)
}

fn compare_counts(
    model: &Model,
    name: &str,
    target: &Target,
    ranges: &[(&String, i64, i64)],
    compared: &mut Comparison,
) -> Result<()> {
    let requests: Vec<Value> = ranges
        .iter()
        .map(|(key, from_s, to_s)| json!({ "key": key, "fromTime": from_s, "toTime": to_s }))
        .collect();
    let body = json!({ "requests": requests }).to_string().into_bytes();
    let counts = ask_until(name, || {
        counts_of(&ask(target, JSON, "POST", "/v1/counts", &body)?, ranges.len())
    })?;
    for ((key, from_s, to_s), count) in ranges.iter().zip(counts) {
        compared.counts += 1;
        let expected = model.count(key, *from_s, *to_s);
        compared.note(|| format!("{name}: {key} in [{from_s}, {to_s})"), count, expected);
    }

    Ok(())
}

fn compare_series(
    model: &Model,
    name: &str,
    target: &Target,
    key: &str,
    span: Span,
    compared: &mut Comparison,
) -> Result<()> {
    let path = format!(
        "/v1/series?key={key}&fromTime={}&toTime={}&granularity=hour&timezone=UTC",
        span.from_s, span.to_s
    );
    let answer = ask_until(name, || {
        let body = ask(target, JSON, "GET", &path, b"")?;
        serde_json::from_slice::<Value>(&body).context("the series is not JSON")
    })?;
    let points = answer["points"].as_array().with_context(|| format!("no points: {answer}"))?;
    let hours = (span.to_s - span.from_s) / HOUR_S;

    ensure!(
        points.len() as i64 == hours,
        "{name}: the series of {key} has {} points of {hours}",
        points.len()
    );

    for point in points {
        let number =
            |member: &str| point[member].as_i64().with_context(|| format!("no {member}: {point}"));
        let time_s = number("time")?;
        let count = number("count")?;
        compared.series_points += 1;

        let expected = model.count(key, time_s, time_s + HOUR_S);
        compared.note(|| format!("{name}: {key}, the hour at {time_s}"), count, expected);
    }

    Ok(())
}
