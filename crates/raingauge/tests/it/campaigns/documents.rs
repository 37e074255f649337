//! Documents of campaigns over HTTP and the command line: versions, states, tables, and who may
//! change what.

use super::example::{Example, campaign, orders, wait_until_active};
use crate::auth::{home_with_tokens, token};
use crate::server::Home;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write as _;

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn a_campaign_has_versions_and_states() {
    let example = Example::new();
    let server = example.home.start();
    let unknown = server.post("/v1/campaigns", &campaign()).expect_problem(422, "campaign_invalid");
    assert!(unknown["problems"][0]["detail"].as_str().is_some(), "{unknown}");
    example.create(&server);

    let found = server.get("/v1/campaigns/7").expect(200);
    assert_eq!((&found["version"], &found["changedBy"]), (&json!(1), &json!("anonymous")));
    server.post("/v1/campaigns", &campaign()).expect_problem(409, "id_taken");

    let mut changed = campaign();
    changed["description"] = json!("for the autumn");
    let put = |version: &str| {
        let headers = [JSON, ("if-match", version), ("x-reason", "autumn")];
        server.send("PUT", "/v1/campaigns/7", &headers, changed.to_string().as_bytes())
    };
    let mismatch = put("\"3\"").expect_problem(412, "version_mismatch");
    assert_eq!(mismatch["currentVersion"], 1);
    assert_eq!(put("\"1\"").expect(200)["version"], 2);

    let states = [("pause", "paused"), ("resume", "active"), ("shadow", "shadow")];
    for (verb, state) in states.into_iter().chain([("activate", "active"), ("archive", "archived")])
    {
        let path = format!("/v1/campaigns/7/{verb}");
        let answer = server.post(&path, &Value::Null).expect(200);
        assert_eq!(answer["state"], state, "{verb}");
    }
    let versions = server.get("/v1/campaigns/7/versions").expect(200);
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(7));
    assert_eq!(versions["versions"][5]["reason"], "autumn");

    server.send("DELETE", "/v1/campaigns/7", &[], b"").expect(200);
    server.get("/v1/campaigns/7").expect_problem(404, "document_unknown");
}

#[test]
fn validating_stores_nothing() {
    let home = Home::new();
    let server = home.start();
    let destination = json!({ "name": "d", "url": "https://d.example/hook" });
    let checked = server.post("/v1/destinations?validate=only", &destination).expect(200);
    assert_eq!(checked["name"], "d");
    assert_eq!(server.get("/v1/destinations").expect(200)["destinations"], json!([]));

    let wrong = json!({ "name": "d", "url": "ftp://d.example" });
    server.post("/v1/destinations", &wrong).expect_problem(422, "document_invalid");
    server.get("/v1/destinations/d").expect_problem(404, "document_unknown");
}

#[test]
fn a_destination_that_a_campaign_names_is_not_deleted() {
    let example = Example::new();
    let server = example.home.start();
    example.create(&server);
    let refused = server.send("DELETE", "/v1/destinations/rewards", &[], b"");
    refused.expect_problem(409, "change_refused");
}

#[test]
fn tables_are_loaded_as_a_whole() {
    let home = Home::new();
    let server = home.start();
    let table = json!({
        "kind": "table", "name": "users", "key": "subject",
        "columns": { "tier": "text", "orders": "number" },
    });
    server.post("/v1/tables", &table).expect(201);

    let put = |headers: &[(&str, &str)], body: &[u8]| {
        server.send("PUT", "/v1/tables/users", headers, body)
    };
    let csv = ("content-type", "text/csv");
    let loaded = put(&[csv], b"subject,tier,orders\nu-1,gold,3\nu-2,silver,\n").expect(200);
    assert_eq!(loaded["rows"], 2, "{loaded}");

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"{\"subject\": \"u-3\", \"tier\": \"gold\"}\n").expect("memory");
    let packed = gzip.finish().expect("memory");
    let headers = [("content-type", "application/x-ndjson"), ("content-encoding", "gzip")];
    assert_eq!(put(&headers, &packed).expect(200)["rows"], 1);

    put(&[csv], b"subject,tier,orders\nu-1,gold,many\n").expect_problem(422, "table_invalid");
    put(&[csv, ("content-encoding", "gzip")], b"no gzip").expect_problem(400, "gzip_malformed");
    put(&[("content-type", "text/plain")], b"u-1").expect_problem(415, "media_type_unknown");
    assert_eq!(server.get("/v1/tables").expect(200)["tables"][0]["rows"], 1, "nothing was loaded");
}

