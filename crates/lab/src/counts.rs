//! Reading: batches of ten ranges by `POST /v1/counts`.

use crate::http::load::{self, Outcome, Source};
use crate::http::{JSON, Target};
use crate::measure::{Measured, Pace, Run};
use crate::plan::{self, QUARTER_S};
use crate::workload::{BATCH_RANGES, Range, Workload, key_of};
use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use serde::Deserialize;
use std::time::Duration;

/// One answer in so many is parsed and checked in full; the others only for the absence of errors.
const CHECK_EVERY: u64 = 256;

pub struct CountSource<'a> {
    batches: &'a [Vec<Range>],
    requests: Vec<Vec<u8>>,
    next: usize,
    current: Vec<usize>,
    answers: u64,
    checked: u64,
    /// Whether the history behind the ranges is known, so that counts can be compared.
    history_known: bool,
    error_finder: memmem::Finder<'static>,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<AnswerItem>,
}

#[derive(Deserialize)]
struct AnswerItem {
    key: String,
    #[serde(rename = "fromTime")]
    from_s: Option<i64>,
    #[serde(rename = "toTime")]
    to_s: Option<i64>,
    count: Option<i64>,
}

impl<'a> CountSource<'a> {
    pub fn new(workload: &'a Workload, target: &Target, connections: usize, history_known: bool) -> Self {
        let requests = workload
            .batches
            .iter()
            .map(|batch| target.request("POST", "/v1/counts", JSON, body(batch).as_bytes()))
            .collect();
        Self {
            batches: &workload.batches,
            requests,
            next: 0,
            current: vec![0; connections],
            answers: 0,
            checked: 0,
            history_known,
            error_finder: memmem::Finder::new(b"\"error\"").into_owned(),
        }
    }

    fn check(&self, batch: &[Range], body: &[u8]) -> Result<()> {
        let answer: Answer = serde_json::from_slice(body)
            .with_context(|| format!("not an answer to counts: {}", String::from_utf8_lossy(body)))?;
        ensure!(answer.results.len() == batch.len(), "{} results for {} ranges", answer.results.len(), batch.len());
        for (range, item) in batch.iter().zip(&answer.results) {
            let from_s = plan::floor(range.from_s, QUARTER_S);
            let to_s = plan::floor(range.to_s, QUARTER_S);
            ensure!(
                item.key == key_of(range.city) && item.from_s == Some(from_s) && item.to_s == Some(to_s),
                "an answer to another question: {} {:?} {:?}, asked was {} {from_s} {to_s}",
                item.key,
                item.from_s,
                item.to_s,
                key_of(range.city),
            );
            let Some(count) = item.count else { bail!("no count for {}", item.key) };
            ensure!(
                !self.history_known || count == range.expected,
                "WRONG COUNT: {} from {from_s} to {to_s} answered {count}, right is {}",
                item.key,
                range.expected
            );
        }
        Ok(())
    }
}

impl Source for CountSource<'_> {
    fn prepare(&mut self, slot: usize) {
        self.current[slot] = self.next;
        self.next = (self.next + 1) % self.requests.len();
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.requests[self.current[slot]]
    }

    fn judge(&mut self, slot: usize, status: u16, body: &[u8]) -> Result<Outcome> {
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

fn body(batch: &[Range]) -> String {
    let items: Vec<String> = batch
        .iter()
        .map(|range| {
            format!(r#"{{"key":"{}","fromTime":{},"toTime":{}}}"#, key_of(range.city), range.from_s, range.to_s)
        })
        .collect();
    format!(r#"{{"requests":[{}]}}"#, items.join(","))
}

pub struct CountsLoad {
    pub measured: Measured,
    pub answers_checked: u64,
    pub pushed_back: u64,
}

pub fn measure(
    workload: &Workload,
    target: &Target,
    connections: usize,
    pace: Pace,
    duration: Duration,
    history_known: bool,
) -> Result<CountsLoad> {
    let mut source = CountSource::new(workload, target, connections, history_known);
    let run = Run { pace, warm_up: Duration::from_secs(1), duration };
    let load = load::run(target.address, connections, &run, &mut source)?;
    Ok(CountsLoad { measured: load.measured, answers_checked: source.checked, pushed_back: load.pushed_back })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Settings;

    fn answer(batch: &[Range], change: i64) -> Vec<u8> {
        let items: Vec<_> = batch
            .iter()
            .map(|range| {
                serde_json::json!({
                    "key": key_of(range.city),
                    "fromTime": plan::floor(range.from_s, QUARTER_S),
                    "toTime": plan::floor(range.to_s, QUARTER_S),
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
        let mut source = CountSource::new(&workload, &target, 1, true);
        source.prepare(0);
        assert!(source.bytes(0).starts_with(b"POST /v1/counts HTTP/1.1\r\n"));
        let right = answer(&workload.batches[0], 0);
        assert_eq!(source.judge(0, 200, &right).unwrap(), Outcome::Done(10));
        assert_eq!(source.judge(0, 503, b"").unwrap(), Outcome::PushedBack);
        assert!(source.judge(0, 200, br#"{"results":[{"key":"k","error":{}}]}"#).is_err());
        source.answers = 0;
        let wrong = answer(&workload.batches[0], 1);
        assert!(source.judge(0, 200, &wrong).unwrap_err().to_string().contains("WRONG COUNT"));
        source.history_known = false;
        assert!(source.judge(0, 200, &wrong).is_ok());
    }
}
