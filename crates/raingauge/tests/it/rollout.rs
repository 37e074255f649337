//! A guarded rollout of a cache strategy on a live server, from the command line and from the
//! portal.

use crate::client::{Client, at, drop_event, drops_counter};
use crate::portal::{between, post};
use crate::server::{Home, Ran, Server, until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

const NOON: &str = "2024-09-24T12:00:00Z";
/// A limit that is never exceeded.
pub const ANY: &str = "1000000";
/// Stages as short as the service looks at them.
const STEPS: [&str; 4] = ["--hold-s", "2", "--batches-min", "5"];

/// Runs `what` while threads query each of some readers for counts all the time.
pub fn while_asked<T>(readers: &[&Server], what: impl FnOnce() -> T) -> T {
    let noon = at(NOON);
    let batch = json!({"requests": [{"key": "drops:a", "fromTime": noon, "toTime": noon + 7_200}]});
    let is_over = AtomicBool::new(false);
    let ask = |client: &Client| {
        while !is_over.load(Ordering::Acquire) {
            assert_eq!(client.post("/v1/counts", &batch).expect(200)["results"][0]["count"], 10);
        }
    };

    std::thread::scope(|scope| {
        let asking: Vec<_> = readers.iter().map(|reader| scope.spawn(|| ask(reader))).collect();
        let over = Over(&is_over);
        let done = what();
        drop(over);
        asking.into_iter().for_each(|asking| asking.join().expect("every count was right"));

        done
    })
}

/// Signals the end to the querying threads, also when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Rolls `live` out with the command.
fn roll_out(home: &Home, server: &Server, limits: &[&str]) -> Ran {
    let told = ["lab", "rollout", "--server", &server.address, "--to", "live"];
    while_asked(&[server], || home.run(&[&told[..], &STEPS, limits].concat()))
}

/// Counts ten events at noon.
pub fn count_ten(server: &Server) {
    server.create(drops_counter());
    let events: Vec<Value> =
        (0..10).map(|n| drop_event(&n.to_string(), at(NOON) + n * 60, "a")).collect();
    server.count_events(&events);
}

#[test]
fn a_program_begins_and_stops_a_rollout() {
    let home = Home::new();
    let server = home.start();
    let before = server.get("/v1/cache-policy").expect(200);
    let begin = |plan: Value| server.post("/v1/rollouts", &plan);
    let invalid = begin(json!({ "to": "none", "shares": [7, 7] }));

    assert_eq!(invalid.expect_problem(422, "rollout_invalid")["problems"][0]["field"], "shares");
    begin(json!({ "to": "none", "colour": "red" })).expect_problem(422, "rollout_invalid");

    let answer = begin(json!({ "to": "none", "shares": [50, 100], "limits": { "breakers": 2 } }));
    let begun = answer.expect(201);
    let path = format!("/v1/rollouts/{}", begun["id"]);
    assert_eq!(answer.header("location"), path);

    let plan = &begun["plan"];
    assert_eq!((&plan["shares"], &plan["holdS"]), (&json!([50, 100]), &json!(1_800.0)));
    assert_eq!((&plan["limits"]["breakers"], &begun["endedAt"]), (&json!(2.0), &Value::Null));
    begin(json!({ "to": "none" })).expect_problem(409, "rollout_refused");

    let wish = |what: &str| server.send("POST", &format!("{path}/{what}"), &[], b"");
    wish("go-on").expect_problem(409, "rollout_refused");
    assert_eq!(wish("stop").expect(200)["phase"]["end"], "stopped");
    assert_eq!(server.get(&path).expect(200)["phase"]["name"], "ended");
    assert_eq!(server.get("/v1/rollouts").expect(200)["rollouts"][0]["id"], begun["id"]);
    assert_eq!(server.get("/v1/cache-policy").expect(200)["strategy"], before["strategy"]);
    server.get("/v1/rollouts/99").expect_problem(404, "rollout_unknown");
}

#[test]
fn a_rollout_goes_through_or_comes_back_by_itself() {
    let home = Home::new();
    let server = home.start();
    count_ten(&server);

    let policy = || server.get("/v1/cache-policy").json();
    let before =
        json!({"strategy": "none", "rollout": [{"strategy": "none", "modulo": 7, "below": 3}]});
    server.send("PUT", "/v1/cache-policy", &[], before.to_string().as_bytes()).expect(200);

    let none = ["--shares", "50,100", "--canary-s", "2", "--p99-times", "0", "--p99-free-ms", "0"];
    let broken = roll_out(&home, &server, &none);
    assert!(
        !broken.status.success() && broken.errors.contains("rolled back: the 99th percentile"),
        "{}",
        broken.errors
    );
    assert!(
        broken.output.contains("| 1 %, canary |") && !broken.output.contains("| 100 % |"),
        "{}",
        broken.output
    );

    let back = policy();
    assert_eq!((&back["strategy"], &back["rollout"]), (&before["strategy"], &before["rollout"]));
    assert!(
        back["reason"].as_str().is_some_and(|reason| reason.starts_with("Rollout 1: rolled back")),
        "{back}"
    );

    let any = [
        ["--shares", "100"],
        ["--canary-s", "0"],
        ["--p99-times", ANY],
        ["--failed-share", "1"],
        ["--store-times", ANY],
        ["--breakers", ANY],
    ];
    let through = roll_out(&home, &server, &any.concat());
    assert!(
        through.status.success() && through.output.contains("`live` is in force"),
        "{}{}",
        through.output,
        through.errors
    );

    let after = policy();
    assert_eq!((&after["strategy"], after.get("rollout")), (&json!("live"), None));

    let refused = home.run(&[
        "lab",
        "rollout",
        "--server",
        &server.address,
        "--to",
        "live",
        "--shares",
        "50,20",
    ]);

    assert!(
        !refused.status.success() && refused.errors.contains("shares: must grow"),
        "{}",
        refused.errors
    );
}

/// Sends a form of the portal, which requires no sign-in here.
fn send(server: &Server, path: &str, fields: &[(&str, &str)]) {
    let page = server.get("/system/cache").text();
    let fields = [fields, &[("csrf", between(&page, "name=\"csrf\" content=\""))]].concat();
    let answer = post(server, path, "", &fields);
    assert_eq!(answer.status, 303, "{}", answer.text());
}

/// Begins a rollout to all counters in some steps, each watched for as short a time as the portal
/// allows.
pub fn begin(server: &Server, to: &str, shares: &str, p99: &str, breakers: &str) {
    let fields = [
        ("to", to),
        ("shares", shares),
        ("hold", "0.05"),
        ("canary", "0"),
        ("p99-times", p99),
        ("p99-free", p99),
        ("failed", "100"),
        ("store-times", ANY),
        ("breakers", breakers),
        ("batches", "5"),
        ("why", "try it"),
    ];
    send(server, "/system/cache/rollouts", &fields);
}

/// Returns the state of a rollout, once it satisfies `is_so`.
pub fn phase(server: &Server, id: u32, is_so: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/system/cache/rollouts/{id}/report.json");
    until("the rollout goes on", || {
        Some(server.get(&path).json()).filter(|report| is_so(&report["phase"]))
    })
}

#[test]
fn a_rollout_of_the_portal_outlasts_a_crash_and_the_next_one_comes_back_by_itself() {
    let home = Home::with(&[("portal.sign_in", "false")]);
    let server = home.start();
    count_ten(&server);
    server.send("PUT", "/v1/cache-policy", &[], br#"{"strategy": "none"}"#).expect(200);
    while_asked(&[&server], || {
        begin(&server, "live", "100", ANY, "1000");
        phase(&server, 1, |phase| phase["name"] == "following");
    });
    assert_eq!(server.get("/v1/cache-policy").json()["strategy"], "live");
    server.kill();

    let server = home.start();
    let report = while_asked(&[&server], || phase(&server, 1, |phase| phase["name"] == "ended"));
    assert_eq!(
        (&report["phase"]["end"], &report["interruptions"]),
        (&json!("finished"), &json!(1)),
        "{report}"
    );
    assert_eq!(server.get("/v1/cache-policy").json()["version"], 2, "it set nothing twice");

    server.send("PUT", "/v1/cache-policy", &[], br#"{"strategy": "none"}"#).expect(200);
    let report = while_asked(&[&server], || {
        begin(&server, "live", "100", "0", "1000");
        phase(&server, 2, |phase| phase["name"] == "ended")
    });
    let why = report["phase"]["why"].as_str().unwrap_or_default();
    assert!(
        report["phase"]["end"] == "broken" && why.starts_with("the 99th percentile is"),
        "{report}"
    );

    let back = server.get("/v1/cache-policy").json();
    assert_eq!((&back["strategy"], &back["version"]), (&json!("none"), &json!(5)));
    assert!(
        back["reason"]
            .as_str()
            .is_some_and(|why| why.starts_with("Rollout 2: rolled back: the 99th")),
        "{back}"
    );

    for (outcome, seen) in [("finished", 1.0), ("rolled back", 1.0), ("failed", 0.0)] {
        let series = format!("raingauge_rollouts_total{{outcome=\"{outcome}\"}}");
        until("the end is counted", || (server.metric(&series) == seen).then_some(()));
    }
}
