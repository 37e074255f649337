//! The metrics that are followed, at one moment or over a span of time.

use super::text;
use raingauge_policy::histogram;
use raingauge_policy::rollout::{FAILURES, Tally};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

pub const ACCEPTED: &str = "raingauge_events_accepted_total";
pub const DUPLICATES: &str = "raingauge_events_duplicate_total";
pub const REJECTED: &str = "raingauge_events_rejected_total";
pub const APPLIED: &str = "raingauge_events_applied_total";
pub const LATE_REFUSED: &str = "raingauge_late_refused_total";
pub const SKIPPED: &str = "raingauge_events_skipped_total";
pub const LAG_EVENTS: &str = "raingauge_log_lag_events";
pub const LAG_SECONDS: &str = "raingauge_log_lag_seconds";
pub const LOG_BYTES: &str = "raingauge_log_bytes";
pub const TILE_HITS: &str = "raingauge_tile_cache_hits_total";
pub const TILE_MISSES: &str = "raingauge_tile_cache_misses_total";
pub const RANGE_COUNTS: &str = "raingauge_range_counts_total";
pub const ROWS: &str = "raingauge_rows_read_total";
/// Batches of counts by the bound of their latency, and the seconds that all of them took.
pub const LATENCY: &str = "raingauge_http_request_seconds_bucket";
pub const LATENCY_SUM: &str = "raingauge_http_request_seconds_sum";
pub const ERRORS: &str = "raingauge_errors_total";
pub const BREAKER_STATE: &str = "raingauge_breaker_state";
pub const BREAKER_TRANSITIONS: &str = "raingauge_breaker_transitions_total";
pub const SHED: &str = "raingauge_reads_shed_total";
pub const CACHE_HITS: &str = "raingauge_cache_hits_total";
pub const CACHE_MISSES: &str = "raingauge_cache_misses_total";
pub const CACHE_ERRORS: &str = "raingauge_cache_errors_total";
pub const CACHE_SKIPPED: &str = "raingauge_cache_skipped_total";
pub const CQL_COUNTS: &str = "raingauge_cql_range_counts_total";
pub const CQL_REQUESTS: &str = "raingauge_cql_read_requests_total";
pub const CQL_ROWS: &str = "raingauge_cql_read_rows_total";
pub const PARTITIONS_COUNTED: &str = "raingauge_partitions_counted";
pub const KAFKA_CONNECTED: &str = "raingauge_kafka_connected";
pub const DISK_BYTES: &str = "raingauge_disk_bytes";
pub const DISK_FREE: &str = "raingauge_disk_free_bytes";
pub const DEAD_LETTERS: &str = "raingauge_dead_letters_total";

/// The route whose latency is followed.
const ROUTE: &str = "/v1/counts";

/// How a metric changes over time, and how it is combined over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A counter: its increase is what happened. Summed over processes.
    Total,
    /// A gauge. Summed over processes.
    Share,
    /// A gauge. The largest one of all processes counts.
    Worst,
}

struct Followed {
    metric: &'static str,
    kind: Kind,
    /// The labels that are kept, joined by `/`; series that differ in others are summed.
    labels: &'static [&'static str],
}

