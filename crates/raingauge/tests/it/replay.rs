//! Recorded requests, asked of a live server again.

use crate::client::{at, drop_event, drops_counter};
use crate::server::Home;
use serde_json::{Value, json};

const NOON: &str = "2024-09-24T12:00:00Z";

#[test]
fn what_was_recorded_is_asked_again() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let events: Vec<Value> =
        (0..10).map(|n| drop_event(&n.to_string(), at(NOON) + n * 60, "a")).collect();
    server.count_events(&events);

    let request =
        |key: &str, from: i64, to: i64| json!({"key": key, "fromTime": from, "toTime": to});

    // Times that are not above 0 lie before the moment of asking.
    let batches = [
        json!({"atMs": 0, "requests": [request("drops:a", at(NOON), at(NOON) + 3_600), request("drops:a", -86_400, 0)]}),
        json!({"atMs": 20, "requests": [request("drops:b", at(NOON), at(NOON) + 900)]}),
        json!({"atMs": 20, "requests": [request("drops:b", -900, -60), request("unknown:b", -900, 0)]}),
    ];

    let recording = home.path().join("recording.ndjson");
    std::fs::write(&recording, batches.map(|batch| format!("{batch}\n")).concat())
        .expect("the recording is written");

    let recording = recording.to_str().expect("a path");
    let asked = || server.metric("raingauge_range_counts_total");
    let before = asked();
    let ran = home.run(&["lab", "replay", recording, "--server", &server.address, "--speed", "2"]);

    assert!(ran.status.success(), "{}", ran.errors);
    assert!(
        ran.output.contains("3 batches at 2 times") && ran.output.contains("unanswered 0"),
        "{}",
        ran.output
    );
    assert!(ran.output.contains("ranges that failed: 1"), "{}", ran.output);
    assert!((asked() - before - 5.0).abs() < 0.5, "{before} {}", asked());

    std::fs::write(recording, "{\"atMs\":1}\n").expect("the recording is written");
    let refused = home.run(&["lab", "replay", recording, "--server", &server.address]);
    assert!(
        !refused.status.success() && refused.errors.contains("line 1 of the recording"),
        "{}",
        refused.errors
    );
}

/// What a model would ask is a recording, too.
#[test]
fn the_traffic_of_a_scenario_is_a_recording() {
    let home = Home::new();
    let ran = home.run(&["lab", "traffic", "--seconds", "2"]);
    assert!(ran.status.success(), "{}", ran.errors);
    assert_eq!(
        ran.output,
        home.run(&["lab", "traffic", "--seconds", "2"]).output,
        "the same by the same seed"
    );

    let lines: Vec<Value> = ran
        .output
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of a recording"))
        .collect();

    assert!(
        lines.len() > 10
            && lines.iter().all(|line| line["atMs"].as_u64().is_some_and(|at_ms| at_ms < 2_000))
    );
}
