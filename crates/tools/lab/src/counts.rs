//! Range counts: batches of ten ranges by `POST /v1/counts`.

use crate::http::load::{self, Outcome, Reply, Source};
use crate::http::{JSON, Target};
use crate::measure::{Measurement, Pace, Run};
use crate::workload::{BATCH_RANGES, Range, RangeQuery, Workload, key_of};
use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use serde::Deserialize;
use std::time::{Duration, Instant};

/// Every `CHECK_EVERY`th answer is parsed and checked in full; the others only for errors.
const CHECK_EVERY: u64 = 64;

/// The server's answer to a batch.
#[derive(Deserialize)]
pub struct Answer {
    pub results: Vec<Item>,
}

#[derive(Deserialize)]
pub struct Item {
    pub key: String,
    #[serde(rename = "fromTime")]
    pub from_s: Option<i64>,
    #[serde(rename = "toTime")]
    pub to_s: Option<i64>,
    pub count: Option<i64>,
}

/// Sends one batch after another, and validates a sample of the answers.
struct CountSource<'a> {
    batches: &'a [Vec<Range>],
    requests: Vec<Vec<u8>>,
    /// Whether counts are compared with the correct ones.
    history_known: bool,
    next: usize,
    current: Vec<usize>,
    answers: u64,
    checked: u64,
    error_finder: memmem::Finder<'static>,
}

impl<'a> CountSource<'a> {
    fn new(
        batches: &'a [Vec<Range>],
        target: &Target,
        connections: usize,
        history_known: bool,
    ) -> Self {
        let request =
            |batch: &Vec<Range>| target.request("POST", "/v1/counts", JSON, body(batch).as_bytes());
        Self {
            batches,
            requests: batches.iter().map(request).collect(),
            history_known,
            next: 0,
            current: vec![0; connections],
            answers: 0,
            checked: 0,
            error_finder: memmem::Finder::new(b"\"error\"").into_owned(),
        }
    }

    fn check(&self, batch: &[Range], body: &[u8]) -> Result<()> {
        let text = || String::from_utf8_lossy(body);
        let answer: Answer = serde_json::from_slice(body)
            .with_context(|| format!("not an answer to counts: {}", text()))?;
        let len = answer.results.len();
        ensure!(len == batch.len(), "{len} results for {} ranges", batch.len());

        for (range, item) in batch.iter().zip(&answer.results) {
            let Item { key, from_s: Some(from_s), to_s: Some(to_s), count: Some(count) } = item
            else {
                bail!("no count for {:?}: {}", range.asked, text());
            };

            let right_key = key_of(range.asked.city);
            ensure!(
                *key == right_key && (*from_s, *to_s) == range.floored(),
                "the answer is for a different range: {key} {from_s} {to_s}, requested was {:?}",
                range.asked
            );
            ensure!(
                !self.history_known || *count == range.expected,
                "WRONG COUNT: {key} from {from_s} to {to_s} returned {count}, expected {}",
                range.expected
            );
        }

        Ok(())
    }
}

impl Source for CountSource<'_> {
    fn prepare(&mut self, slot: usize, _due: Instant) {
        self.current[slot] = self.next;
        self.next = (self.next + 1) % self.requests.len();
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.requests[self.current[slot]]
    }

    fn judge(&mut self, slot: usize, &Reply { status, body, .. }: &Reply<'_>) -> Result<Outcome> {
        match status {
            200 => {}
            429 | 503 => return Ok(Outcome::PushedBack),
            _ => bail!("POST /v1/counts answered {status}: {}", String::from_utf8_lossy(body)),
        }

        if self.answers.is_multiple_of(CHECK_EVERY) {
            self.check(&self.batches[self.current[slot]], body)?;
            self.checked += 1;
        } else if self.error_finder.find(body).is_some() {
            bail!("an item of the answer is an error: {}", String::from_utf8_lossy(body));
        }

        self.answers += 1;
        Ok(Outcome::Done(BATCH_RANGES as u64))
    }
}

/// The request body for a batch.
pub fn body(batch: &[Range]) -> String {
    let item = |range: &Range| {
        let RangeQuery { city, from_s, to_s } = range.asked;
        format!(r#"{{"key":"{}","fromTime":{from_s},"toTime":{to_s}}}"#, key_of(city))
    };
    let items: Vec<String> = batch.iter().map(item).collect();
    format!(r#"{{"requests":[{}]}}"#, items.join(","))
}

pub struct CountsLoad {
    pub measured: Measurement,
    pub answers_checked: u64,
    pub pushed_back: u64,
}

/// Sends the batches of a workload. Counts are compared if the history of the ranges is known.
pub fn measure(
    workload: &Workload,
    target: &Target,
    connections: usize,
    pace: Pace,
    duration: Duration,
    history_known: bool,
) -> Result<CountsLoad> {
    let mut source = CountSource::new(&workload.batches, target, connections, history_known);
    let run = Run { pace, warm_up: Duration::from_secs(1), duration };
    let load = load::run(target.address, connections, &run, &mut source)?;
    Ok(CountsLoad {
        measured: load.measured,
        answers_checked: source.checked,
        pushed_back: load.pushed_back,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{self, QUARTER_S};
    use crate::workload::Settings;

    fn answer(batch: &[Range], change: i64) -> Vec<u8> {
        let items: Vec<_> = batch
            .iter()
            .map(|range| {
                serde_json::json!({
                    "key": key_of(range.asked.city),
                    "fromTime": plan::floor(range.asked.from_s, QUARTER_S),
                    "toTime": plan::floor(range.asked.to_s, QUARTER_S),
                    "count": range.expected + change,
                })
            })
            .collect();
        serde_json::to_vec(&serde_json::json!({ "results": items })).unwrap()
    }

    #[test]
    fn right_answers_pass_and_wrong_ones_stop_the_run() {
        let workload = Workload::new(Settings { keys: 20, history: 5_000, seed: 1 }, 1_795_000_000);
        let target = Target { address: ([127, 0, 0, 1], 1).into(), token: None };
        let mut source = CountSource::new(&workload.batches, &target, 1, true);
        let now = Instant::now();

        source.prepare(0, now);
        assert!(source.bytes(0).starts_with(b"POST /v1/counts HTTP/1.1\r\n"));

        let right = answer(&workload.batches[0], 0);
        fn reply(status: u16, body: &[u8], at: Instant) -> Reply<'_> {
            Reply { status, head: b"", body, at }
        }

        assert_eq!(source.judge(0, &reply(200, &right, now)).unwrap(), Outcome::Done(10));
        assert_eq!(source.judge(0, &reply(503, b"", now)).unwrap(), Outcome::PushedBack);
        assert!(
            source.judge(0, &reply(200, br#"{"results":[{"key":"k","error":{}}]}"#, now)).is_err()
        );
        source.answers = 0;

        let wrong = answer(&workload.batches[0], 1);
        let said = source.judge(0, &reply(200, &wrong, now)).unwrap_err();
        assert!(said.to_string().contains("WRONG COUNT"));

        let mut trusting = CountSource::new(&workload.batches, &target, 1, false);
        assert!(trusting.judge(0, &reply(200, &wrong, now)).is_ok());
    }
}
