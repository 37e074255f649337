//! The example of docs/campaigns.md: one more order, then a reward for the third, as long as the
//! budget lasts. It runs straight through, and with a kill after every event.

use super::receiver::Receiver;
use crate::client::Client;
use crate::server::{Home, Server, until};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// 2024-09-24T00:00:00Z.
const START_S: i64 = 1_727_136_000;
const FIRST_NUDGE: &str = "act_3607a20a5c6e936874c9ec850d9ffaac";
const FIRST_VOUCHER: &str = "act_bb9282cf452742f1394a4bc3dcf9c8a8";
const FIRST_CONGRATULATION: &str = "act_cf48d82d6f6722789c3ea39c14362ba2";

/// A server whose clock shows September 2024, and a receiver of what it sends.
pub struct Example {
    pub home: Home,
    pub receiver: Receiver,
}

impl Example {
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right");
        let now = now.as_secs().to_string();
        let home = Home::with(&[
            ("clock.experiment", &format!("{START_S} at {now} times 1")),
            ("events.future_allowance_s", "86400"),
            ("campaigns.allow_private_addresses", "true"),
        ]);
        std::fs::write(home.path().join("secret"), SECRET).expect("a file can be written");
        Self { home, receiver: Receiver::start() }
    }

    /// Creates the destinations and the campaign, and waits until it decides.
    pub fn create(&self, server: &Client) {
        let secret = self.home.path().join("secret");
        for name in ["messages", "rewards"] {
            let destination = json!({
                "name": name, "url": self.receiver.url(&format!("/{name}")), "secretFile": secret,
            });
            server.post("/v1/destinations", &destination).expect(201);
        }
        server.post("/v1/campaigns", &campaign()).expect(201);
        wait_until_active(server, 7);
    }
}

/// Waits until the tallies of a campaign are filled from the log.
pub fn wait_until_active(server: &Client, id: u32) {
    until("the campaign decides", || {
        let found = server.get(&format!("/v1/campaigns/{id}")).expect(200);
        (found["status"] == "active").then_some(())
    });
}

pub fn campaign() -> Value {
    json!({
        "id": 7, "name": "mart_three_orders", "eventTypes": ["mart.order"],
        "subject": "data.user_id", "zone": "Asia/Singapore", "state": "active",
        "activeFrom": 1_727_020_800, "activeUntil": 1_728_230_400,
        "counts": { "orders": {
            "filter": { "operator": "eq", "lhs": "var.status", "rhs": "completed" },
            "window": "campaign",
        } },
        "rule": { "operator": "eq", "lhs": "var.country", "rhs": "sg" },
        "steps": [
            { "name": "nudge", "when": { "operator": "reaches", "lhs": "count.orders", "rhs": 2 },
              "actions": [
                { "name": "msg", "kind": "message", "to": "messages", "template": "one_more" },
            ] },
            { "name": "reward", "when": { "operator": "reaches", "lhs": "count.orders", "rhs": 3 },
              "actions": [
                { "name": "voucher", "kind": "reward", "to": "rewards", "reward": "MART5",
                  "cost": { "budget": "vouchers", "amount": 500 } },
                { "name": "msg", "kind": "message", "to": "messages", "template": "congrats" },
            ] },
        ],
        "limits": [{ "step": "reward", "per": "subject", "max": 1, "period": "campaign" }],
        "budgets": { "vouchers": { "unit": "SGD_cents", "max": 1_000, "period": "campaign" } },
        "templates": {
            "one_more": { "en": "Make one more order to earn a reward" },
            "congrats": { "en": "Congratulations, {{ subject }}!" },
        },
        "owner": "mart", "description": "",
    })
}

/// The events of the example: the number of each is also its hour.
pub fn orders() -> Vec<Value> {
    let order = |hour: usize, id: &str, user: &str, status: &str| {
        json!({
            "specversion": "1.0", "id": id, "source": "mart", "type": "mart.order",
            "time": format!("2024-09-24T{hour:02}:00:00Z"),
            "data": { "user_id": user, "status": status, "country": "sg" },
        })
    };

    let mut orders = vec![
        order(0, "o-1", "u-7", "completed"),
        order(0, "o-1", "u-7", "completed"),
        order(2, "o-2", "u-7", "cancelled"),
        order(3, "o-3", "u-7", "completed"),
        order(4, "o-4", "u-7", "completed"),
        order(5, "o-5", "u-7", "completed"),
    ];
    for hour in 6..12 {
        let user = if hour < 9 { "u-8" } else { "u-9" };
        orders.push(order(hour, &format!("o-{hour}"), user, "completed"));
    }
    orders
}

fn decide(server: &Client, order: &Value) -> Value {
    server.lines("/v1/events?wait=decided", std::slice::from_ref(order)).expect(200)
}

/// The decisions about a subject, the oldest first, as step, action and outcome.
fn decisions_about(server: &Client, subject: &str) -> Vec<(String, String, String)> {
    let answer = server.get(&format!("/v1/decisions?campaign=7&subject={subject}")).expect(200);
    let mut decisions = answer["decisions"].as_array().expect("a list").clone();
    decisions.sort_by_key(|decision| decision["eventTime"].to_string());
    let text = |decision: &Value, name: &str| decision[name].as_str().unwrap_or("-").to_owned();
    let mut found: Vec<_> = decisions
        .iter()
        .map(|decision| {
            let action = format!("{}/{}", text(decision, "step"), text(decision, "name"));
            (text(decision, "event"), action, text(decision, "outcome"))
        })
        .collect();
    found.sort();
    found
}

