//! The ladder of *why not*, rung by rung.

use crate::world::{HOUR_S, START_S, World, data, mart, order};
use raingauge_core::event::Event;
use raingauge_ports::campaigns::{DecisionQuery, LedgerReader, Outbox, Settled, Settlement};
use raingauge_replay::request::ExplainRequest;
use raingauge_replay::{Error, Explained};
use serde_json::{Value as Json, json};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_decided_is_replayed() {
    let world = World::with_example().await;
    let found = world.explain("u-7", Some("o-2")).await;
    assert_eq!(
        (&found["code"], &found["campaign"], &found["version"], &found["how"]),
        (&json!("step_false"), &json!(7), &json!(1), &json!("replayed")),
        "{found}"
    );
    assert_eq!(found["event"], json!({"source": "mart", "id": "o-2"}));
    assert_eq!(
        found["trace"],
        json!([
            {"leaf": "rule: var.country eq sg", "is": "sg", "holds": true},
            {"leaf": "nudge: count.orders reaches 2", "before": 1, "after": 1, "holds": false},
            {"leaf": "reward: count.orders reaches 3", "before": 1, "after": 1, "holds": false}])
    );
    assert_eq!(
        found["nearest"][0],
        json!({"step": "nudge", "change": [{"lhs": "count.orders", "is": 1, "wants": "reaches 2"}]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_has_its_evidence_and_delivery() {
    let world = World::with_example().await;
    let found = world.explain("u-7", Some("o-3")).await;
    assert_eq!((&found["code"], &found["how"]), (&json!("delayed"), &json!("stored")), "{found}");
    assert_eq!(found["trace"][1]["after"], 2);
    let decision = &found["decisions"][0];
    assert_eq!(decision["action"], "act_3607a20a5c6e936874c9ec850d9ffaac");
    assert_eq!(decision["delivery"]["destination"], "messages");

    // One delivery is retried, one is accepted and one is dead.
    let now_ms = (START_S + 12 * HOUR_S) * 1_000;
    let settle = async |destination: &str, settlements: &[Settlement]| {
        let taken = world.ledger.take(destination, now_ms, 10).await.expect("taken");
        let settled = taken.iter().zip(settlements).map(|(delivery, settlement)| Settled {
            action: delivery.action,
            at_ms: now_ms,
            settlement: *settlement,
            note: "503".to_owned(),
        });
        world.ledger.settle(settled.collect()).await.expect("settled");
    };
    settle("rewards", &[Settlement::Dead, Settlement::Delivered]).await;
    settle("messages", &[Settlement::Retry { next_ms: now_ms + 1 }]).await;

    assert_eq!(world.explain("u-7", Some("o-3")).await["code"], "retrying");
    let codes = async |id: &str, user: &str| {
        let found = world.explain(user, Some(id)).await;
        let voucher = &found["decisions"][1];
        assert_eq!(
            (&voucher["name"], &voucher["delivery"]["note"]),
            (&json!("voucher"), &json!("503"))
        );
        (found["code"].clone(), voucher["code"].clone())
    };
    // What went wrong comes first, then what is still to come, then what is done.
    assert_eq!(codes("o-4", "u-7").await, (json!("dead"), json!("dead")));
    assert_eq!(codes("p-3", "u-8").await, (json!("delayed"), json!("delivered")));

    let refused = world.explain("u-9", Some("q-3")).await;
    assert_eq!((&refused["code"], &refused["how"]), (&json!("budget_exhausted"), &json!("stored")));
    assert_eq!(refused["decisions"][0]["gate"]["budget"], "vouchers");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rung_has_its_code() {
    let world = World::with_example().await;
    let code = async |user: &str, id: &str| world.explain(user, Some(id)).await["code"].clone();
    assert_eq!(code("u-7", "o-99").await, "not_received");
    assert_eq!(code("u-8", "o-2").await, "no_subject");

    let hour = 20;
    world.clock.set_s(START_S + hour * HOUR_S);
    let other = json!({"user_id": "u-7", "status": "completed", "country": "my"}).to_string();
    let completed = data("u-7", "completed");
    let late = order("late", &completed, -10);
    let foreign = Event { kind: "mart.visit".into(), ..order("visit", &completed, hour) };
    world.append(&[order("abroad", &other, hour), late, foreign]).await;
    world.append(&[order("nobody", "{}", hour)]).await;
    world.decided().await;
    assert_eq!(code("u-7", "abroad").await, "rule_false");
    assert_eq!(code("u-7", "late").await, "too_late");
    assert_eq!(code("u-7", "visit").await, "no_listener");
    assert_eq!(code("u-7", "nobody").await, "no_subject");

    let mut paused = mart();
    paused["state"] = json!("paused");
    world.save_campaign(&paused).await;
    world.append(&[order("rests", &completed, hour)]).await;
    world.save_campaign(&mart()).await;
    world.append(&[order("acts", &completed, hour)]).await;
    let mut over = mart();
    over["activeUntil"] = json!(START_S + HOUR_S);
    world.save_campaign(&over).await;
    world.append(&[order("outside", &completed, hour)]).await;
    world.decided().await;
    let paused = world.explain("u-7", Some("rests")).await;
    assert_eq!((&paused["code"], &paused["version"]), (&json!("paused"), &json!(2)));
    // It was counted while the campaign rested.
    let acts = world.explain("u-7", Some("acts")).await;
    assert_eq!((&acts["code"], &acts["version"]), (&json!("step_false"), &json!(3)), "{acts}");
    assert_eq!(acts["nearest"][0]["change"][0]["is"], 8);
    assert_eq!(code("u-7", "outside").await, "outside_activity");
}

/// The log has dropped the second `o-1` of the example, which was an hour younger.
#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_explained_by_the_first_of_its_name() {
    let world = World::with_example().await;
    let named = |id: &str, time: &str| json!({"source": "mart", "id": id, "time": time});
    let found = world.explain_named("u-7", named("o-1", "2024-09-24T01:00:00Z")).await;
    assert_eq!((&found["code"], &found["how"]), (&json!("duplicate"), &json!("replayed")));
    assert_eq!(
        found["first"],
        json!({"eventTime": "2024-09-24T00:00:00Z", "offset": 1,
               "receivedAt": "2024-09-24T00:00:00Z"})
    );
    let first = world.explain_named("u-7", named("o-1", "2024-09-24T00:00:00Z")).await;
    assert_eq!((&first["code"], &first["first"]), (&json!("step_false"), &Json::Null));
    let unknown = world.explain_named("u-7", named("o-99", "2024-09-24T00:00:00Z")).await;
    assert_eq!(unknown["code"], "not_received");

    // Something was decided on the first, so the log need not be read.
    let found = world.explain_named("u-7", named("o-3", "2024-09-24T09:00:00Z")).await;
    assert_eq!((&found["code"], &found["how"]), (&json!("duplicate"), &json!("stored")));
    assert_eq!(
        found["first"],
        json!({"eventTime": "2024-09-24T03:00:00Z", "decidedAt": "2024-09-24T03:00:00Z"})
    );
    let first = world.explain_named("u-7", named("o-3", "2024-09-24T03:00:00Z")).await;
    assert_eq!((&first["code"], &first["how"]), (&json!("delayed"), &json!("stored")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_again_after_the_window_is_a_duplicate() {
    let world = World::new().await;
    let mut each = mart();
    each["steps"] = json!([{"name": "nudge",
        "actions": [{"name": "msg", "kind": "message", "to": "messages", "template": "one_more"}]}]);
    each["limits"] = json!([]);
    world.save_campaign(&each).await;
    let completed = data("u-7", "completed");
    world.append(&[order("o-1", &completed, 0)]).await;
    world.decided().await;
    world.clock.set_s(START_S + HOUR_S);
    world.append_again(&order("o-1", &completed, 0)).await;
    world.decided().await;
    assert_eq!(world.decisions().await.len(), 1);

    let found = world.explain("u-7", None).await;
    assert_eq!((&found["code"], &found["how"]), (&json!("duplicate"), &json!("replayed")));
    let first = json!({"eventTime": "2024-09-24T00:00:00Z", "offset": 1,
                       "receivedAt": "2024-09-24T00:00:00Z"});
    assert_eq!(found["first"], first);
    let codes: Vec<&Json> =
        found["events"].as_array().expect("events").iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["duplicate", "granted"]);
    assert_eq!(found["events"][0]["first"], first);

    // By its name alone, it is the first one that is meant.
    assert_eq!(world.explain("u-7", Some("o-1")).await["code"], "delayed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_that_came_later_did_not_decide() {
    let world = World::new().await;
    let completed = data("u-7", "completed");
    world.append(&[order("before", &completed, 0)]).await;
    world.clock.set_s(START_S + HOUR_S);
    world.save_campaign(&mart()).await;
    world.append(&[order("second", &completed, 1)]).await;
    world.decided().await;

    let before = world.explain("u-7", Some("before")).await;
    assert_eq!((&before["code"], &before["version"]), (&json!("outside_activity"), &Json::Null));
    // The earlier order counts: the campaign was active then.
    let second = world.explain("u-7", Some("second")).await;
    assert_eq!(
        (&second["code"], &second["how"]),
        (&json!("delayed"), &json!("stored")),
        "{second}"
    );
}

/// An event that arrives while counts are being filled counts, and decides nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_while_counts_are_filled_met_a_warming_campaign() {
    let world = World::new().await;
    let completed = data("u-7", "completed");
    world.append(&[order("first", &completed, 0)]).await;
    world.decided().await;

    // The worker finds the campaign and the second order together, so it cannot have filled the
    // counts before that order.
    let stop = world.worker.clone();
    tokio::task::spawn_blocking(move || stop.stop()).await.expect("stopped");
    world.clock.set_s(START_S + HOUR_S);
    world.store("campaign", "7", mart()).await;
    world.append(&[order("second", &completed, 1)]).await;
    let world = world.restarted().await;
    world.decided().await;
    world.warmed().await;

    let found = world.explain("u-7", Some("second")).await;
    assert_eq!(
        (&found["code"], &found["version"], &found["how"]),
        (&json!("warming"), &json!(1), &json!("replayed")),
        "{found}"
    );
    assert_eq!(found["detail"], "nothing was decided: its counts were still filled from the log");
    assert_eq!(found["trace"][1]["after"], 2, "the nudge would have been granted");
    assert_eq!((&found["nearest"][0]["step"], &found["decisions"]), (&json!("reward"), &json!([])));
    assert!(world.decisions().await.is_empty());

    // Both orders were counted: the next one is the third.
    world.append(&[order("third", &completed, 2)]).await;
    world.decided().await;
    let third = world.explain("u-7", Some("third")).await;
    assert_eq!((&third["code"], &third["how"]), (&json!("delayed"), &json!("stored")), "{third}");
    assert_eq!(third["decisions"][0]["step"], "reward");
    let newest = world.explain("u-7", None).await;
    let codes: Vec<&Json> =
        newest["events"].as_array().expect("events").iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["granted", "warming"], "{newest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_event_the_newest_ones_are_explained() {
    let world = World::with_example().await;
    let found = world.explain("u-7", None).await;
    assert_eq!((&found["event"]["id"], &found["code"]), (&json!("o-5"), &json!("step_false")));
    let ids: Vec<&Json> =
        found["events"].as_array().expect("events").iter().map(|one| &one["event"]["id"]).collect();
    assert_eq!(ids, ["o-5", "o-4", "o-3", "o-2", "o-1"]);

    // The newest event of this user was refused.
    let found = world.explain("u-9", None).await;
    assert_eq!((&found["code"], &found["how"]), (&json!("budget_exhausted"), &json!("stored")));
    assert_eq!(world.explain("u-77", None).await["code"], "not_received");

    let request = ExplainRequest { subject: "u-7".to_owned(), event: None };
    let unknown = world.replay.explain("ann", 99, request).await;
    assert!(matches!(unknown, Err(Error::UnknownCampaign(99))));
}

/// Stored explanations do not read the log.
#[tokio::test(flavor = "multi_thread")]
async fn every_stored_decision_is_explained_at_once() {
    let world = World::with_example().await;
    let query = DecisionQuery { len_max: 100, ..DecisionQuery::default() };
    let decisions = world.ledger.decisions(query).await.expect("decisions").decisions;
    assert_eq!(decisions.len(), 9);
    for decision in decisions {
        let event = json!({"source": decision.source, "id": decision.event});
        let request = json!({"subject": decision.subject, "event": event});
        let request = serde_json::from_value(request).expect("a request");
        let explained = world.replay.explain("ann", 7, request).await.expect("explained");
        assert!(matches!(explained, Explained::Now(found) if found.how == "stored"));
    }
    assert!(world.replay.jobs().list().is_empty());
}
