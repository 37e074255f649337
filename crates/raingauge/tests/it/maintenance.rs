//! Compaction of the data folder through the real binary: planned, begun, observed, stopped.

use crate::client::{Client, at, drop_event, drops_counter};
use crate::server::{Home, until};
use serde_json::{Value, json};

const NOON: &str = "2024-09-24T12:00:00Z";
const PATH: &str = "/v1/maintenance";
const COMPACTION: &str = "/v1/maintenance/compaction";

fn status(client: &Client) -> Value {
    client.get(PATH).expect(200)
}

/// The newest run that has ended, when nothing runs.
fn last(client: &Client) -> Option<Value> {
    let status = status(client);
    status["running"].is_null().then(|| status["last"][0].clone())
}

fn begin(client: &Client) -> Option<Value> {
    let answer = client.send("POST", COMPACTION, &[], b"");
    match answer.status {
        202 => Some(answer.json()),
        _ => {
            answer.expect_problem(409, "compaction_running");
            None
        }
    }
}

fn with_events(home: &Home) -> crate::server::Server {
    let server = home.start();
    server.create(drops_counter());
    let events: Vec<Value> = (0..5_000)
        .map(|n| drop_event(&n.to_string(), at(NOON) + n % 7_200, &format!("city{}", n % 500)))
        .collect();
    server.count_events(&events);
    server
}

fn total(client: &Client) -> i64 {
    let keys: Vec<String> = (0..500).map(|city| format!("drops:city{city}")).collect();
    let ranges: Vec<_> =
        keys.iter().map(|key| (key.as_str(), at(NOON), at(NOON) + 7_200)).collect();
    client.counts(&ranges).iter().sum()
}

#[test]
fn a_compaction_is_begun_observed_and_changes_no_count() {
    let home = Home::new();
    let server = with_events(&home);
    assert_eq!(
        status(&server),
        json!({ "timezone": "UTC", "schedules": [], "running": null, "last": [] })
    );
    server.send("DELETE", COMPACTION, &[], b"").expect_problem(409, "compaction_idle");

    // A small folder is compacted in no time: it is tried until it is seen at work.
    let running = until("a compaction is seen at work", || {
        let running = begin(&server)?["running"].take();
        (!running.is_null()).then_some(running)
    });
    assert_eq!(running["trigger"], json!({ "request": "anonymous" }));

    let ended = until("it has ended", || last(&server));
    assert_eq!(ended["result"], "finished", "{ended}");
    assert_eq!(
        (&ended["nodes"][0]["node"], &ended["nodes"][0]["state"]),
        (&json!("local"), &json!("compacted"))
    );
    assert!(server.metric("raingauge_compactions_total{result=\"finished\"}") >= 1.0);
    assert_eq!(server.metric("raingauge_compaction_running"), 0.0);
    assert!(server.metric("raingauge_compaction_seconds{node=\"local\"}") > 0.0);
    assert_eq!(total(&server), 5_000);
    server.kill();
    assert_eq!(total(&home.start()), 5_000);
}

#[test]
fn a_compaction_is_stopped() {
    let home = Home::new();
    let server = with_events(&home);
    until("a compaction is stopped while it runs", || {
        begin(&server)?;
        let answer = server.send("DELETE", COMPACTION, &[], b"");
        if answer.status != 202 {
            answer.expect_problem(409, "compaction_idle");
            return None;
        }

        let ended = until("it has ended", || last(&server));
        (ended["result"] == "stopped").then_some(())
    });
    assert_eq!(total(&server), 5_000);
}

#[test]
fn plans_are_shown_and_wrong_plans_are_refused() {
    let mut home = Home::with(&[
        ("maintenance.schedule", "0 3 * * *; 30 14 * * 1-5"),
        ("maintenance.timezone", "Asia/Tokyo"),
    ]);
    let server = home.start();
    let status = status(&server);
    assert_eq!(status["timezone"], "Asia/Tokyo");
    assert_eq!(status["schedules"][1]["expression"], "30 14 * * 1-5");

    // Three in the morning in Tokyo is six in the evening of the day before in UTC.
    assert_eq!(status["schedules"][0]["next"].as_i64().unwrap() % 86_400, 18 * 3_600);
    server.kill();
    home.set("maintenance.schedule", "at three");

    let refused = home.try_start().err().expect("it does not start");
    assert!(
        refused.errors.contains("maintenance.schedule (variable RAINGAUGE__MAINTENANCE__SCHEDULE)"),
        "{refused:?}"
    );
    home.set("maintenance.schedule", "");
    home.set("maintenance.timezone", "Nowhere");

    let refused = home.try_start().err().expect("it does not start");
    assert!(
        refused.errors.contains("maintenance.timezone") && refused.errors.contains("Nowhere"),
        "{refused:?}"
    );
}

/// Every minute: the next one comes by itself.
#[test]
fn a_compaction_that_is_due_begins_by_itself() {
    let home = Home::with(&[("maintenance.schedule", "* * * * *")]);
    let server = home.start();
    let first = status(&server);
    // On a slow machine a minute may begin before the first status is there.
    let has_begun = !first["running"].is_null() || !first["last"][0].is_null();
    let begun_s = if has_begun { 60 } else { 0 };
    let due = first["schedules"][0]["next"].as_i64().unwrap() - begun_s;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let run = loop {
        if let Some(run) = last(&server).filter(|run| !run.is_null()) {
            break run;
        }
        assert!(std::time::Instant::now() < deadline, "it does not begin: {}", status(&server));
        std::thread::sleep(std::time::Duration::from_millis(50));
    };

    assert_eq!(
        (&run["trigger"], &run["result"]),
        (&json!({ "schedule": "* * * * *" }), &json!("finished"))
    );
    assert!(run["startedAt"].as_i64().unwrap() >= due);
}

#[test]
fn the_command_line_compacts_and_tells() {
    let home = Home::new();
    let server = with_events(&home);
    let url = format!("http://{}", server.address);
    let ran = home.run(&["maintenance", "compact", "--wait", "--server", &url, "--json"]).json();

    assert_eq!(ran["last"][0]["result"], "finished", "{ran}");
    let shown = home.run(&["maintenance", "status", "--server", &url]);
    assert!(shown.status.success() && shown.output.contains("1 of 1"), "{shown:?}");

    let stopped = home.run(&["maintenance", "stop", "--server", &url]);
    assert!(!stopped.status.success() && stopped.errors.contains("compaction_idle"), "{stopped:?}");
    server.terminate();

    let data = home.data().display().to_string();
    let ran = home.run(&["maintenance", "compact", "--data-dir", &data]);
    assert!(ran.status.success() && ran.output.contains("finished"), "{ran:?}");
}
