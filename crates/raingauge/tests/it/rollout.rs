//! A guarded rollout of a cache strategy on a live server, from the command line.

use crate::client::{Client, at, drop_event, drops_counter};
use crate::server::{Home, Ran, Server};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

const NOON: &str = "2024-09-24T12:00:00Z";
const STEPS: [&str; 8] = ["--shares", "50,100", "--canary-s", "0.1", "--hold-s", "0.2", "--batches-min", "5"];

/// Rolls `live` out while somebody asks for counts all the time.
fn roll_out(home: &Home, server: &Server, limits: &[&str]) -> Ran {
    let noon = at(NOON);
    let batch = json!({"requests": [{"key": "drops:a", "fromTime": noon, "toTime": noon + 7_200}]});
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let client: &Client = server;
            while !is_over.load(Ordering::Acquire) {
                assert_eq!(client.post("/v1/counts", &batch).expect(200)["results"][0]["count"], 10);
            }
        });
        let told = ["lab", "rollout", "--server", &server.address, "--to", "live"];
        let arguments = [&told[..], &STEPS, limits].concat();
        let ran = home.run(&arguments);
        is_over.store(true, Ordering::Release);
        asking.join().expect("every count was right");
        ran
    })
}

#[test]
fn a_rollout_goes_through_or_comes_back_by_itself() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());
    let events: Vec<Value> = (0..10).map(|n| drop_event(&n.to_string(), at(NOON) + n * 60, "a")).collect();
    server.count_events(&events);
    let policy = || server.get("/v1/cache-policy").json();
    let before = json!({"strategy": "none", "rollout": [{"strategy": "none", "modulo": 7, "below": 3}]});
    server.send("PUT", "/v1/cache-policy", &[], before.to_string().as_bytes()).expect(200);

    let broken = roll_out(&home, &server, &["--p99-times", "0", "--p99-free-ms", "0"]);
    assert!(
        !broken.status.success() && broken.errors.contains("rolled back: the 99th percentile"),
        "{}",
        broken.errors
    );
    assert!(broken.output.contains("| 1 %, canary |") && !broken.output.contains("| 100 % |"), "{}", broken.output);
    let back = policy();
    assert_eq!((&back["strategy"], &back["rollout"]), (&before["strategy"], &before["rollout"]));
    assert!(back["reason"].as_str().is_some_and(|reason| reason.starts_with("rolled back")), "{back}");

    let free = ["--p99-times", "1e9", "--failed-share", "1", "--store-times", "1e9", "--breakers", "1e9"];
    let through = roll_out(&home, &server, &free);
    assert!(
        through.status.success() && through.output.contains("`live` is in force"),
        "{}{}",
        through.output,
        through.errors
    );
    let after = policy();
    assert_eq!((&after["strategy"], after.get("rollout")), (&json!("live"), None));

    let refused = home.run(&["lab", "rollout", "--server", &server.address, "--to", "live", "--shares", "50,20"]);
    assert!(!refused.status.success() && refused.errors.contains("--shares must grow"), "{}", refused.errors);
}