/// Checks what must be true in the end, however the server fared.
fn check_end(example: &Example, server: &Client) {
    let decided = |subject: &str| {
        let found = decisions_about(server, subject);
        found.iter().map(|(event, action, outcome)| format!("{event} {action} {outcome}")).collect()
    };
    let [first, second, third]: [Vec<String>; 3] = ["u-7", "u-8", "u-9"].map(decided);
    assert_eq!(
        first,
        ["o-3 nudge/msg granted", "o-4 reward/msg granted", "o-4 reward/voucher granted"]
    );
    assert_eq!(
        second,
        ["o-7 nudge/msg granted", "o-8 reward/msg granted", "o-8 reward/voucher granted"]
    );
    assert_eq!(third[0], "o-10 nudge/msg granted");
    let refused = &third[1..];
    assert!(!refused.is_empty(), "{third:?}");
    assert!(refused.iter().all(|line| line.ends_with("budget_exhausted")), "{third:?}");

    let budgets = until("everything is delivered", || {
        let budgets = server.get("/v1/campaigns/7/budgets").expect(200);
        (budgets["budgets"][0]["spent"] == 1_000).then_some(budgets)
    });
    let budget = &budgets["budgets"][0];
    assert_eq!((&budget["name"], &budget["max"]), (&json!("vouchers"), &json!(1_000)));
    assert_eq!(budget["reserved"], 1_000);

    until("all messages are delivered", || (example.receiver.by_action().len() == 7).then_some(()));
    check_bodies(&example.receiver);
}

/// Each action has the same bytes on every attempt, and these.
fn check_bodies(receiver: &Receiver) {
    let received = receiver.by_action();
    assert_eq!(received.len(), 7, "{received:#?}");
    let nudge = &received[FIRST_NUDGE];
    assert_eq!(
        nudge.body,
        r#"{"type":"message.send","timestamp":"2024-09-24T03:00:00Z","data":{"action":"act_3607a20a5c6e936874c9ec850d9ffaac","campaign":7,"version":1,"step":"nudge","subject":"u-7","variant":null,"text":"Make one more order to earn a reward","event":{"source":"mart","id":"o-3","type":"mart.order","time":"2024-09-24T03:00:00Z"}}}"#
    );
    assert_eq!(nudge.path, "/messages");
    assert!(nudge.headers["webhook-signature"].starts_with("v1,"));
    assert_eq!(received[FIRST_VOUCHER].path, "/rewards");
    let congratulation: Value =
        serde_json::from_str(&received[FIRST_CONGRATULATION].body).expect("JSON");
    assert_eq!(congratulation["data"]["text"], "Congratulations, u-7!");

    let paths = |path: &str| received.values().filter(|found| found.path == path).count();
    assert_eq!((paths("/messages"), paths("/rewards")), (5, 2));
}

#[test]
fn the_third_order_is_rewarded_as_long_as_the_budget_lasts() {
    let example = Example::new();
    let server = example.home.start();
    example.create(&server);

    let receipts: Vec<_> = orders().iter().map(|order| decide(&server, order)).collect();
    assert_eq!((&receipts[0]["accepted"], &receipts[1]["duplicates"]), (&json!(1), &json!(1)));
    check_end(&example, &server);
    assert_eq!(example.receiver.received().len(), 7, "nothing is sent twice");

    // Why not: the second order was cancelled.
    let asked = json!({ "subject": "u-7", "event": { "source": "mart", "id": "o-2" } });
    let answer = explained(&server, &asked);
    assert_eq!(answer["code"], "step_false", "{answer}");
    let change = &answer["nearest"][0]["change"][0];
    assert_eq!(
        (&answer["nearest"][0]["step"], &change["lhs"], &change["is"], &change["wants"]),
        (&json!("nudge"), &json!("count.orders"), &json!(1), &json!("reaches 2")),
        "{answer}"
    );

    check_secrets(&server);
}

/// Explains at once, or by a job.
fn explained(server: &Client, asked: &Value) -> Value {
    let answer = server.post("/v1/campaigns/7/explain", asked);
    if answer.status == 200 {
        return answer.json();
    }
    let started = answer.expect(202);
    let path = format!("/v1/jobs/{}", started["id"].as_str().expect("a job"));
    until("the job has finished", || {
        let job = server.get(&path).expect(200);
        (job["status"] == "finished").then(|| job["result"].clone())
    })
}

/// The secret of a destination is in no answer, page or log.
fn check_secrets(server: &Server) {
    let paths = [
        "/v1/destinations",
        "/v1/destinations/messages",
        "/v1/destinations/messages/versions",
        "/v1/decisions",
        "/v1/actions?status=delivered",
        "/metrics",
    ];
    let texts = paths.map(|path| server.get(path).text());
    let probed = server.post("/v1/destinations/messages/probe", &Value::Null).text();
    for text in texts.iter().chain([&probed, &server.errors()]) {
        assert!(!text.contains(&SECRET[6..]), "{text}");
    }
}

#[test]
fn nothing_is_lost_or_done_twice_when_the_server_is_killed_after_every_event() {
    let example = Example::new();
    let mut server = example.home.start();
    example.create(&server);

    for order in orders() {
        decide(&server, &order);
        server.kill();
        server = example.home.start();
    }
    check_end(&example, &server);
}
