//! What the counts should be, computed naively: a sum for every key and quarter hour.

use std::collections::{BTreeMap, HashMap};

const QUARTER_S: i64 = 900;

/// Sums of what was added, by key and quarter hour.
#[derive(Clone, Debug, Default)]
pub struct Model {
    sums: HashMap<String, BTreeMap<i64, i64>>,
}

impl Model {
    pub fn add(&mut self, key: &str, time_s: i64, value: i64) {
        let quarter = time_s - time_s.rem_euclid(QUARTER_S);
        *self.sums.entry(key.to_owned()).or_default().entry(quarter).or_default() += value;
    }

    pub fn merge(&mut self, other: &Self) {
        for (key, quarters) in &other.sums {
            quarters.iter().for_each(|(quarter, value)| self.add(key, *quarter, *value));
        }
    }

    pub fn count(&self, key: &str, from_s: i64, to_s: i64) -> i64 {
        let (from_s, to_s) = (from_s - from_s % QUARTER_S, to_s - to_s % QUARTER_S);
        self.sums
            .get(key)
            .map_or(0, |quarters| quarters.range(from_s..to_s).map(|(_, value)| value).sum())
    }

    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.sums.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }
}
