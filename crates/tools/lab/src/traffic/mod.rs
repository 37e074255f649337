//! Traffic modelled on the published service: hundreds of counters, keys by Zipf's law, batches of
//! about ten ranges that nearly all end now, two peaks a day, a maximum on Fridays, a burst at each
//! full hour, and a concurrent stream of events.
//!
//! ```text
//!   Model (a file) ──▶ Shape: how much at a moment ──▶ Clients: when each batch is due
//!                  └─▶ Questions: what it asks, and what events say
//! ```
//!
//! The seed determines everything. Arrivals do not wait for answers.

pub mod arrivals;
pub mod questions;
pub mod recording;
pub mod shape;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The parameters, as read from a file. `scenarios/cache-removal.toml` explains each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub seed: u64,
    /// IANA name of the time zone that the daily cycle follows.
    pub timezone: String,
    pub counters: u32,
    pub keys: u32,
    /// The exponent of Zipf's law: the key of rank r is queried and counted in proportion to r to
    /// the power of minus this value.
    pub zipf: f64,
    pub history_days: u32,
    /// Number of events in that history.
    pub history: u64,
    /// Minimum and maximum number of ranges in a batch.
    pub batch: [u32; 2],
    /// Share of the ranges that end now; the others end up to a day earlier.
    pub ends_now: f64,
    pub windows: Vec<Window>,
    /// Mean over a week, by the machine's clock.
    pub batches_per_s: f64,
    /// Whether arrivals are evenly spaced instead of random, so that fewer are needed to see a
    /// difference.
    #[serde(default)]
    pub even: bool,
    /// Relative rates by hour of the day, from midnight on, and by day of the week, from Monday on.
    pub hours: Vec<f64>,
    pub weekdays: Vec<f64>,
    /// Height of the burst at the turn of an hour, as a multiple of the rate, and the minutes over
    /// which it fades.
    pub burst: f64,
    pub burst_minutes: f64,
    /// Mean, by the machine's clock; events follow the daily cycle as well.
    pub events_per_s: f64,
}

/// A window length, and the percentage of counters that are queried with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub hours: u32,
    pub share: u32,
}

impl Model {
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let model: Self = toml::from_str(&text)
            .with_context(|| format!("{} is not a valid traffic model", path.display()))?;
        model.check()?;
        Ok(model)
    }

    /// Reports invalid parameters, with the valid values.
    pub fn check(&self) -> Result<()> {
        let is_rate = |number: f64| number.is_finite() && number > 0.0;
        ensure!((1..1_000).contains(&self.counters), "counters must lie between 1 and 999");
        ensure!(self.keys >= self.counters, "keys must be at least as many as counters");
        ensure!(
            is_rate(self.zipf) && is_rate(self.batches_per_s),
            "zipf and batches_per_s must be above 0"
        );
        ensure!(
            self.events_per_s >= 0.0 && self.burst >= 0.0 && self.burst_minutes > 0.0,
            "a rate is below 0"
        );
        ensure!(
            1 <= self.batch[0] && self.batch[0] <= self.batch[1],
            "batch must be two numbers, the smaller one first"
        );
        ensure!((0.0..=1.0).contains(&self.ends_now), "ends_now must lie between 0 and 1");
        ensure!(self.hours.len() == 24, "hours must have 24 numbers, and has {}", self.hours.len());
        ensure!(
            self.weekdays.len() == 7,
            "weekdays must have 7 numbers, and has {}",
            self.weekdays.len()
        );
        ensure!(
            self.hours.iter().chain(&self.weekdays).all(|share| is_rate(*share)),
            "hours and weekdays must be above 0"
        );
        ensure!(
            self.windows.iter().map(|window| window.share).sum::<u32>() == 100,
            "the shares of windows must make 100"
        );

        let longest = self.windows.iter().map(|window| window.hours).max().unwrap_or_default();
        ensure!(
            longest <= 24 * self.history_days.saturating_sub(1),
            "history_days must be a day more than the longest window"
        );
        jiff::tz::TimeZone::get(&self.timezone)
            .with_context(|| format!("no time zone is called {}", self.timezone))?;

        Ok(())
    }
}

#[cfg(test)]
pub mod tests;
