//! The ranges in batches, and the keys of events.

use super::Model;
use crate::plan::{DAY_S, QUARTER_S, floor};
use crate::workload::Popularity;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

const SEED: u64 = 0x9e57;
const HISTORY_SEED: u64 = 0x4157;
/// Spreads ranks over counters, so that each counter has some popular keys.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// One range. The key is identified by its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeQuery {
    pub rank: u32,
    pub from_s: i64,
    pub to_s: i64,
}

/// The keys and their windows; the same for every user of the model.
pub struct Keys {
    counters: u32,
    popularity: Popularity,
    /// The window of each counter, in seconds: a rule queries its counter with one window.
    windows: Vec<i64>,
}

impl Keys {
    pub fn new(model: &Model) -> Self {
        let mut random = StdRng::seed_from_u64(model.seed);
        let window = |random: &mut StdRng| {
            let mut drawn = random.random_range(0..100);
            let found = model.windows.iter().find(|window| {
                let is_it = drawn < window.share;
                drawn = drawn.saturating_sub(window.share);
                is_it
            });
            found.map_or(DAY_S, |window| i64::from(window.hours) * 3_600)
        };

        let windows = (0..model.counters).map(|_| window(&mut random)).collect();
        Self {
            counters: model.counters,
            popularity: Popularity::by_zipf(model.keys, model.zipf),
            windows,
        }
    }

    pub fn counter_of(&self, rank: u32) -> u32 {
        (u64::from(rank).wrapping_mul(SPREAD) >> 32) as u32 % self.counters
    }

    pub fn key(&self, rank: u32) -> String {
        format!("lab:{}:k{rank}", self.counter_of(rank))
    }

    fn pick(&self, random: &mut StdRng) -> u32 {
        self.popularity.pick(random)
    }

    /// The counters' configurations, as for `POST /v1/counters`.
    pub fn counters(&self) -> Vec<Value> {
        let counter = |number: u32| {
            json!({
                "id": number + 1,
                "name": format!("lab_{number}"),
                "template": format!("lab:{number}:{{key}}"),
                "eventType": event_type(number),
                "retentionDays": { "quarter": null, "hour": null, "day": null },
                "state": "active",
                "owner": "lab",
                "description": "Synthetic traffic for measuring raingauge",
            })
        };
        (0..self.counters).map(counter).collect()
    }

    /// The event that adds one to a key's count, as a line of JSON.
    pub fn event(&self, id: &str, rank: u32, time_s: i64) -> String {
        let kind = event_type(self.counter_of(rank));
        format!(
            "{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"lab\",\"type\":\"{kind}\",\"time\":\"{}\",\"data\":{{\"key\":\"k{rank}\"}}}}\n",
            jiff::Timestamp::from_second(time_s).unwrap_or_default()
        )
    }

    /// The history before `end_s`: a key and a quarter hour per event.
    pub fn history(&self, model: &Model, end_s: i64) -> Vec<(u32, i64)> {
        let mut random = StdRng::seed_from_u64(model.seed ^ HISTORY_SEED);
        let quarters = i64::from(model.history_days) * DAY_S / QUARTER_S;
        let end_s = floor(end_s, QUARTER_S);
        let event = |random: &mut StdRng| {
            (self.pick(random), end_s - QUARTER_S * (1 + random.random_range(0..quarters)))
        };
        (0..model.history).map(|_| event(&mut random)).collect()
    }
}

fn event_type(counter: u32) -> String {
    format!("lab.event.{counter}")
}

/// A sequence of questions.
pub struct Questions {
    random: StdRng,
    batch: [u32; 2],
    ends_now: f64,
}

impl Questions {
    pub fn new(model: &Model) -> Self {
        Self {
            random: StdRng::seed_from_u64(model.seed ^ SEED),
            batch: model.batch,
            ends_now: model.ends_now,
        }
    }

    /// The next batch of ranges, for a request at `now_s`.
    pub fn batch(&mut self, keys: &Keys, now_s: i64) -> Vec<RangeQuery> {
        let len = self.random.random_range(self.batch[0]..=self.batch[1]);
        (0..len).map(|_| self.ask(keys, now_s)).collect()
    }

    fn ask(&mut self, keys: &Keys, now_s: i64) -> RangeQuery {
        let rank = keys.pick(&mut self.random);
        let is_now = self.random.random_bool(self.ends_now);
        let to_s = if is_now { now_s } else { now_s - self.random.random_range(0..DAY_S) };
        RangeQuery { rank, from_s: to_s - keys.windows[keys.counter_of(rank) as usize], to_s }
    }

    /// The key of the next event.
    pub fn event(&mut self, keys: &Keys) -> u32 {
        keys.pick(&mut self.random)
    }
}

/// The request body of a batch.
pub fn body(keys: &Keys, batch: &[RangeQuery], fresh: bool) -> String {
    let fresh = if fresh { r#","fresh":true"# } else { "" };
    let item = |RangeQuery { rank, from_s, to_s }: &RangeQuery| {
        format!(r#"{{"key":"{}","fromTime":{from_s},"toTime":{to_s}{fresh}}}"#, keys.key(*rank))
    };
    let items: Vec<String> = batch.iter().map(item).collect();
    format!(r#"{{"requests":[{}]}}"#, items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::tests::model;

    const NOW_S: i64 = 1_730_768_523;

    #[test]
    fn a_counter_is_asked_by_its_window_and_nearly_all_end_now() {
        let model = model();
        let keys = Keys::new(&model);
        let mut questions = Questions::new(&model);
        let asked: Vec<RangeQuery> = (0..500).flat_map(|_| questions.batch(&keys, NOW_S)).collect();

        assert!(
            (4_500..5_500).contains(&asked.len()),
            "batches are of ten on average: {}",
            asked.len()
        );

        for asked in &asked {
            let window = asked.to_s - asked.from_s;
            assert_eq!(window, keys.windows[keys.counter_of(asked.rank) as usize]);
        }

        let now =
            asked.iter().filter(|asked| asked.to_s == NOW_S).count() as f64 / asked.len() as f64;
        assert!((0.96..0.98).contains(&now), "{now}");

        let hottest =
            asked.iter().filter(|asked| asked.rank == 0).count() as f64 / asked.len() as f64;
        assert!((0.15..0.19).contains(&hottest), "by Zipf's law 1 in 5.9: {hottest}");

        let mut again = Questions::new(&model);
        assert_eq!(again.batch(&keys, NOW_S), asked[..again_len(&model, &keys)]);
    }

    fn again_len(model: &Model, keys: &Keys) -> usize {
        Questions::new(model).batch(keys, NOW_S).len()
    }

    #[test]
    fn keys_lie_in_all_counters_and_the_history_before_its_end() {
        let model = model();
        let keys = Keys::new(&model);
        let counters: std::collections::BTreeSet<u32> =
            (0..model.keys).map(|rank| keys.counter_of(rank)).collect();
        assert_eq!(counters.len(), 20);

        let history = keys.history(&model, NOW_S);
        let end_s = floor(NOW_S, QUARTER_S);
        assert_eq!(history.len(), 2_000);
        assert!(history.iter().all(|(_, time_s)| (end_s - 8 * DAY_S..end_s).contains(time_s)));

        let line: Value = serde_json::from_str(&keys.event("7", 3, NOW_S)).unwrap();
        assert_eq!(
            (&line["type"], &line["data"]["key"]),
            (&json!(event_type(keys.counter_of(3))), &json!("k3"))
        );
    }
}
