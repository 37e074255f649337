//! The cache policy through the real binary: read, set by hand and from the command line, in force
//! at once.

use crate::client::{at, drop_event, drops_counter};
use crate::server::{Home, until};
use serde_json::{Value, json};

const PATH: &str = "/v1/cache-policy";
const NOON: &str = "2024-09-24T12:00:00Z";
const HITS: &str = "raingauge_cache_hits_total{strategy=\"result\"}";

#[test]
fn a_policy_is_read_set_and_kept() {
    let home = Home::new();
    let server = home.start();
    let first = server.get(PATH);
    assert_eq!((first.header("etag"), first.json()["strategy"].clone()), ("\"0\"", json!("live")));

    let policy = json!({
        "strategy": "result",
        "rollout": [{"strategy": "none", "modulo": 100, "below": 25}],
        "overrides": {"canary-1": {"strategy": "none"}},
    });

    let body = policy.to_string();
    let put =
        |headers: &[(&str, &str)], body: &str| server.send("PUT", PATH, headers, body.as_bytes());
    let set = put(&[("if-match", "\"0\""), ("x-reason", "a trial")], &body);
    assert_eq!(set.header("etag"), "\"1\"");

    let set = set.expect(200);
    assert_eq!(
        (&set["version"], &set["reason"], &set["rollout"]),
        (&json!(1), &json!("a trial"), &policy["rollout"])
    );

    // What was read may be sent back, which changes nothing.
    assert_eq!(put(&[], &set.to_string()).expect(200)["version"], 1);
    let problem = put(&[("if-match", "\"0\"")], r#"{"strategy":"none"}"#)
        .expect_problem(412, "version_mismatch");
    assert_eq!(problem["currentVersion"], 1);

    for wrong in [
        r#"{"strategy":"often"}"#,
        r#"{"strategy":"none","rollout":[{"strategy":"live","modulo":0,"below":0}]}"#,
    ] {
        let problem = put(&[], wrong).expect_problem(422, "policy_invalid");
        assert!(!problem["problems"].as_array().expect("problems").is_empty());
    }

    put(&[], "{").expect_problem(400, "json_malformed");
    server.kill();
    assert_eq!(home.start().get(PATH).json()["overrides"], policy["overrides"]);
}

#[test]
fn a_policy_is_in_force_at_once_and_changes_no_count() {
    let home = Home::with(&[("cache.result", "memory"), ("cluster.instance", "reader-1")]);
    let server = home.start();
    server.create(drops_counter());

    let events: Vec<Value> =
        (0..100).map(|n| drop_event(&n.to_string(), at(NOON) + n * 60, "a")).collect();
    server.count_events(&events);

    let count = || server.count("drops:a", at(NOON), at(NOON) + 7_200);
    let set =
        |policy: Value| server.send("PUT", PATH, &[], policy.to_string().as_bytes()).expect(200);
    assert_eq!((count(), count()), (100, 100));
    set(json!({"strategy": "result"}));
    until("a sum is kept and found again", || {
        assert_eq!(count(), 100);
        (server.metric(HITS) > 0.0).then_some(())
    });
    set(json!({"strategy": "result", "overrides": {"reader-1": {"strategy": "none"}}}));

    let hits = server.metric(HITS);
    assert_eq!((count(), count()), (100, 100));
    assert_eq!(server.metric(HITS), hits, "this instance is excepted");
}

#[test]
fn the_command_line_reads_and_sets_it() {
    let home = Home::new();
    let server = home.start();
    let url = format!("http://{}", server.address);
    let run = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["cache-policy"].iter().chain(arguments).copied().collect();
        home.run(&[&arguments[..], &["--server", &url]].concat())
    };
    let set = |arguments: &[&str]| run(&[&["set", "--json"][..], arguments].concat()).json();
    let answer = set(&[
        "--strategy",
        "result",
        "--rollout",
        "none:100:5",
        "--rollout",
        "live:2:1",
        "--reason",
        "five",
    ]);

    assert_eq!(
        (&answer["version"], answer["rollout"].as_array().map(Vec::len)),
        (&json!(1), Some(2))
    );
    let answer = set(&["--strategy", "none", "--instance", "canary-1"]);
    assert_eq!(
        (&answer["strategy"], &answer["overrides"]["canary-1"]["strategy"]),
        (&json!("result"), &json!("none"))
    );

    let told = run(&["get"]);
    assert!(
        told.output.contains("none where id % 100 < 5") && told.output.contains("canary-1: none"),
        "{}",
        told.output
    );

    let answer = set(&["--clear", "--instance", "canary-1"]);
    assert_eq!((&answer["version"], answer.get("overrides")), (&json!(3), None));

    let file = home.path().join("policy.json");
    std::fs::write(&file, r#"{"strategy":"phased"}"#).expect("written");
    assert_eq!(set(&["--file", &file.display().to_string()])["strategy"], "phased");

    for wrong in [
        &["set"][..],
        &["set", "--strategy", "often"],
        &["set", "--strategy", "none", "--rollout", "none:1"],
    ] {
        assert!(!run(wrong).status.success(), "{wrong:?}");
    }
}
