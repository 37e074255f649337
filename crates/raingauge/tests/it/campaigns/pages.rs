//! The pages of campaigns over the real binary: every page answers, a form does what it says, and
//! viewers see no values of events.

use super::example::{Example, orders};
use crate::portal::{Browser, between, first_link};
use crate::server::until;
use serde_json::json;

const PAGES: [&str; 19] = [
    "/campaigns",
    "/campaigns/7",
    "/campaigns/7/versions",
    "/campaigns/7/compare",
    "/campaigns/7/edit",
    "/campaigns/7/state?to=paused",
    "/campaigns/new",
    "/campaigns/new/text",
    "/campaigns/new?copy=7",
    "/campaigns/why",
    "/campaigns/decisions?campaign=7",
    "/campaigns/actions?status=delivered",
    "/campaigns/destinations",
    "/campaigns/destinations/messages",
    "/campaigns/tables",
    "/campaigns/experiments",
    "/campaigns/shared",
    "/campaigns/documents/destination/messages",
    "/campaigns/documents/cap/new",
];

#[test]
fn campaigns_are_watched_paused_and_changed_in_pages() {
    let example = Example::new();
    let server = example.home.start();
    let zoe = Browser::welcome(&server, &first_link(&example.home).expect("a link"), "zoe");
    example.create(&server);
    for order in orders() {
        server.lines("/v1/events?wait=decided", &[order]).expect(200);
    }
    until("all messages are delivered", || (example.receiver.by_action().len() == 7).then_some(()));

    for path in PAGES {
        let answer = zoe.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(zoe.get("/campaigns/8").status, 404);
    for (path, words) in [
        ("/campaigns/7", "awards <strong>MART5</strong> through <code>rewards</code>"),
        ("/campaigns/7", "It is used up."),
        ("/campaigns/decisions?campaign=7&outcome=budget_exhausted", "u-9"),
        ("/campaigns/why?campaign=7&subject=u-9", "the budget does not cover it any more"),
        (
            "/campaigns/why?campaign=7&subject=u-7&source=mart&event=o-2",
            "is <strong>1</strong> and should be: reaches 2",
        ),
    ] {
        let page = zoe.get(path).text();
        assert!(page.contains(words), "{path}: {words}: {page}");
    }

    // The kill switch, with its reason in the history and in the audit log.
    let paused = zoe.post("/campaigns/7/state", &[("to", "paused"), ("reason", "wrong reward")]);
    assert_eq!((paused.status, paused.header("location")), (303, "/campaigns/7?note=state"));
    assert_eq!(server.get("/v1/campaigns/7").expect(200)["state"], "paused");
    assert!(zoe.get("/campaigns/7").text().contains("wrong reward"));
    let audited = zoe.audit();
    let entry = audited.iter().find(|entry| entry["verb"] == "campaign.state").expect("an entry");
    assert_eq!((&entry["object"], &entry["outcome"]), (&json!("campaign 7"), &json!("done")));

    // A text with a problem comes back with its line; one without is a new version.
    let text = server.get("/v1/campaigns/7").expect(200);
    let mut wanted = text.clone();
    for name in ["version", "changedBy", "changedByKind", "reason", "changedAt", "status"] {
        wanted.as_object_mut().expect("an object").remove(name);
    }
    let version = text["version"].to_string();
    wanted["limits"][0]["max"] = json!(0);
    let wrong = serde_json::to_string_pretty(&wanted).expect("JSON");
    let refused =
        zoe.post("/campaigns/save", &[("text", &wrong), ("version", &version), ("reason", "")]);
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("max must be at least 1"), "{}", refused.text());

    wanted["limits"][0]["max"] = json!(2);
    let right = wanted.to_string();
    let saved =
        zoe.post("/campaigns/save", &[("text", &right), ("version", &version), ("reason", "two")]);
    assert_eq!((saved.status, saved.header("location")), (303, "/campaigns/7?note=saved"));
    assert!(zoe.get("/campaigns/7/versions").text().contains("limits[0].max"));
    let late =
        zoe.post("/campaigns/save", &[("text", &wrong), ("version", &version), ("reason", "late")]);
    assert_ne!(late.status, 303, "another version was saved in between");

    // A backtest finds the decisions again.
    let job = zoe.post("/campaigns/backtest", &[("text", &right), ("days", "400")]);
    let address = job.header("location").to_owned();
    assert!(address.starts_with("/campaigns/jobs/"), "{}", job.text());
    until("the backtest has ended", || {
        let page = zoe.get(&address).text();
        page.contains("Times granted").then_some(())
    });
}

#[test]
fn viewers_see_no_subjects_and_change_nothing() {
    let example = Example::new();
    let server = example.home.start();
    let zoe = Browser::welcome(&server, &first_link(&example.home).expect("a link"), "zoe");
    example.create(&server);
    for order in &orders()[..5] {
        server.lines("/v1/events?wait=decided", std::slice::from_ref(order)).expect(200);
    }

    let invited = zoe.post("/people/invite", &[("name", "vera"), ("role", "viewer")]);
    let secret = between(&invited.text(), "/welcome/").to_owned();
    let vera = Browser::welcome(&server, &format!("/welcome/{secret}"), "vera");
    for path in [
        "/campaigns",
        "/campaigns/7",
        "/campaigns/decisions",
        "/campaigns/actions?status=delivered",
    ] {
        let answer = vera.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.text().contains("u-7"), "{path} shows a subject");
    }
    for path in
        ["/campaigns/why", "/campaigns/new", "/campaigns/7/edit", "/campaigns/7/state?to=paused"]
    {
        assert_eq!(vera.get(path).status, 403, "{path}");
    }
    assert_eq!(vera.post("/campaigns/7/state", &[("to", "paused")]).status, 403);
    let fields = [("text", "name: d"), ("version", "0")];
    assert_eq!(vera.post("/campaigns/documents/destination/new", &fields).status, 403);
    assert_eq!(server.get("/v1/campaigns/7").expect(200)["state"], "active");
}
