//! Takes a snapshot of a reader's counters from its metrics.

use crate::http::Target;
use crate::http::client::Client;
use crate::metrics;
use anyhow::{Context, Result, ensure};
use raingauge_policy::rollout::{FAILURES, Tally};

/// Batches of counts, by latency bucket.
const LATENCY: &str = "raingauge_http_request_seconds_bucket";
/// The series of the observed route.
const ROUTE: &str = "route=\"/v1/counts\"";

pub struct Reading {
    pub tally: Tally,
    /// The version of the policy that the reader follows.
    pub version: u32,
}

impl Reading {
    pub fn take(reader: &Target) -> Result<Self> {
        let ask = || -> Result<String> {
            let answer = Client::connect(reader)?.call("GET", "/metrics", b"")?;
            ensure!(answer.status == 200, "it answered {}", answer.status);
            Ok(answer.text())
        };
        let page = ask().with_context(|| format!("the metrics of {}", reader.address))?;
        Ok(Self::of(&page))
    }

    fn of(page: &str) -> Self {
        let sum = |metric: &str, label: &str| metrics::sum(page, metric, label);
        let failed = FAILURES.map(|code| format!("code=\"{}\"", code.as_str()));
        let store_requests =
            ["raingauge_cql_read_requests_total", "raingauge_tile_cache_misses_total"];
        let batch_seconds = sum("raingauge_http_request_seconds_sum", ROUTE);

        let tally = Tally {
            counts: sum("raingauge_range_counts_total", ""),
            failed: failed.iter().map(|label| sum("raingauge_errors_total", label)).sum(),
            store_requests: store_requests.iter().map(|metric| sum(metric, "")).sum(),
            breakers_opened: sum("raingauge_breaker_transitions_total", "to=\"open\""),
            ..Tally::of_batches(latency(page), batch_seconds)
        };
        Self { tally, version: sum("raingauge_cache_policy_version", "") as u32 }
    }
}

/// Batches by the upper bound of their latency bucket.
fn latency(page: &str) -> impl Iterator<Item = (f64, f64)> {
    let lines = page.lines().filter(|line| line.starts_with(LATENCY) && line.contains(ROUTE));
    lines.filter_map(|line| {
        let bound = line.split("le=\"").nth(1)?.split('"').next()?.parse().ok()?;
        Some((bound, line.rsplit(' ').next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_metrics_is_a_tally() {
        let route = "{route=\"/v1/counts\"";
        let page = format!(
            "raingauge_range_counts_total 1000\nraingauge_errors_total{{code=\"deadline_exceeded\"}} 5\n\
             raingauge_errors_total{{code=\"key_unknown\"}} 1000\nraingauge_cql_read_requests_total 20\n\
             raingauge_breaker_transitions_total{{engine=\"store\",to=\"open\"}} 2\n\
             raingauge_breaker_transitions_total{{engine=\"store\",to=\"closed\"}} 3\n\
             {LATENCY}{route},le=\"0.005\"}} 90\n{LATENCY}{route},le=\"0.1\"}} 100\n{LATENCY}{route},le=\"+Inf\"}} 101\n\
             raingauge_http_request_seconds_sum{route}}} 1.5\nraingauge_cache_policy_version 7\n\
             {LATENCY}{{route=\"/v1/events\",le=\"0.005\"}} 7\n"
        );

        let Reading { tally, version } = Reading::of(&page);
        let expected = Tally {
            batches: 101.0,
            batch_seconds: 1.5,
            counts: 1_000.0,
            failed: 5.0,
            store_requests: 20.0,
            breakers_opened: 2.0,
            within: vec![(0.005, 90.0), (0.1, 100.0)],
        };
        assert_eq!((tally, version), (expected, 7));
    }
}
