//! What services ask a reader: windows that end within the last hour, of keys some of which are asked for often.

use crate::http::load::{Outcome, Source};
use crate::http::{JSON, Target};
use crate::plan::{self, DAY_S, HOUR_S, QUARTER_S};
use crate::strategies::truth::Truth;
use crate::workload::{BATCH_RANGES, Popularity, key_of};
use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use rand::Rng;
use rand::rngs::StdRng;
use serde::Deserialize;

/// Lengths of windows, and how often each is asked for in a hundred: those by which the bucket store is measured.
const WINDOWS: [(i64, u32); 5] = [(HOUR_S, 20), (DAY_S, 30), (7 * DAY_S, 25), (30 * DAY_S, 20), (90 * DAY_S, 5)];
/// How far back a window may end.
const END_SPREAD_S: i64 = HOUR_S;
/// One answer in so many is compared with the truth; the others are only looked at for errors.
const CHECK_EVERY: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub city: u32,
    pub from_s: i64,
    pub to_s: i64,
}

impl Asked {
    /// Whether an answer may cover this range. One that is rolled over by its own phase covers the quarter hour before.
    fn may_be_answered_as(&self, from_s: i64, to_s: i64, may_be_early: bool) -> bool {
        let asked = (plan::floor(self.from_s, QUARTER_S), plan::floor(self.to_s, QUARTER_S));
        let early_to_s = asked.1 - QUARTER_S;
        (from_s, to_s) == asked
            || may_be_early && to_s == early_to_s && (from_s == asked.0 || from_s == asked.0 - QUARTER_S)
    }
}

/// Random ranges as seen from one moment.
pub fn batches(popularity: &Popularity, random: &mut StdRng, now_s: i64, len: usize) -> Vec<Vec<Asked>> {
    let mut range = || {
        let to_s = now_s - random.random_range(0..END_SPREAD_S);
        Asked { city: popularity.pick(random), from_s: to_s - window_s(random), to_s }
    };
    (0..len).map(|_| (0..BATCH_RANGES).map(|_| range()).collect()).collect()
}

fn window_s(random: &mut StdRng) -> i64 {
    let mut drawn = random.random_range(0..WINDOWS.iter().map(|(_, share)| share).sum());
    for (len_s, share) in WINDOWS {
        if drawn < share {
            return len_s;
        }
        drawn -= share;
    }
    unreachable!("the shares add up to what was drawn from")
}

pub fn body(batch: &[Asked], fresh: bool) -> String {
    let fresh = if fresh { r#","fresh":true"# } else { "" };
    let items: Vec<String> = batch
        .iter()
        .map(|Asked { city, from_s, to_s }| {
            format!(r#"{{"key":"{}","fromTime":{from_s},"toTime":{to_s}{fresh}}}"#, key_of(*city))
        })
        .collect();
    format!(r#"{{"requests":[{}]}}"#, items.join(","))
}

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

/// Asks one batch after another, and compares some of the answers.
pub struct Asking<'a> {
    batches: &'a [Vec<Asked>],
    requests: Vec<Vec<u8>>,
    truth: &'a Truth<'a>,
    may_be_early: bool,
    next: usize,
    current: Vec<usize>,
    answers: u64,
    pub checked: u64,
    error_finder: memmem::Finder<'static>,
}

impl<'a> Asking<'a> {
    pub fn new(
        batches: &'a [Vec<Asked>],
        target: &Target,
        connections: usize,
        truth: &'a Truth<'a>,
        may_be_early: bool,
    ) -> Self {
        let request = |batch: &Vec<Asked>| target.request("POST", "/v1/counts", JSON, body(batch, false).as_bytes());
        Self {
            batches,
            requests: batches.iter().map(request).collect(),
            truth,
            may_be_early,
            next: 0,
            current: vec![0; connections],
            answers: 0,
            checked: 0,
            error_finder: memmem::Finder::new(b"\"error\"").into_owned(),
        }
    }

    fn check(&self, batch: &[Asked], body: &[u8]) -> Result<()> {
        let answer: Answer = serde_json::from_slice(body)
            .with_context(|| format!("not an answer to counts: {}", String::from_utf8_lossy(body)))?;
        ensure!(answer.results.len() == batch.len(), "{} results for {} ranges", answer.results.len(), batch.len());
        for (asked, item) in batch.iter().zip(&answer.results) {
            let (Some(from_s), Some(to_s), Some(count)) = (item.from_s, item.to_s, item.count) else {
                bail!("no count for {asked:?}: {}", String::from_utf8_lossy(body));
            };
            ensure!(
                item.key == key_of(asked.city) && asked.may_be_answered_as(from_s, to_s, self.may_be_early),
                "an answer to another question: {} {from_s} {to_s}, asked was {asked:?}",
                item.key,
            );
            let right = self.truth.count(asked.city, from_s, to_s);
            ensure!(
                count == right,
                "WRONG COUNT: {} from {from_s} to {to_s} answered {count}, right is {right}",
                item.key
            );
        }
        Ok(())
    }
}

impl Source for Asking<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Settings, Workload};
    use rand::SeedableRng;

    const NOW_S: i64 = 1_795_000_123;

    #[test]
    fn windows_end_within_the_last_hour_and_have_the_shares_of_the_mix() {
        let mut random = StdRng::seed_from_u64(1);
        let asked = batches(&Popularity::new(50), &mut random, NOW_S, 2_000).concat();
        assert!(asked.iter().all(|asked| (NOW_S - HOUR_S..=NOW_S).contains(&asked.to_s)));
        for (len_s, share) in WINDOWS {
            let found = asked.iter().filter(|asked| asked.to_s - asked.from_s == len_s).count();
            assert!((found as i64 / 200 - i64::from(share)).abs() <= 1, "{len_s} s: {found} of {}", asked.len());
        }
    }

    #[test]
    fn only_a_phased_answer_may_cover_the_quarter_hour_before() {
        let workload = Workload::new(Settings { keys: 20, history: 5_000, seed: 1 }, NOW_S);
        let truth = Truth::new(&workload);
        let batch = vec![Asked { city: 3, from_s: NOW_S - DAY_S, to_s: NOW_S }];
        let batches = [batch];
        let target = Target { address: ([127, 0, 0, 1], 1).into(), token: None };
        let (from_s, to_s) = (plan::floor(NOW_S - DAY_S, QUARTER_S), plan::floor(NOW_S, QUARTER_S));
        let answer = |from_s: i64, to_s: i64, count: i64| {
            let item = serde_json::json!({"key": key_of(3), "fromTime": from_s, "toTime": to_s, "count": count});
            serde_json::to_vec(&serde_json::json!({ "results": [item] })).unwrap()
        };
        let judge = |may_be_early: bool, body: Vec<u8>| {
            Asking::new(&batches, &target, 1, &truth, may_be_early).judge(0, 200, &body).is_ok()
        };
        let right = truth.count(3, from_s, to_s);
        let early = truth.count(3, from_s - QUARTER_S, to_s - QUARTER_S);
        assert!(judge(false, answer(from_s, to_s, right)));
        assert!(!judge(false, answer(from_s, to_s, right + 1)));
        assert!(!judge(false, answer(from_s - QUARTER_S, to_s - QUARTER_S, early)));
        assert!(judge(true, answer(from_s - QUARTER_S, to_s - QUARTER_S, early)));
        assert!(!judge(true, answer(from_s - 2 * QUARTER_S, to_s - 2 * QUARTER_S, early)));
    }
}
