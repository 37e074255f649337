//! `/v1/drafts`: proposed changes, reviewed and approved.

use crate::auth::token;
use crate::client::{Answer, Client, drops_counter};
use crate::server::Home;
use serde_json::{Value, json};

fn decide(client: &Client, draft: &Value, what: &str, reason: &str) -> Answer {
    let path = format!("/v1/drafts/{}/{what}", draft["id"]);
    let revision = format!("\"{}\"", draft["revision"]);
    client.send("POST", &path, &[("if-match", &revision), ("x-reason", reason)], b"")
}

fn propose(client: &Client, configuration: Value, base_version: u32) -> Value {
    let draft = json!({
        "kind": "counter", "configuration": configuration, "baseVersion": base_version,
    });
    client.post("/v1/drafts", &draft).expect(201)
}

#[test]
fn a_change_is_proposed_reviewed_and_takes_effect() {
    let home = Home::new();
    let server = home.start();
    let draft = json!({ "kind": "counter", "configuration": drops_counter() });
    let created = server.post("/v1/drafts", &draft);

    assert_eq!((created.header("location"), created.header("etag")), ("/v1/drafts/1", "\"1\""));
    let created = created.expect(201);
    assert_eq!((&created["state"], &created["author"]), (&json!("draft"), &json!("anonymous")));
    assert_eq!(created["configuration"]["retentionDays"]["day"], Value::Null);
    assert_eq!(server.get("/v1/drafts/1").expect(200), created);
    assert_eq!(server.get("/v1/drafts").expect(200)["drafts"], json!([created]));
    server.get("/v1/counters/34").expect_problem(404, "counter_unknown");

    // Edited, submitted, rejected, submitted again, approved.
    let mut configuration = drops_counter();
    configuration["owner"] = json!("weather");

    let body = json!({ "configuration": configuration }).to_string();
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let edited = server.send("PUT", "/v1/drafts/1", &headers, body.as_bytes()).expect(200);
    assert_eq!((&edited["revision"], &edited["baseVersion"]), (&json!(2), &json!(0)));
    decide(&server, &created, "submit", "late").expect_problem(409, "draft_changed");
    decide(&server, &edited, "submit", "").expect_problem(400, "reason_missing");

    let sent = decide(&server, &edited, "submit", "we need it").expect(200);
    let back = decide(&server, &sent, "reject", "whose?").expect(200);
    assert_eq!((&back["state"], &back["comment"]), (&json!("rejected"), &json!("whose?")));

    let sent = decide(&server, &back, "submit", "ours").expect(200);
    let applied = decide(&server, &sent, "approve", "fine").expect(200);
    assert_eq!((&applied["state"], &applied["appliedVersion"]), (&json!("applied"), &json!(1)));
    decide(&server, &applied, "withdraw", "").expect_problem(409, "draft_changed");

    let counter = server.get("/v1/counters/34").expect(200);
    assert_eq!(counter["reason"], "ours (approved by anonymous: fine)");
    assert_eq!((&counter["owner"], &counter["version"]), (&json!("weather"), &json!(1)));
    assert_eq!(server.get("/v1/drafts").expect(200)["drafts"], json!([]));
    assert_eq!(server.get("/v1/drafts?state=ended").expect(200)["drafts"], json!([applied]));
}

#[test]
fn a_draft_never_overwrites_a_newer_version() {
    let home = Home::new();
    let server = home.start();
    server.create(drops_counter());

    let mut configuration = drops_counter();
    configuration["owner"] = json!("mine");

    let draft = propose(&server, configuration.clone(), 1);
    configuration["owner"] = json!("theirs");

    let headers = [("content-type", "application/json")];
    server
        .send("PUT", "/v1/counters/34", &headers, configuration.to_string().as_bytes())
        .expect(200);

    let refused = decide(&server, &draft, "apply", "now").expect_problem(409, "draft_conflict");
    assert_eq!(refused["currentVersion"], 2);
    assert_eq!(server.get("/v1/counters/34").expect(200)["owner"], "theirs");
    configuration["owner"] = json!("mine");

    let body = json!({ "configuration": configuration, "baseVersion": 2 }).to_string();
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let edited = server.send("PUT", "/v1/drafts/1", &headers, body.as_bytes()).expect(200);
    let applied = decide(&server, &edited, "apply", "now").expect(200);

    assert_eq!(applied["appliedVersion"], 3);
}

#[test]
fn a_draft_that_cannot_be_is_refused() {
    let home = Home::new();
    let server = home.start();
    let refused = |draft: Value| server.post("/v1/drafts", &draft);
    refused(json!({})).expect_problem(400, "json_malformed");
    refused(json!({ "kind": "umbrella", "configuration": {} })).expect_problem(422, "kind_unknown");

    let wrong = refused(json!({ "kind": "counter", "configuration": { "name": "" } }));
    let wrong = wrong.expect_problem(422, "configuration_invalid");
    assert!(wrong["problems"].as_array().is_some_and(|problems| !problems.is_empty()), "{wrong}");

    let absent = json!({ "kind": "counter", "configuration": drops_counter(), "baseVersion": 4 });
    refused(absent).expect_problem(404, "document_unknown");
    server.get("/v1/drafts/9").expect_problem(404, "draft_unknown");
    server.get("/v1/drafts?state=all").expect_problem(400, "parameter_unknown");
    propose(&server, drops_counter(), 0);

    let unseen = server.send("POST", "/v1/drafts/1/withdraw", &[], b"");
    unseen.expect_problem(428, "revision_missing");
}

/// A token of the configuration belongs to no person, so it cannot be the second person.
#[test]
fn where_approval_is_asked_a_token_of_the_configuration_gives_none() {
    let tokens = ["counters:write", "counts:read"].map(|scope| {
        use sha2::Digest as _;
        let hash = hex::encode(sha2::Sha256::digest(token(scope)));
        format!("{{ name = \"{scope} holder\", sha256 = \"{hash}\", scopes = [\"{scope}\"] }}")
    });

    let tokens = format!("[{}]", tokens.join(", "));
    let home = Home::with(&[("auth.tokens", &tokens), ("portal.approval", "true")]);
    let server = home.start();
    let writer = server.with_token(&token("counters:write"));
    let draft = propose(&writer, drops_counter(), 0);

    assert_eq!(draft["author"], "token:counters:write holder");
    decide(&writer, &draft, "apply", "now").expect_problem(403, "approval_needed");

    let sent = decide(&writer, &draft, "submit", "we need it").expect(200);
    decide(&writer, &sent, "approve", "").expect_problem(403, "second_person_needed");

    let reader = server.with_token(&token("counts:read"));
    assert_eq!(reader.get("/v1/drafts/1").expect(200)["state"], "review");
}