const fn followed(metric: &'static str, kind: Kind, labels: &'static [&'static str]) -> Followed {
    Followed { metric, kind, labels }
}

const FOLLOWED: &[Followed] = &[
    followed(ACCEPTED, Kind::Total, &[]),
    followed(DUPLICATES, Kind::Total, &[]),
    followed(REJECTED, Kind::Total, &["code"]),
    followed(APPLIED, Kind::Total, &[]),
    followed(LATE_REFUSED, Kind::Total, &["counter", "granularity"]),
    followed(SKIPPED, Kind::Total, &["counter", "reason"]),
    followed(LAG_EVENTS, Kind::Worst, &["partition"]),
    followed(LAG_SECONDS, Kind::Worst, &["partition"]),
    followed(LOG_BYTES, Kind::Worst, &[]),
    followed(TILE_HITS, Kind::Total, &[]),
    followed(TILE_MISSES, Kind::Total, &[]),
    followed(RANGE_COUNTS, Kind::Total, &[]),
    followed(ROWS, Kind::Total, &[]),
    followed(ERRORS, Kind::Total, &["code"]),
    followed(LATENCY, Kind::Total, &["le"]),
    followed(LATENCY_SUM, Kind::Total, &["route"]),
    followed(BREAKER_STATE, Kind::Worst, &["engine"]),
    followed(BREAKER_TRANSITIONS, Kind::Total, &["engine", "to"]),
    followed(SHED, Kind::Total, &[]),
    followed(CACHE_HITS, Kind::Total, &["strategy"]),
    followed(CACHE_MISSES, Kind::Total, &["strategy"]),
    followed(CACHE_ERRORS, Kind::Total, &["strategy"]),
    followed(CACHE_SKIPPED, Kind::Total, &["strategy"]),
    followed(CQL_COUNTS, Kind::Total, &[]),
    followed(CQL_REQUESTS, Kind::Total, &[]),
    followed(CQL_ROWS, Kind::Total, &[]),
    followed(PARTITIONS_COUNTED, Kind::Share, &[]),
    followed(KAFKA_CONNECTED, Kind::Worst, &[]),
    followed(DISK_BYTES, Kind::Worst, &[]),
    followed(DISK_FREE, Kind::Worst, &[]),
    followed(DEAD_LETTERS, Kind::Total, &["code"]),
];

/// Values by metric and by the labels that are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(BTreeMap<&'static str, BTreeMap<String, f64>>);

impl Values {
    /// Reads the followed metrics from the page of a process.
    pub fn parse(metrics: &str) -> Self {
        let mut values = Self::default();
        for line in text::lines(metrics) {
            let Some(followed) = find(line.name) else {
                continue;
            };
            let is_latency = [LATENCY, LATENCY_SUM].contains(&followed.metric);
            let is_other_route = is_latency && line.label("route") != Some(ROUTE);
            if is_other_route || !line.value.is_finite() {
                continue;
            }

            let kept: Vec<&str> =
                followed.labels.iter().map(|label| line.label(label).unwrap_or_default()).collect();
            *values.entry(followed.metric, &kept.join("/")) += line.value;
        }

        values
    }

    /// The value of a metric with these labels, joined by `/`; 0 when there is none.
    pub fn of(&self, metric: &str, labels: &str) -> f64 {
        self.0.get(metric).and_then(|by_labels| by_labels.get(labels)).copied().unwrap_or(0.0)
    }

    /// The sum of a metric over all labels.
    pub fn total(&self, metric: &str) -> f64 {
        self.by(metric).map(|(_, value)| value).sum()
    }

    /// The largest value of a metric.
    pub fn largest(&self, metric: &str) -> f64 {
        self.by(metric).map(|(_, value)| value).fold(0.0, f64::max)
    }

    /// Whether a metric is present.
    pub fn has(&self, metric: &str) -> bool {
        self.0.contains_key(metric)
    }

    /// The values of a metric with their labels, ordered by label.
    pub fn by(&self, metric: &str) -> impl Iterator<Item = (&str, f64)> {
        let by_labels = self.0.get(metric).into_iter().flatten();
        by_labels.map(|(labels, value)| (labels.as_str(), *value))
    }

    /// The values of a metric whose first label is `first`, by the second label, as integers.
    pub fn under(&self, metric: &str, first: &str) -> BTreeMap<String, u64> {
        let second = |(labels, value): (&str, f64)| {
            let (own, second) = labels.split_once('/')?;
            (own == first && value > 0.0).then(|| (second.to_owned(), value as u64))
        };
        self.by(metric).filter_map(second).collect()
    }

    /// The increase between two readings of one process, and the gauges of the later one. A counter
    /// below its earlier value was reset by a restart: all of it counts.
    pub fn since(&self, before: &Self) -> Self {
        let mut increase = self.clone();
        for (metric, by_labels) in &mut increase.0 {
            if find(metric).is_some_and(|followed| followed.kind == Kind::Total) {
                for (labels, value) in by_labels {
                    let known = before.of(metric, labels);
                    *value -= if *value < known { 0.0 } else { known };
                }
            }
        }
        increase
    }

    /// The gauges alone: what a newly known process adds to a moment.
    pub fn without_totals(mut self) -> Self {
        self.0
            .retain(|metric, _| find(metric).is_some_and(|followed| followed.kind != Kind::Total));
        self
    }

    /// Adds the values of another process, or of another span of the same one.
    pub fn add(&mut self, other: &Self) {
        for (metric, by_labels) in &other.0 {
            let Some(followed) = find(metric) else {
                continue;
            };
            for (labels, value) in by_labels {
                let sum = self.entry(followed.metric, labels);
                *sum = if followed.kind == Kind::Worst { sum.max(*value) } else { *sum + value };
            }
        }
    }

    /// The latency of counts at this quantile, in seconds, interpolated between the bounds of the
    /// histogram; `None` without counts.
    pub fn latency(&self, quantile: f64) -> Option<f64> {
        let mut buckets: Vec<(f64, f64)> = self.latencies().collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        histogram::quantile(&buckets, quantile)
    }

    /// The number of counts within each bound, in seconds.
    fn latencies(&self) -> impl Iterator<Item = (f64, f64)> {
        self.by(LATENCY).filter_map(|(le, sum)| Some((le.parse().ok()?, sum)))
    }

    /// What a guarded rollout watches. Requests to the store are those over an engine of a cluster,
    /// or the tiles that the embedded one had to read.
    pub fn tally(&self) -> Tally {
        let transitions = self.by(BREAKER_TRANSITIONS);
        let opened = transitions.filter(|(labels, _)| labels.ends_with("/open"));
        Tally {
            counts: self.total(RANGE_COUNTS),
            failed: FAILURES.iter().map(|code| self.of(ERRORS, code.as_str())).sum(),
            store_requests: self.total(CQL_REQUESTS) + self.total(TILE_MISSES),
            breakers_opened: opened.map(|(_, number)| number).sum(),
            ..Tally::of_batches(self.latencies(), self.of(LATENCY_SUM, ROUTE))
        }
    }

    /// Each metric with at most `labels_max` series, those with the largest values: for long
    /// retention, or to be sent.
    pub fn bounded(mut self, labels_max: usize) -> Self {
        for by_labels in self.0.values_mut().filter(|by_labels| by_labels.len() > labels_max) {
            let mut sorted: Vec<(String, f64)> = std::mem::take(by_labels).into_iter().collect();
            sorted.sort_by(|one, other| other.1.total_cmp(&one.1));
            sorted.truncate(labels_max);
            by_labels.extend(sorted);
        }
        self
    }

    /// Sums the metrics that have a series per counter.
    pub fn without_counters(mut self) -> Self {
        for metric in [LATE_REFUSED, SKIPPED] {
            let total = self.total(metric);
            if self.0.remove(metric).is_some() {
                *self.entry(metric, "") = total;
            }
        }
        self
    }

    pub fn to_json(&self) -> Json {
        json!(self.0)
    }

    /// Metrics that are unknown here, written by a newer version, are ignored.
    pub fn from_json(json: &Json) -> Self {
        let mut values = Self::default();
        for (name, by_labels) in json.as_object().into_iter().flatten() {
            let Some(followed) = find(name) else { continue };
            for (labels, value) in by_labels.as_object().into_iter().flatten() {
                if let Some(value) = value.as_f64() {
                    *values.entry(followed.metric, labels) = value;
                }
            }
        }
        values
    }

    fn entry(&mut self, metric: &'static str, labels: &str) -> &mut f64 {
        self.0.entry(metric).or_default().entry(labels.to_owned()).or_insert(0.0)
    }
}

fn find(metric: &str) -> Option<&'static Followed> {
    FOLLOWED.iter().find(|followed| followed.metric == metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(&str, u64)]) -> Values {
        let line = |(le, sum): &(&str, u64)| {
            format!(
                "raingauge_http_request_seconds_bucket{{route=\"/v1/counts\",le=\"{le}\"}} {sum}\n"
            )
        };
        let other =
            "raingauge_http_request_seconds_bucket{route=\"/metrics\",le=\"0.001\"} 1000000\n";
        Values::parse(&(counts.iter().map(line).collect::<String>() + other))
    }

    #[test]
    fn what_is_followed_is_read_and_the_rest_is_not() {
        let values = Values::parse(
            "raingauge_events_accepted_total 12\nraingauge_unknown_total 3\n\
             raingauge_late_refused_total{counter=\"34\",granularity=\"hour\"} 2\n\
             raingauge_late_refused_total{counter=\"34\",granularity=\"day\"} 1\n\
             raingauge_late_refused_total{counter=\"3\",granularity=\"day\"} 7\n\
             raingauge_log_lag_seconds{partition=\"1\"} 4.5\n",
        );

        assert_eq!(values.total(ACCEPTED), 12.0);
        assert_eq!(values.total(LATE_REFUSED), 10.0);

        let of_counter: Vec<_> = values.under(LATE_REFUSED, "34").into_iter().collect();
        assert_eq!(of_counter, [("day".to_owned(), 1), ("hour".to_owned(), 2)]);
        assert_eq!(
            (values.of(LAG_SECONDS, "1"), values.largest(LAG_SECONDS), values.of(LAG_SECONDS, "9")),
            (4.5, 4.5, 0.0)
        );
        assert_eq!(values.clone().without_counters().of(LATE_REFUSED, ""), 10.0);
        assert_eq!(Values::from_json(&values.to_json()), values);
    }

    #[test]
    fn an_increase_survives_a_restart() {
        let at = |accepted: u32, lag: u32| {
            Values::parse(&format!(
                "raingauge_events_accepted_total {accepted}\nraingauge_log_lag_events{{partition=\"0\"}} {lag}\n"
            ))
        };

        let grown = at(15, 3).since(&at(10, 9));
        assert_eq!((grown.total(ACCEPTED), grown.total(LAG_EVENTS)), (5.0, 3.0));

        // It restarted: all it has counted since is the increase.
        assert_eq!(at(4, 0).since(&at(10, 0)).total(ACCEPTED), 4.0);

        // A series that is new began at 0.
        assert_eq!(at(4, 0).since(&Values::default()).total(ACCEPTED), 4.0);
        assert_eq!(
            at(4, 8).without_totals(),
            Values::parse("raingauge_log_lag_events{partition=\"0\"} 8")
        );
    }

    #[test]
    fn several_processes_come_to_a_sum_or_to_the_worst() {
        let mut sum = Values::parse(
            "raingauge_range_counts_total 5\nraingauge_breaker_state{engine=\"store\"} 2",
        );
        sum.add(&Values::parse(
            "raingauge_range_counts_total 7\nraingauge_breaker_state{engine=\"store\"} 0",
        ));
        assert_eq!((sum.total(RANGE_COUNTS), sum.of(BREAKER_STATE, "store")), (12.0, 2.0));
    }

    #[test]
    fn quantiles_lie_between_the_bounds() {
        let values = histogram(&[("0.001", 50), ("0.002", 90), ("0.01", 100), ("+Inf", 100)]);
        let close = |quantile: f64, seconds: f64| {
            let found = values.latency(quantile).expect("counts");
            assert!((found - seconds).abs() < 1e-9, "{quantile}: {found}");
        };
        close(0.0, 0.0);
        close(0.25, 0.0005);
        close(0.5, 0.001);
        close(0.7, 0.0015);
        close(0.99, 0.0092);
        close(1.0, 0.01);
    }

    #[test]
    fn quantiles_of_the_edges() {
        assert_eq!(histogram(&[]).latency(0.5), None);
        assert_eq!(histogram(&[("0.001", 0), ("+Inf", 0)]).latency(0.99), None);
        // Beyond the largest bound, only the bound itself is known.
        assert_eq!(histogram(&[("0.001", 0), ("30", 1), ("+Inf", 10)]).latency(0.99), Some(30.0));
        assert_eq!(
            histogram(&[("0.001", 3), ("+Inf", 3)]).latency(0.999).map(|found| found < 0.001),
            Some(true)
        );
    }

    #[test]
    fn the_largest_labels_are_kept() {
        let text: String = (1..=9)
            .map(|code| format!("raingauge_errors_total{{code=\"c{code}\"}} {code}\n"))
            .collect();
        let bounded = Values::parse(&text).bounded(2);
        assert_eq!(bounded.by(ERRORS).collect::<Vec<_>>(), [("c8", 8.0), ("c9", 9.0)]);
    }
}
