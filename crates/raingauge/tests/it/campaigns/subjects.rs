//! Subjects that are erased, by the API and the command line.

use super::example::{Example, orders};
use crate::auth::{home_with_tokens, token};
use crate::server::until;
use serde_json::json;

#[test]
fn campaigns_forget_a_subject() {
    let example = Example::new();
    let server = example.home.start();
    example.create(&server);
    for order in orders() {
        server.lines("/v1/events?wait=decided", &[order]).expect(200);
    }
    until("everything is delivered", || (example.receiver.by_action().len() == 7).then_some(()));
    let about = |subject: &str| {
        let answer = server.get(&format!("/v1/decisions?subject={subject}")).expect(200);
        answer["decisions"].as_array().map(Vec::len)
    };
    assert_eq!((about("u-7"), about("u-8")), (Some(3), Some(3)));

    let erased = server.send("DELETE", "/v1/subjects/u-7", &[("x-reason", "asked")], b"");
    assert_eq!(erased.expect(200), json!({ "subject": "u-7", "erased": true }));
    assert_eq!((about("u-7"), about("u-8")), (Some(0), Some(3)));
    let delivered = server.get("/v1/actions?status=delivered").expect(200).to_string();
    assert!(!delivered.contains("u-7") && delivered.contains("u-8"), "{delivered}");

    // What was spent stays spent, also after a restart; an event that comes again does nothing.
    server.kill();
    let server = example.home.start();
    let budgets = server.get("/v1/campaigns/7/budgets").expect(200);
    assert_eq!(budgets["budgets"][0]["spent"], 1_000, "{budgets}");
    server.lines("/v1/events?wait=decided", &orders()).expect(200);
    assert_eq!(example.receiver.by_action().len(), 7);

    let url = format!("http://{}", server.address);
    let ran = example.home.run(&["campaigns", "erase", "u-8", "--server", &url]);
    assert!(ran.status.success() && ran.output.contains("u-8 is erased"), "{ran:?}");
    let long = format!("/v1/subjects/{}", "u".repeat(257));
    server.send("DELETE", &long, &[], b"").expect_problem(400, "request_malformed");
}

#[test]
fn only_operators_erase_subjects() {
    let home = home_with_tokens();
    let server = home.start();
    let erase =
        |scope: &str| server.with_token(&token(scope)).send("DELETE", "/v1/subjects/u", &[], b"");
    erase("campaigns:write").expect_problem(403, "scope_missing");
    erase("campaigns:operate").expect(200);
}
