//! Health, metrics, the page.

use crate::client::{at, drop_event, drops_counter};
use crate::server::Home;

#[test]
fn health_and_the_page_are_there() {
    let home = Home::new();
    let server = home.start();
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/readyz").status, 200);

    let way_in = server.get("/");
    assert_eq!(way_in.status, 200);
    assert!(way_in.text().contains("Sign in"));

    let page = server.get("/sign-in");
    assert_eq!((page.status, page.header("content-type").starts_with("text/html")), (200, true));
    assert!(page.header("content-security-policy").contains("default-src"));

    // Everything that the page loads comes from here.
    for source in page
        .text()
        .split(['"', '\''])
        .filter(|text| text.ends_with(".js") || text.ends_with(".css"))
    {
        assert_eq!(
            server.get(&format!("/{}", source.trim_start_matches('/'))).status,
            200,
            "{source}"
        );
    }
}

#[test]
fn metrics_are_named_and_move() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let noon = at("2024-09-24T12:00:00Z");
    let batch =
        [drop_event("1", noon, "oslo"), drop_event("1", noon, "oslo"), serde_json::json!("wrong")];
    server.count_events(&batch);
    server.results(&[
        ("drops:oslo", noon, noon + 900),
        ("drops:rome", 0, noon),
        ("wind:oslo", noon, noon),
    ]);
    server.get("/v1/nothing");

    for (series, expected) in [
        ("raingauge_events_accepted_total", 1.0),
        ("raingauge_events_duplicate_total", 1.0),
        (r#"raingauge_events_rejected_total{code="event_malformed"}"#, 1.0),
        ("raingauge_range_counts_total", 3.0),
        (r#"raingauge_errors_total{code="key_unknown"}"#, 1.0),
        (r#"raingauge_errors_total{code="route_unknown"}"#, 1.0),
        ("raingauge_dedupe_ids", 1.0),
        (r#"raingauge_http_requests_total{route="/v1/counts",status="200"}"#, 1.0),
        (r#"raingauge_log_lag_events{partition="0"}"#, 0.0),
    ] {
        assert_eq!(server.metric(series), expected, "{series}");
    }

    for series in [
        "raingauge_events_applied_total",
        "raingauge_log_end_offset",
        "raingauge_log_bytes",
        "raingauge_rows_read_total",
        "raingauge_apply_seconds_count",
    ] {
        assert!(server.metric(series) > 0.0, "{series} has moved");
    }

    let page = server.get("/metrics");
    assert!(page.header("content-type").starts_with("text/plain"));

    let counting = r#"raingauge_consumer_position{consumer="counting",partition="0"}"#;
    assert!(page.text().contains(counting), "counting is a consumer of the log");

    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md"))
            .unwrap();
    let names: Vec<&str> = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| `raingauge_")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();

    assert!(names.len() > 15);

    for line in page.text().lines().filter_map(|line| line.strip_prefix("# TYPE raingauge_")) {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(names.contains(&name), "raingauge_{name} is not documented");
    }
}
