//! Destinations that are disabled, by a person or by their own answer, and enabled again.

use super::example::{Example, orders};
use crate::client::Client;
use crate::server::until;
use serde_json::{Value, json};

fn disabled(server: &Client) -> Value {
    server.get("/v1/destinations/messages").expect(200)["disabled"].clone()
}

#[test]
fn a_destination_that_is_gone_is_disabled_until_it_is_enabled() {
    let example = Example::new();
    let server = example.home.start();
    example.create(&server);
    example.receiver.answer(410);
    // Three orders make a nudge.
    server.lines("/v1/events?wait=decided", &orders()[..4]).expect(200);
    until("the destination is disabled", || {
        (disabled(&server) == "it answered 410 Gone").then_some(())
    });
    let versions = server.get("/v1/destinations/messages/versions").expect(200);
    assert_eq!(versions["versions"][0]["changedBy"], "raingauge", "{versions}");

    // The next process knows it too, and sends nothing.
    until("the document is in effect", || {
        let status = server.get("/v1/destinations/messages/status").expect(200);
        (status["version"] == 2).then_some(())
    });
    server.kill();
    example.receiver.answer(204);
    let server = example.home.start();
    let status = server.get("/v1/destinations/messages/status").expect(200);
    assert_eq!(status["obstacle"], "it answered 410 Gone", "{status}");
    assert_eq!(status["pending"], 1, "{status}");

    let url = format!("http://{}", server.address);
    let run = |verb: &str| {
        let arguments = ["destinations", verb, "messages", "--reason", "it is back"];
        let ran = example.home.run(&[&arguments[..], &["--server", &url]].concat());
        assert!(ran.status.success(), "{ran:?}");
        ran.output
    };
    assert!(run("enable").contains("messages is enabled"));
    assert_eq!(disabled(&server), Value::Null);
    // The delivery is due again some time after its first attempt.
    assert!(run("disable").contains("messages is disabled"));
    assert_eq!(disabled(&server), "it is back");

    server
        .post("/v1/destinations/nobody/disable", &Value::Null)
        .expect_problem(404, "document_unknown");
    let stale = [("if-match", "\"1\"")];
    let stale = server.send("POST", "/v1/destinations/messages/enable", &stale, b"");
    assert_eq!(stale.expect_problem(412, "version_mismatch")["currentVersion"], json!(4));
}

#[test]
fn a_disabled_destination_waits_over_a_restart() {
    let example = Example::new();
    let server = example.home.start();
    example.create(&server);
    server.post("/v1/destinations/messages/disable", &Value::Null).expect(200);
    server.lines("/v1/events?wait=decided", &orders()).expect(200);
    until("rewards are sent", || (example.receiver.by_action().len() == 2).then_some(()));
    server.kill();

    let server = example.home.start();
    assert_eq!(disabled(&server), "disabled by anonymous");
    assert_eq!(example.receiver.by_action().len(), 2);
    server.post("/v1/destinations/messages/enable", &Value::Null).expect(200);
    until("everything is sent", || (example.receiver.by_action().len() == 7).then_some(()));
}
