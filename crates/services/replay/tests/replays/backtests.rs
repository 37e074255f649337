//! What a backtest reports.

use crate::world::{HOUR_S, START_S, World, data, mart, order};
use serde_json::{Value as Json, json};

fn step<'j>(backtest: &'j Json, name: &str) -> &'j Json {
    let steps = backtest["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["step"] == name).unwrap_or_else(|| panic!("{backtest}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_is_replayed_from_the_log() {
    let world = World::with_example().await;
    let found =
        world.backtest(json!({"campaigns": [7], "by": ["var.country", "var.status"]})).await;

    let nudge = step(&found, "nudge");
    assert_eq!((&nudge["triggers"], &nudge["subjects"]), (&json!(3), &json!(3)));
    assert_eq!(nudge["spend"], json!({}));
    let reward = step(&found, "reward");
    assert_eq!(
        reward,
        &json!({
            "campaign": 7, "name": "mart_three_orders", "step": "reward",
            "triggers": 2, "subjects": 2, "byDay": [["2024-09-24", 2]],
            "spend": {"vouchers": 1000}, "exhausted": "2024-09-24T08:00:00Z", "forecast": null,
            "refused": {"budget_exhausted": 1, "limit_reached": 0},
            "by": {"var.country": {"sg": 2}, "var.status": {"completed": 2}},
            "topSubjects": [["u-7", 1], ["u-8", 1]],
            "covered": ["2024-09-24T00:00:00Z", "2024-09-24T11:00:00Z"], "sample": 1})
    );
    // The repetition never came into the log.
    assert_eq!((&found["events"], &found["late"]), (&json!(11), &json!(0)));
    let budget = &found["budgets"][0];
    assert_eq!(budget["spendByDay"], json!([["2024-09-24", 1000]]));
    assert_eq!((&budget["max"], &budget["reserved"]), (&json!(1000), &json!(1000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_include_what_came_before_the_range() {
    let world = World::with_example().await;
    let from = START_S + 4 * HOUR_S;
    let found =
        world.backtest(json!({"campaigns": [7], "fromTime": from, "toTime": from + HOUR_S})).await;
    assert_eq!(step(&found, "nudge")["triggers"], 0);
    assert_eq!(step(&found, "reward")["topSubjects"], json!([["u-7", 1]]));
    let covered = json!(["2024-09-24T04:00:00Z", "2024-09-24T04:00:00Z"]);
    assert_eq!(found["covered"], covered);
}

/// A campaign that is yet to begin is replayed as if the range were its activity.
#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_of_the_future_is_moved_to_the_range() {
    let world = World::with_example().await;
    let mut draft = mart();
    draft["id"] = json!(0);
    draft["state"] = json!("draft");
    draft["activeFrom"] = json!(START_S + 1_000 * HOUR_S);
    draft["activeUntil"] = json!(START_S + 2_000 * HOUR_S);
    let range = json!({"campaigns": [draft], "from": START_S, "to": "2024-09-24T05:30:00Z"});
    let found = world.backtest(range).await;
    let nudge = step(&found, "nudge");
    assert_eq!((&nudge["campaign"], &nudge["triggers"]), (&json!(0), &json!(1)));
    assert_eq!(nudge["activityMoved"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_events_decide_when_the_caller_says_so() {
    let world = World::new().await;
    world.clock.set_s(START_S + 40 * HOUR_S);
    let events = ["a", "b", "c"].map(|id| (id, data("u-7", "completed")));
    let events: Vec<_> = events.iter().map(|(id, data)| order(id, data, 1)).collect();
    world.append(&events).await;

    let found = world.backtest(json!({"campaigns": [mart()]})).await;
    assert_eq!((&found["late"], &step(&found, "reward")["triggers"]), (&json!(3), &json!(0)));
    let found = world.backtest(json!({"campaigns": [mart()], "ignoreLateness": true})).await;
    assert_eq!((&found["late"], &step(&found, "reward")["triggers"]), (&json!(0), &json!(1)));
}

/// A campaign of which every order is a trigger, and a budget that lasts.
fn every_order() -> Json {
    json!({
        "id": 8, "name": "every", "eventTypes": ["mart.order"], "subject": "data.user_id",
        "state": "active",
        "steps": [{"name": "points", "actions": [{"name": "p", "kind": "reward", "to": "r",
            "reward": "R", "cost": {"budget": "points", "amount": 10}}]}],
        "budgets": {"points": {"unit": "points", "max": 2_000}}})
}

async fn with_days(days: i64) -> World {
    let world = World::new().await;
    for day in 0..days {
        world.clock.set_s(START_S + day * 24 * HOUR_S);
        let texts: Vec<_> = (0..4)
            .map(|number| {
                (format!("{day}-{number}"), data(&format!("u-{}", day * 4 + number), "completed"))
            })
            .collect();
        let events: Vec<_> = texts.iter().map(|(id, data)| order(id, data, day * 24)).collect();
        world.append(&events).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_budget_is_forecast() {
    let world = with_days(20).await;
    let found = world.backtest(json!({"campaigns": [every_order()]})).await;
    let points = step(&found, "points");
    assert_eq!((&points["triggers"], &points["spend"]["points"]), (&json!(80), &json!(800)));
    // 1,200 are left at 40 a day: thirty days from 2024-10-13.
    let last = "2024-11-12";
    assert_eq!(points["forecast"], json!({"p10": last, "p50": last, "p90": last}));
    assert_eq!(points["exhausted"], Json::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_of_subjects_stands_for_all() {
    let world = with_days(100).await;
    let mut rich = every_order();
    rich["budgets"]["points"]["max"] = json!(1_000_000);
    let found = world.backtest(json!({"campaigns": [rich], "sample": 4})).await;
    let points = step(&found, "points");
    let triggers = points["triggers"].as_u64().expect("triggers");
    assert_eq!(points["subjects"], json!(triggers));
    assert!((300..500).contains(&triggers) && triggers.is_multiple_of(4), "{triggers}");
    let low = points["interval"][0].as_u64().expect("low");
    let high = points["interval"][1].as_u64().expect("high");
    assert!(low < 400 && 400 < high, "{points}");
    assert_eq!(points["spend"]["points"], json!(triggers * 10));
    assert_eq!(found["budgets"][0]["max"], json!(1_000_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn lookups_are_assumed_or_answered_by_tables() {
    let world = with_days(25).await;
    let with_rule = |lhs: &str, rhs: Json| {
        let mut campaign = every_order();
        campaign["rule"] = json!({"operator": "eq", "lhs": lhs, "rhs": rhs});
        campaign
    };

    let vips = with_rule("segment.vip", json!(true));
    let found = world.backtest(json!({"campaigns": [vips], "by": ["table.users.tier"]})).await;
    assert_eq!(step(&found, "points")["triggers"], 10);
    assert_eq!(step(&found, "points")["by"], json!({"table.users.tier": {"gold": 10}}));

    let risky = with_rule("http.risk.score", json!(9));
    let found = world.backtest(json!({"campaigns": [risky]})).await;
    assert_eq!(step(&found, "points")["triggers"], 0);
    assert_eq!(
        (&found["undecided"], &found["lookups"]["failed"]),
        (&json!({"8": 100}), &json!(100))
    );

    let share = json!({"share": 5_000, "then": {"score": 9}, "else": {"score": 1}});
    let request = json!({"campaigns": [risky], "lookups": {"http.risk": share}});
    let found = world.backtest(request.clone()).await;
    let triggers = step(&found, "points")["triggers"].as_u64().expect("triggers");
    assert!((30..70).contains(&triggers), "{triggers}");
    assert_eq!(world.backtest(request).await, found, "the share is drawn by hash");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_sends_events_as_lines() {
    let world = World::new().await;
    let request = json!({"campaigns": [every_order()], "source": "events"});
    let request = || {
        raingauge_replay::request::BacktestRequest::parse(request.to_string().as_bytes())
            .expect("a request")
    };
    let missing = world.replay.backtest("ann", request(), None);
    assert!(matches!(missing, Err(raingauge_replay::Error::Invalid(_))));

    let (feed, lines) = raingauge_replay::feed();
    let job = world.replay.backtest("ann", request(), Some(lines)).expect("a job");
    for number in 0..100 {
        let event = json!({"specversion": "1.0", "id": number.to_string(), "source": "mart",
            "type": "mart.order", "time": "2010-12-01T08:26:00Z", "data": {"user_id": number % 7}});
        assert!(feed.push(format!("{event}\n").into_bytes()).await);
    }
    drop(feed);
    let found = world.result(job).await;
    assert_eq!(step(&found, "points")["triggers"], 100);
    assert_eq!(step(&found, "points")["subjects"], 7);
    assert_eq!(step(&found, "points")["byDay"], json!([["2010-12-01", 100]]));

    let (feed, lines) = raingauge_replay::feed();
    let job = world.replay.backtest("ann", request(), Some(lines)).expect("a job");
    feed.push(b"\n{\"specversion\": \"1.0\"}\n".to_vec()).await;
    drop(feed);
    let job = world.ended(&job.id).await;
    assert!(job.error.expect("an error").starts_with("line 2 of the events:"));
}
