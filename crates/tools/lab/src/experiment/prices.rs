//! The cost of a run by part, at the prices in a file.

use super::record::{LAB, Record, Sample};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const PRICES: &str = include_str!("../../scenarios/prices.toml");

/// `scenarios/prices.toml` explains each price.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub core_hour: f64,
    pub memory_gib_hour: f64,
    /// Cost factor by name of the part: replicas, idle capacity, and the premium of a managed
    /// service.
    pub parts: BTreeMap<String, f64>,
}

impl Prices {
    pub fn usual() -> Result<Self> {
        toml::from_str(PRICES).context("scenarios/prices.toml")
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("{} is not a valid price list", path.display()))
    }
}

/// Cost by part, per hour of the machine at the rate of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    pub per_hour: BTreeMap<String, f64>,
    pub all_per_hour: f64,
    /// Cost of a million answered counts.
    pub per_million: Option<f64>,
}

impl Cost {
    /// Computes the cost from the processor time used and the peak memory.
    pub fn of(record: &Record, prices: &Prices) -> Self {
        let (Some(first), Some(last)) = (record.samples.first(), record.samples.last()) else {
            return Self::default();
        };
        let hours = (last.at_ms - first.at_ms) as f64 / record.factor / 3_600_000.0;
        if hours <= 0.0 {
            return Self::default();
        }

        let per_hour: BTreeMap<String, f64> = last
            .parts
            .keys()
            .filter(|part| *part != LAB)
            .map(|part| (part.clone(), price(part, (first, last), &record.samples, hours, prices)))
            .collect();

        let all_per_hour = per_hour.values().sum();
        let counts: u64 = record
            .answers
            .iter()
            .map(|answered| u64::from(answered.ranges() - u32::from(answered.failed)))
            .sum();

        let per_million = (counts > 0).then(|| all_per_hour * hours / counts as f64 * 1e6);
        Self { per_hour, all_per_hour, per_million }
    }

    /// A part's share of the total.
    pub fn share(&self, part: &str) -> f64 {
        self.per_hour.get(part).map_or(0.0, |cost| cost / self.all_per_hour)
    }
}

fn price(
    part: &str,
    (first, last): (&Sample, &Sample),
    all: &[Sample],
    hours: f64,
    prices: &Prices,
) -> f64 {
    let cpu_s = |sample: &Sample| sample.parts.get(part).map_or(0.0, |usage| usage.cpu_s);
    let cores = (cpu_s(last) - cpu_s(first)) / (hours * 3_600.0);
    let memory = all
        .iter()
        .filter_map(|sample| sample.parts.get(part))
        .map(|usage| usage.memory_bytes)
        .max();
    let memory_gib = memory.unwrap_or_default() as f64 / (1_u64 << 30) as f64;
    let times = prices.parts.get(part).copied().unwrap_or(1.0);
    times * (cores * prices.core_hour + memory_gib * prices.memory_gib_hour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::Usage;

    #[test]
    fn cores_and_memory_have_their_prices_and_parts_their_times() {
        let prices = Prices {
            core_hour: 0.04,
            memory_gib_hour: 0.01,
            parts: BTreeMap::from([("redis".to_owned(), 2.0)]),
        };

        let sample = |at_ms, cpu_s| Sample {
            at_ms,
            parts: [("redis", 1 << 30), ("reader", 0), ("lab", 1 << 40)]
                .map(|(part, memory_bytes)| (part.to_owned(), Usage { cpu_s, memory_bytes }))
                .into(),
            store: Default::default(),
            breakers_opened: 0,
            events: 0,
        };

        // Half an hour of the machine at a factor of 60.
        let samples = [sample(0, 100.0), sample(30 * 60 * 60_000, 1_000.0)];
        let cost = |part| price(part, (&samples[0], &samples[1]), &samples, 0.5, &prices);
        assert!((cost("redis") - 2.0 * (0.5 * 0.04 + 0.01)).abs() < 1e-12);
        assert!((cost("reader") - 0.5 * 0.04).abs() < 1e-12);
        assert!(Prices::usual().unwrap().core_hour > 0.0);
    }
}
