//! Campaigns award points in this process.

use super::{create, member};
use crate::campaigns::example::wait_until_active;
use crate::client::{event, now_s};
use crate::server::{Home, until};
use serde_json::json;

#[test]
fn a_campaign_awards_points_once_and_within_its_budget() {
    let home = Home::new();
    let server = home.start();
    create(
        &server,
        &json!({
            "programme": "shop", "expiry": {"kind": "never"}, "budgets": {"growth": {"limit": 120}},
        }),
    );
    let destination = json!({"name": "points", "url": "points:shop"});
    server.post("/v1/destinations", &destination).expect(201);
    let action = json!({"name": "gift", "kind": "points", "to": "points", "points": 50,
                        "budget": "growth"});
    let campaign = json!({
        "id": 7, "name": "gifts", "eventTypes": ["order"], "subject": "data.user",
        "state": "active", "steps": [{"name": "gift", "actions": [action]}],
    });
    server.post("/v1/campaigns", &campaign).expect(201);
    wait_until_active(&server, 7);

    let order = |id: &str, user: &str| event("order", id, now_s(), json!({"user": user}));
    let orders = [order("o-1", "ann"), order("o-2", "ann"), order("o-3", "bob")];
    server.lines("/v1/events?wait=decided", &orders).expect(200);
    until("ann has her gifts", || {
        (member(&server, "shop", "ann")["available"] == 100).then_some(())
    });

    // The account of the programme is the hard stop: the third gift is refused.
    until("the third is refused", || {
        let refused = server.get("/v1/actions?status=refused").expect(200);
        let action = refused["actions"][0].clone();
        let note = action["note"].as_str()?.to_owned();
        note.starts_with("budget_spent").then_some(())
    });
    assert_eq!(member(&server, "shop", "bob")["available"], 0);

    // The same events again, after a kill, award nothing more.
    server.kill();
    let server = home.start();
    server.lines("/v1/events?wait=decided", &orders).expect(200);
    assert_eq!(member(&server, "shop", "ann")["available"], 100);
}
