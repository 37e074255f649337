//! What readers did within a stretch of time, from the growth of their counters.

use crate::http::Target;
use crate::http::client::Client;
use crate::metrics;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Latencies of batches, as the readers see them.
const SECONDS: &str = "raingauge_http_request_seconds";
const ROUTE: &str = "route=\"/v1/counts\"";
/// Counts that the service failed to answer; those that the client asked for wrongly are no fault of a cache.
const FAILURES: [&str; 3] = ["deadline_exceeded", "overloaded", "unavailable"];

/// The counters of all readers at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    counts: f64,
    failed: f64,
    store_requests: f64,
    breakers_opened: f64,
    batches: f64,
    seconds: f64,
    /// Batches that took at most so many seconds, by the bound as it is written.
    within: BTreeMap<Bound, f64>,
}

/// A bound of a histogram, in an order.
#[derive(Debug, Clone, Copy)]
struct Bound(f64);

impl PartialEq for Bound {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Reading {
    pub fn take(readers: &[Target]) -> Result<Self> {
        let page = |reader: &Target| -> Result<String> {
            let answer = Client::connect(reader)?.call("GET", "/metrics", b"")?;
            anyhow::ensure!(answer.status == 200, "{} answered {}", reader.address, answer.status);
            Ok(answer.text())
        };
        let pages = readers.iter().map(page).collect::<Result<Vec<_>>>().context("the metrics of the readers")?;
        Ok(Self::of(&pages.join("\n"), Instant::now()))
    }

    /// From the pages of all readers, one behind the other.
    fn of(pages: &str, at: Instant) -> Self {
        let sum = |name: &str, label: &str| metrics::sum(pages, name, label);
        let failed = |code: &&str| sum("raingauge_errors_total", &format!("code=\"{code}\""));
        Self {
            at,
            counts: sum("raingauge_range_counts_total", ""),
            failed: FAILURES.iter().map(failed).sum(),
            store_requests: sum("raingauge_cql_read_requests_total", ""),
            breakers_opened: sum("raingauge_breaker_transitions_total", "to=\"open\""),
            batches: sum(&format!("{SECONDS}_count"), ROUTE),
            seconds: sum(&format!("{SECONDS}_sum"), ROUTE),
            within: buckets(pages),
        }
    }
}

fn buckets(pages: &str) -> BTreeMap<Bound, f64> {
    let mut found = BTreeMap::new();
    for line in pages.lines().filter(|line| line.starts_with(SECONDS) && line.contains(ROUTE)) {
        let bound = line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<f64>().ok());
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        if let Some((bound, value)) = bound.zip(value) {
            *found.entry(Bound(bound)).or_default() += value;
        }
    }
    found
}

/// What happened between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Window {
    pub seconds: f64,
    pub batches: f64,
    pub counts_per_s: f64,
    /// Of the counts that were asked for.
    pub failed_share: f64,
    pub store_requests_per_s: f64,
    pub breakers_opened: f64,
    pub mean_ms: f64,
    /// The bound of the histogram that the 99th percentile lies within.
    pub p99_ms: f64,
}

impl Window {
    pub fn between(before: &Reading, after: &Reading) -> Self {
        let seconds = after.at.saturating_duration_since(before.at).as_secs_f64().max(1e-3);
        let grown = |value: fn(&Reading) -> f64| (value(after) - value(before)).max(0.0);
        let (counts, batches) = (grown(|reading| reading.counts), grown(|reading| reading.batches));
        Self {
            seconds,
            batches,
            counts_per_s: counts / seconds,
            failed_share: grown(|reading| reading.failed) / counts.max(1.0),
            store_requests_per_s: grown(|reading| reading.store_requests) / seconds,
            breakers_opened: grown(|reading| reading.breakers_opened),
            mean_ms: 1_000.0 * grown(|reading| reading.seconds) / batches.max(1.0),
            p99_ms: 1_000.0 * quantile_s(before, after, 0.99),
        }
    }
}

/// The least bound that so great a share of the new batches did not exceed; 0 where there were none.
fn quantile_s(before: &Reading, after: &Reading, share: f64) -> f64 {
    let grown = |bound: &Bound, value: f64| value - before.within.get(bound).copied().unwrap_or_default();
    let all = after.within.iter().map(|(bound, value)| grown(bound, *value)).fold(0.0, f64::max);
    let mut within = after.within.iter().filter(|(bound, value)| grown(bound, **value) >= share * all);
    within.next().filter(|_| all > 0.0).map_or(0.0, |(bound, _)| bound.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn page(fast: u32, slow: u32, failed: u32) -> String {
        let route = "{route=\"/v1/counts\"";
        format!(
            "raingauge_range_counts_total {}\nraingauge_errors_total{{code=\"deadline_exceeded\"}} {failed}\n\
             raingauge_errors_total{{code=\"key_unknown\"}} 1000\nraingauge_cql_read_requests_total {}\n\
             {SECONDS}_bucket{route},le=\"0.005\"}} {fast}\n{SECONDS}_bucket{route},le=\"0.1\"}} {}\n\
             {SECONDS}_bucket{route},le=\"+Inf\"}} {}\n{SECONDS}_count{route}}} {}\n{SECONDS}_sum{route}}} {}\n\
             {SECONDS}_bucket{{route=\"/v1/events\",le=\"0.005\"}} 7\n",
            10 * (fast + slow),
            2 * slow,
            fast + slow,
            fast + slow,
            fast + slow,
            0.002 * f64::from(fast) + 0.05 * f64::from(slow),
        )
    }

    #[test]
    fn a_window_is_what_grew_between_two_readings() {
        let now = Instant::now();
        let before = Reading::of(&page(100, 0, 5), now);
        let after = Reading::of(&page(1_090, 10, 15), now + Duration::from_secs(10));
        let window = Window::between(&before, &after);
        assert_eq!((window.batches, window.counts_per_s, window.store_requests_per_s), (1_000.0, 1_000.0, 2.0));
        assert!((window.failed_share - 0.001).abs() < 1e-9);
        assert!((window.p99_ms - 5.0).abs() < 1e-9, "99 of 100 are fast: {}", window.p99_ms);
        let slower = Reading::of(&page(1_080, 20, 15), now + Duration::from_secs(10));
        assert!((Window::between(&before, &slower).p99_ms - 100.0).abs() < 1e-9);
        assert_eq!(Window::between(&after, &after).p99_ms, 0.0);
    }
}
