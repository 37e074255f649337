//! What the operator sees: logs on standard error, and metrics in the text format of Prometheus.

mod table;

use crate::settings::{LogFormat, Observe};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use raingauge_ports::clock::every;
use std::io::{IsTerminal as _, stderr};
use std::time::Duration;
use table::{Kind, METRICS, Metric, PRODUCT_METRICS};
use tracing_subscriber::EnvFilter;

/// Upper bounds of the buckets of every histogram of times, in seconds: close together around 2 ms,
/// the target for a batch of counts, and out to the longest time of a request by default.
const LATENCY_BOUNDS_S: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.001_5, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05,
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Upper bounds of the buckets of the numbers of commands that arrive together.
const COMMANDS_BOUNDS: &[f64] =
    &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];
/// Interval at which samples are folded into their histograms between reads of the metrics.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(50);

/// Why logs or metrics could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the variable RUST_LOG is not a log filter: {0}; write a level such as `info`, or `warn,raingauge=debug`"
    )]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    #[error(
        "the variable RUST_LOG is not UTF-8; write a level such as `info`, or `warn,raingauge=debug`"
    )]
    FilterText,
    #[error("logs are set up already: {0}")]
    Logs(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("metrics cannot be set up: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}

/// Sets up logs and metrics for the whole process, once. The handle renders the metrics for
/// `/metrics`; run [`keep_up`] beside it.
pub fn install(observe: &Observe) -> Result<PrometheusHandle, Error> {
    install_logs(observe)?;
    let handle = recorder_builder()?.install_recorder()?;
    describe();
    Ok(handle)
}

/// Sets up logs alone, for commands that are not servers. The variable `RUST_LOG` overrides the
/// settings.
pub fn install_logs(observe: &Observe) -> Result<(), Error> {
    let given = match std::env::var("RUST_LOG") {
        Ok(given) => Some(given),
        Err(std::env::VarError::NotPresent) => None,
        Err(std::env::VarError::NotUnicode(_)) => return Err(Error::FilterText),
    };

    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter(given.as_deref(), observe.log_level)?)
        .with_writer(stderr);
    let colours =
        stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let installed = match observe.log_format {
        LogFormat::Text => logs.with_ansi(colours).try_init(),
        LogFormat::Json => {
            logs.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init()
        }
    };

    installed.map_err(Error::Logs)
}

/// Folds samples into their histograms for ever, so that they take bounded memory when no one reads
/// the metrics.
pub async fn keep_up(handle: PrometheusHandle) {
    every(UPKEEP_INTERVAL, || async { handle.run_upkeep() }).await;
}

/// The level applies to raingauge's own crates. Their dependencies log warnings and errors; at
/// level `error`, errors alone.
fn filter(
    given: Option<&str>,
    log_level: &str,
) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    match given.filter(|given| !given.trim().is_empty()) {
        Some(given) => EnvFilter::try_new(given),
        None if log_level == "error" => EnvFilter::try_new("error"),
        None => EnvFilter::try_new(format!("warn,raingauge={log_level}")),
    }
}

fn recorder_builder() -> Result<PrometheusBuilder, metrics_exporter_prometheus::BuildError> {
    let commands = Matcher::Full("raingauge_resp_pipeline_commands".to_owned());
    PrometheusBuilder::new()
        .set_buckets(LATENCY_BOUNDS_S)?
        .set_buckets_for_metric(commands, COMMANDS_BOUNDS)
}

fn all() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().chain(PRODUCT_METRICS)
}

/// Describes each metric to the recorder. Counters without labels start at 0, so that a rate over
/// them is right from the first event on; a series that appears later hides its first step.
fn describe() {
    for Metric { name, kind, labels, unit, doc } in all() {
        match kind {
            Kind::Counter => {
                describe_counter!(*name, *unit, *doc);
                if labels.is_empty() {
                    counter!(*name).increment(0);
                }
            }
            Kind::Gauge => describe_gauge!(*name, *unit, *doc),
            Kind::Histogram => describe_histogram!(*name, *unit, *doc),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics::Unit;
    use metrics::{gauge, histogram};
    use std::path::{Path, PathBuf};

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn row(metric: &Metric) -> String {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let unit = match (metric.kind, metric.unit) {
            (_, Unit::Seconds) => "seconds",
            (_, Unit::Bytes) => "bytes",
            _ => "",
        };
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {kind} | {unit} | {} | {} |", metric.name, labels.join(", "), metric.doc)
    }

    #[test]
    fn the_documentation_has_exactly_these_metrics() {
        let page = std::fs::read_to_string(workspace().join("docs/metrics.md")).unwrap();
        let documented: Vec<&str> =
            page.lines().filter(|line| line.starts_with("| `raingauge_")).collect();
        let expected: Vec<String> = all().map(row).collect();
        assert_eq!(documented, expected, "docs/metrics.md should say:\n{}", expected.join("\n"));
    }

    #[test]
    fn names_follow_the_conventions() {
        for metric in all() {
            assert_eq!(
                metric.name.ends_with("_total"),
                matches!(metric.kind, Kind::Counter),
                "{}",
                metric.name
            );
            let seconds = matches!(metric.unit, Unit::Seconds);
            assert_eq!(metric.name.ends_with("_seconds"), seconds, "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_bytes"),
                matches!(metric.unit, Unit::Bytes),
                "{}",
                metric.name
            );
            assert_eq!(all().filter(|other| other.name == metric.name).count(), 1);
        }
        assert!(LATENCY_BOUNDS_S.is_sorted());
    }

    #[test]
    fn every_metric_is_described_and_latencies_have_buckets() {
        let recorder = recorder_builder().unwrap().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            counter!("raingauge_errors_total", "code" => "internal").increment(2);
            gauge!("raingauge_log_lag_events", "partition" => "0").set(7.0);
            histogram!("raingauge_http_request_seconds", "route" => "/v1/counts").record(0.001_2);
        });

        let page = handle.render();
        for line in [
            "# TYPE raingauge_events_accepted_total counter",
            "raingauge_events_accepted_total 0",
            "raingauge_errors_total{code=\"internal\"} 2",
            "# HELP raingauge_log_lag_events Durable events that wait to be counted, by partition, from the process that counts it; measured outside the worker in a cluster.",
            "raingauge_log_lag_events{partition=\"0\"} 7",
            "# TYPE raingauge_http_request_seconds histogram",
            "raingauge_http_request_seconds_bucket{route=\"/v1/counts\",le=\"0.001\"} 0",
            "raingauge_http_request_seconds_bucket{route=\"/v1/counts\",le=\"0.0015\"} 1",
            "raingauge_http_request_seconds_bucket{route=\"/v1/counts\",le=\"+Inf\"} 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing from:\n{page}");
        }
    }

    #[test]
    fn rust_log_wins_over_the_level() {
        let shown = |given, level| filter(given, level).unwrap().to_string();
        assert_eq!(shown(None, "debug"), "raingauge=debug,warn");
        assert_eq!(shown(Some(" "), "info"), "raingauge=info,warn");
        assert_eq!(shown(None, "error"), "error");
        assert_eq!(shown(Some("trace"), "error"), "trace");
        assert!(filter(Some("raingauge=loudly"), "info").is_err());
    }
}
