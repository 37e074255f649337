//! The two examples of the published description, through the real binary.

use super::{correct, create, member, verify};
use crate::client::{event, now_s};
use crate::server::{Home, until};
use crate::truth::demo;
use serde_json::{Value, json};

fn lunch(member: &str, country: &str, currency: &str, amount: u32) -> Value {
    let data = json!({
        "consumer_id": member, "order_id": format!("order-{member}"), "country": country,
        "vertical": "food", "currency": currency, "payment": "grabpay", "amount": amount,
    });
    event("order.completed", &format!("lunch-{member}"), now_s(), data)
}

#[test]
fn bob_gets_180_points_and_jane_60() {
    let home = Home::new();
    let server = home.start();
    let place = format!("http://{}", server.address);
    let file = demo("points.yaml");
    let applied =
        home.run(&["points", "programmes", "apply", "--json", "-f", &file, "--server", &place]);
    assert_eq!(applied.json()["programmes"][0]["action"], "created");

    for (name, tier) in [("bob", "platinum"), ("jane", "gold")] {
        let tier = json!({"kind": "tier", "programme": "rewards", "member": name, "tier": tier,
                          "key": format!("tier-{name}"), "reason": "the example"});
        assert_eq!(correct(&server, &tier)["tier"], tier["tier"]);
    }
    let lunches = [lunch("bob", "SG", "SGD", 15), lunch("jane", "ID", "IDR", 150_000)];
    let sent = server.lines("/v1/events?wait=awarded", &lunches).expect(200);
    assert_eq!(sent["accepted"], 2, "{sent}");

    assert_eq!(member(&server, "rewards", "bob")["available"], 180);
    assert_eq!(member(&server, "rewards", "jane")["available"], 60);

    // The same events again change nothing.
    let again = server.lines("/v1/events?wait=awarded", &lunches).expect(200);
    assert_eq!(again["duplicates"], 2, "{again}");
    let statement = server.get("/v1/points/rewards/members/bob/statement").expect(200);
    let rows = statement["rows"].as_array().expect("rows");
    assert_eq!((&rows[0]["kind"], &rows[0]["points"]), (&json!("earn"), &json!(180)), "{rows:?}");
    assert_eq!(rows[0]["balanceAfter"], 180);

    // Why he has them.
    let place = rows[0]["entry"].as_str().expect("a place").replace(':', "/");
    let entry = server.get(&format!("/v1/points/entries/{place}")).expect(200);
    let words = entry["explanation"].as_str().expect("words");
    assert!(words.contains("180") && words.contains("SG.food"), "{words}");

    // A restart after a kill has the same balance, and the books are sound.
    server.kill();
    let server = home.start();
    assert_eq!(member(&server, "rewards", "bob")["available"], 180);
    server.kill();
    let summary = verify(&home);
    assert!(summary["entries"].as_u64() >= Some(4), "{summary}");
}

#[test]
fn points_expire_by_the_clock_of_the_experiment() {
    // 2026-01-10T04:00:00Z, and a second is a day.
    let now = now_s();
    let mut home = Home::with(&[("clock.experiment", &format!("1768017600 at {now} times 1"))]);
    {
        let server = home.start();
        create(
            &server,
            &json!({
                "programme": "half-year", "timezone": "Asia/Singapore",
                "expiry": {"kind": "activity", "months": 6, "graceHours": 24},
                "rules": [{"id": 1, "name": "order", "eventType": "order", "member": "data.user",
                           "amount": "data.amount"}],
            }),
        );
        let order = json!({"specversion": "1.0", "id": "o-1", "source": "tests", "type": "order",
                           "time": "2026-01-10T03:00:00Z",
                           "data": {"user": "adam", "amount": 50}});
        server.lines("/v1/events?wait=awarded", &[order]).expect(200);
        let adam = member(&server, "half-year", "adam");
        assert_eq!((&adam["available"], &adam["expiresOn"]), (&json!(50), &json!("2026-07-31")));
        assert_eq!(adam["lots"], json!([{"points": 50, "expiresOn": "2026-07-31"}]));
        assert!(server.terminate().0.success());
    }

    // The last day is whole, and a day of grace follows.
    home.set("clock.experiment", &format!("1785513600 at {now} times 1"));
    {
        let server = home.start();
        assert_eq!(member(&server, "half-year", "adam")["available"], 50, "31 July, noon");
        assert!(server.terminate().0.success());
    }

    // Behind it, they are gone before any sweep has written that down.
    home.set("clock.experiment", &format!("1785729600 at {now} times 1"));
    let server = home.start();
    let adam = member(&server, "half-year", "adam");
    assert_eq!((&adam["available"], &adam["lots"]), (&json!(0), &json!([])));
    let before =
        server.get("/v1/points/half-year/members/adam?at=2026-02-01T00:00:00Z").expect(200);
    assert_eq!(before["available"], 50);
    let future = json!({ "until": "2099-01-01T00:00:00Z" });
    let refused = server.post("/v1/points/sweeps", &future).expect(422);
    assert_eq!(refused["code"], "time_in_future");
    server.post("/v1/points/sweeps", &json!({"until": 0})).expect(202);
    let begun = server.post("/v1/points/sweeps", &json!({})).expect(202);
    until("the sweep is finished", || {
        let listed = server.get("/v1/points/sweeps").expect(200);
        let mut sweeps = listed["sweeps"].as_array().expect("sweeps").clone().into_iter();
        sweeps.find(|sweep| sweep["id"] == begun["id"] && sweep["state"] == "finished")
    });
    let statement = server.get("/v1/points/half-year/members/adam/statement").expect(200);
    let rows = statement["rows"].as_array().expect("rows");
    assert_eq!((&rows[0]["kind"], &rows[0]["points"]), (&json!("expire"), &json!(-50)), "{rows:?}");
    assert!(rows[0]["sequence"].is_u64(), "the sweep has written it: {rows:?}");
    assert!(server.terminate().0.success());
}