#[test]
fn a_test_decides_and_keeps_nothing() {
    let example = Example::new();
    let server = example.home.start();
    example.create(&server);
    // A log holds no event twice.
    let events: Vec<Value> = orders().into_iter().skip(1).collect();
    let body = json!({ "campaigns": [campaign()], "events": events });
    let answer = server.post("/v1/campaigns/test", &body).expect(200);
    assert!(answer.to_string().contains("act_3607a20a5c6e936874c9ec850d9ffaac"), "{answer}");
    assert_eq!(server.get("/v1/decisions").expect(200)["decisions"], json!([]));
}

/// Scopes are separate: who defines campaigns does not start them.
#[test]
fn a_writer_of_campaigns_does_not_operate_them() {
    let home = home_with_tokens();
    let server = home.start();
    let with = |scope: &str| server.with_token(&token(scope));
    let destination = json!({ "name": "d", "url": "https://d.example/hook" });
    with("campaigns:write")
        .post("/v1/destinations", &destination)
        .expect_problem(403, "scope_missing");
    with("campaigns:operate").post("/v1/destinations", &destination).expect(201);

    let step = json!({ "name": "s", "actions": [
        { "name": "a", "kind": "reward", "to": "d", "reward": "r" },
    ] });
    let draft = json!({ "name": "c", "eventTypes": ["e"], "steps": [step], "state": "draft" });
    let created = with("campaigns:write").post("/v1/campaigns", &draft).expect(201);
    let path = format!("/v1/campaigns/{}/activate", created["id"]);
    with("campaigns:write").post(&path, &Value::Null).expect_problem(403, "scope_missing");

    // Nor by its definition.
    let mut active = draft.clone();
    active["state"] = json!("active");
    active["id"] = created["id"].clone();
    let path = format!("/v1/campaigns/{}", created["id"]);
    let put = with("campaigns:write").send("PUT", &path, &[JSON], active.to_string().as_bytes());
    put.expect_problem(403, "scope_missing");
    with("campaigns:operate").post(&format!("{path}/activate"), &Value::Null).expect(200);
}

#[test]
fn the_command_line_applies_shows_and_explains() {
    let example = Example::new();
    let server = example.home.start();
    let url = format!("http://{}", server.address);
    let run = |arguments: &[&str]| {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--server", &url]).collect();
        let ran = example.home.run(&arguments);
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
        ran.output
    };

    let documents = json!([
        campaign(),
        { "kind": "destination", "name": "messages", "url": example.receiver.url("/messages") },
        { "kind": "destination", "name": "rewards", "url": example.receiver.url("/rewards") },
    ]);
    std::fs::write(example.home.path().join("all.json"), documents.to_string()).expect("a file");
    assert_eq!(
        run(&["campaigns", "diff", "-f", "all.json"]).matches("would be created").count(),
        3
    );
    assert_eq!(run(&["campaigns", "apply", "-f", "all.json"]).matches("created").count(), 3);
    assert!(run(&["campaigns", "apply", "-f", "all.json"]).contains("no changes"));
    assert!(run(&["campaigns", "list"]).contains("mart_three_orders"));

    wait_until_active(&server, 7);
    for order in orders() {
        server.lines("/v1/events?wait=decided", &[order]).expect(200);
    }
    assert!(run(&["decisions", "--outcome", "budget_exhausted"]).contains("u-9"));
    let explained =
        run(&["campaigns", "explain", "7", "--subject", "u-7", "--event", "mart", "o-2"]);
    assert!(explained.starts_with("mart/o-2\nstep_false"), "{explained}");
    assert!(run(&["campaigns", "pause", "7"]).contains("is paused"));
    assert!(run(&["destinations", "probe", "messages"]).contains("messages: "));
    assert!(run(&["actions", "list", "--status", "dead"]).contains("nothing"));
}
