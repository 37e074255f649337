//! Guarded rollouts: begun on the page of the cache, watched over all instances, ended by
//! themselves or by someone.

use crate::browser::Browser;
use crate::world::{NOW_S, Page, World};
use axum::http::StatusCode;
use raingauge_core::access::Role;
use raingauge_policy::cache::{Policy, Strategy};
use raingauge_policy::rollout::{End, Limits, Phase, Plan, Rollout};
use raingauge_ports::instances::{Instance, Instances as _};
use raingauge_ports::people::{Entry, Filter};
use raingauge_ports::rollouts::{Rollouts as _, Run};
use serde_json::{Value, json};

/// Half a minute for each step: six beats.
const PLAN: [(&str, &str); 11] = [
    ("to", "none"),
    ("shares", "50, 100"),
    ("hold", "0.5"),
    ("canary", "0"),
    ("p99-times", "2"),
    ("p99-free", "20"),
    ("failed", "0.1"),
    ("store-times", "4"),
    ("breakers", "0"),
    ("batches", "100"),
    ("why", "try <b>none</b>"),
];
/// More than any rollout of these tests takes.
const BEATS_MAX: i64 = 60;

/// A service that is asked 100 batches a beat.
struct Service<'a> {
    world: &'a World,
    beats: i64,
    quick: u64,
    slow: u64,
    breakers: u64,
}

impl<'a> Service<'a> {
    async fn new(world: &'a World) -> Self {
        let mut service = Self { world, beats: 0, quick: 0, slow: 0, breakers: 0 };
        service.beat(0).await;
        service
    }

    /// Lets five seconds go by in which this share of the batches was slow.
    async fn beat(&mut self, slow: u64) {
        self.beats += 1;
        (self.quick, self.slow) = (self.quick + 100 - slow, self.slow + slow);
        *self.world.metrics.lock() = self.metrics();
        self.world.clock.set_s(NOW_S + self.beats * 5);
        self.world.portal.operations.watch.announce().await;
        self.world.portal.operations.watch.listen().await;
        self.world.portal.operations.rollouts.beat().await;
    }

    fn metrics(&self) -> String {
        let all = self.quick + self.slow;
        let bucket = |le: &str, count: u64| {
            format!(
                "raingauge_http_request_seconds_bucket{{route=\"/v1/counts\",le=\"{le}\"}} {count}\n"
            )
        };

        format!(
            "raingauge_range_counts_total {}\nraingauge_cql_read_requests_total {all}\n\
             raingauge_breaker_transitions_total{{engine=\"bucket_store\",to=\"open\"}} {}\n\
             raingauge_http_request_seconds_sum{{route=\"/v1/counts\"}} {}\n{}{}{}",
            all * 10,
            self.breakers,
            all as f64 * 0.004,
            bucket("0.004", self.quick),
            bucket("0.5", all),
            bucket("+Inf", all),
        )
    }

    async fn run(&self) -> Run {
        self.world.rollouts.list(1).await.unwrap().remove(0)
    }

    /// Beats until this number of stages is over, or the rollout is.
    async fn pass(&mut self, stages: usize, slow: u64) {
        while self.beats < BEATS_MAX && self.run().await.rollout.watched.len() < stages {
            self.beat(slow).await;
        }
        assert!(self.beats < BEATS_MAX, "{:?}", self.run().await);
    }

    async fn policy(&self) -> (u32, String) {
        let current = self.world.portal.counters.cache_policy().await.unwrap();
        (current.version, current.policy.choice.to_string())
    }
}

/// A page as it reads.
async fn page(world: &World) -> Page {
    world.get("/system/cache").await
}

async fn begin(world: &World) {
    world.post("/system/cache/rollouts", &PLAN).await.leads_to("/system/cache?note=rollout-begun");
}

#[tokio::test]
async fn a_rollout_begins_runs_and_finishes() {
    let world = World::new();
    page(&world)
        .await
        .shows("Start the rollout")
        .shows("value=\"5, 25, 35, 75, 100\"")
        .lacks("Earlier rollouts");

    let mut service = Service::new(&world).await;
    begin(&world).await;
    service.beat(0).await;

    let before = page(&world).await;
    before
        .shows("Stage 1 of 3")
        .shows("5 s of 30 s are over, 25 s remain")
        .shows("There is nothing to compare with yet");
    before.shows("try &lt;b&gt;none&lt;/b&gt;").shows("every 5s").lacks("Start the rollout");
    service.pass(1, 0).await;
    page(&world)
        .await
        .shows("Stage 2 of 3: 50 of 100 counters")
        .shows("every process follows it within seconds");
    assert_eq!(service.policy().await, (1, "none where id % 100 < 50; otherwise live".to_owned()));
    assert_eq!(world.portal.operations.policies.choice().strategy_of(7), Strategy::None);
    service.beat(0).await;
    service.beat(0).await;

    let step = page(&world).await;
    step.lacks("Set the policy").shows("To set a policy by hand, stop the rollout first");
    step.shows("4.0 ms")
        .shows("20.0 ms")
        .shows("0.10")
        .shows("6.00")
        .shows("holds")
        .lacks("broken");
    service.pass(3, 0).await;
    assert_eq!(service.policy().await, (2, "none".to_owned()));

    let after = page(&world).await;
    after
        .shows("none answers all counters, and every limit held")
        .shows("Earlier rollouts")
        .shows("finished");
    after
        .shows("Rollout 1: none for 50 % of the counters")
        .shows("Start the rollout")
        .lacks("every 5s");

    let report = world.get("/system/cache/rollouts/1").await;
    report
        .is(StatusCode::OK)
        .shows("held")
        .shows("50 %")
        .shows("200")
        .shows("2 times the earlier one")
        .lacks("not reached");

    let told = world.get("/system/cache/rollouts/1/report.json").await;
    let told: Value = serde_json::from_str(&told.text).unwrap();
    assert_eq!(
        (&told["phase"]["end"], &told["startedBy"]),
        (&json!("finished"), &json!("anonymous"))
    );
    assert_eq!(told["watched"].as_array().map(Vec::len), Some(3));

    // It holds already.
    let again = world.post("/system/cache/rollouts", &PLAN).await;
    again.is(StatusCode::UNPROCESSABLE_ENTITY).shows("All counters are answered by `none` already");
}

#[tokio::test]
async fn a_broken_limit_rolls_back() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    begin(&world).await;
    service.pass(1, 0).await;
    service.beat(0).await;

    // Five of a hundred batches take up to half a second.
    service.pass(2, 5).await;
    let run = service.run().await;
    assert_eq!((run.rollout.end(), run.ended_at.is_some()), (Some(End::Broken), true));
    assert_eq!(service.policy().await, (2, "live".to_owned()));

    let page = page(&world).await;
    page.shows("was rolled back automatically: the 99th percentile is")
        .shows("Rollout 1: rolled back: the 99th percentile");
    world
        .get("/system/cache/rollouts/1")
        .await
        .shows("broken")
        .shows("not reached")
        .shows("rolled back");

    world.post("/system/cache/rollouts", &PLAN).await.leads_to("/system/cache?note=rollout-begun");
    service.pass(1, 0).await;
    service.beat(0).await;
    service.breakers += 1;
    service.beat(0).await;

    let page = world.get("/system/cache").await;
    page.shows(
        "Rollout 2 of none was rolled back automatically: 1 circuit breakers opened, above 0",
    );
    assert_eq!(service.policy().await, (4, "live".to_owned()));
}

/// The newest entries as lines, oldest first.
async fn written(world: &World) -> Vec<String> {
    let entries = world.people.entries(Filter::default()).await.unwrap();
    let line = |entry: &Entry| {
        format!("{} {} {} {} {}", entry.who, entry.verb, entry.object, entry.outcome, entry.details)
    };
    entries.iter().rev().map(line).collect()
}

#[tokio::test]
async fn a_person_goes_on_another_stops_and_both_are_recorded() {
    let world = World::closed();
    let mut zoe = world.signed_in("zoe", Role::Admin).await;
    let mut max: Browser<'_> = world.signed_in("max", Role::Editor).await;
    let mut service = Service::new(&world).await;

    zoe.post("/system/cache/rollouts", &PLAN).await.leads_to("/system/cache?note=rollout-begun");
    zoe.post("/system/cache/rollouts", &PLAN)
        .await
        .is(StatusCode::CONFLICT)
        .shows("rollout 1 is running");

    // There is nothing yet that a step could be compared with.
    zoe.post("/system/cache/rollouts/1/go-on", &[])
        .await
        .is(StatusCode::CONFLICT)
        .shows("too little was asked");
    service.beat(0).await;
    zoe.post("/system/cache/rollouts/1/go-on", &[])
        .await
        .leads_to("/system/cache?note=rollout-goes-on");
    assert_eq!(service.policy().await.0, 1);
    max.get("/system/cache")
        .await
        .shows("cut short by zoe")
        .lacks("Stop and roll back")
        .lacks("Start the rollout");
    max.post("/system/cache/rollouts/1/stop", &[]).await.is(StatusCode::FORBIDDEN);
    zoe.get("/system/cache").await.shows("Stop and roll back");
    zoe.post("/system/cache/rollouts/1/stop", &[])
        .await
        .leads_to("/system/cache?note=rollout-stopped");
    assert_eq!(service.policy().await, (2, "live".to_owned()));
    max.get("/system/cache").await.shows("of none has ended: zoe stopped it").shows("Report 1");
    zoe.post("/system/cache/rollouts/1/stop", &[])
        .await
        .is(StatusCode::CONFLICT)
        .shows("has ended already");
    zoe.post("/system/cache/rollouts/9/stop", &[]).await.is(StatusCode::NOT_FOUND);

    let plan = r#"{"canaryS":0.0,"holdS":30.0,"limits":{"batchesMin":100.0,"breakers":0.0,"failedShare":0.001,"p99FreeMs":20.0,"p99Times":2.0,"storeTimes":4.0},"reason":"try <b>none</b>","shares":[50,100],"to":"none"}"#;
    let expected = [
        format!("zoe rollout.begin rollout 1 done {plan}"),
        "zoe rollout.begin rollout refused_409 {}".to_owned(),
        "zoe rollout.go_on rollout 1 refused_409 {}".to_owned(),
        r#"zoe rollout.go_on rollout 1 done {"watched":"before"}"#.to_owned(),
        "max rollout.stop rollout 1 refused_403 {}".to_owned(),
        r#"zoe rollout.stop rollout 1 done {"watched":"before"}"#.to_owned(),
        "zoe rollout.stop rollout 1 refused_409 {}".to_owned(),
        "zoe rollout.stop rollout 9 refused_404 {}".to_owned(),
    ];
    assert_eq!(written(&world).await, expected);
}

#[tokio::test]
async fn a_policy_that_a_person_sets_ends_it_and_stays() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    begin(&world).await;
    service.pass(1, 0).await;
    let fields = [("version", "1"), ("strategy", "phased"), ("reason", "no, this")];
    world.post("/system/cache", &fields).await.leads_to("/system/cache?note=policy-set");
    service.beat(0).await;
    assert_eq!(service.policy().await, (2, "phased".to_owned()));
    page(&world)
        .await
        .shows("of none has ended: anonymous set version 2 of the policy, which stays");
}

#[tokio::test]
async fn who_goes_back_by_hand_ends_it_too() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    begin(&world).await;
    service.pass(1, 0).await;
    world
        .post("/system/cache/back", &[("version", "1"), ("to", "0")])
        .await
        .leads_to("/system/cache?note=policy-back");
    service.beat(0).await;

    assert_eq!(
        (service.run().await.rollout.end(), service.policy().await.0),
        (Some(End::Overruled), 2)
    );
}

/// A rollout that another portal conducts, in its first step; that it was set is noted or not.
async fn of_another(world: &World, is_noted: bool) -> Run {
    let shares = vec![50, 100];
    let limits = Limits::DEFAULT;
    let plan = Plan { to: Strategy::None, shares, canary_s: 0.0, hold_s: 30.0, limits };
    let mut rollout = Rollout::new(plan, Policy::default(), 0, NOW_S * 1_000);
    let grown =
        raingauge_policy::rollout::Tally { batches: 500.0, counts: 5_000.0, ..Default::default() };

    rollout.beat(NOW_S * 1_000 + 30_000, &grown, Vec::new());
    let order = rollout.order().expect("the first step");
    let counters = &world.portal.counters;
    let set = counters.set_cache_policy(order.policy, Some(0), "zoe", &order.reason).await.unwrap();

    world.portal.operations.policies.set(&set.policy);

    if is_noted {
        rollout.ordered(set.version, NOW_S * 1_000 + 30_000);
    }
    let run = Run {
        id: 0,
        revision: 0,
        started_at: NOW_S,
        started_by: "zoe".to_owned(),
        reason: "try it".to_owned(),
        ended_at: None,
        conductor: "another".to_owned(),
        rollout,
    };
    world.rollouts.begin(run).await.unwrap()
}

#[tokio::test]
async fn a_rollout_whose_portal_died_is_reported_and_taken_over() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    let begun = of_another(&world, true).await;

    for _ in 0..6 {
        service.beat(0).await;
        let run = service.run().await;
        assert_eq!((run.revision, run.conductor.as_str()), (1, "another"), "it may only be slow");
    }

    let page = world.get("/system/cache").await;
    page.shows("The portal that conducted this rollout is gone: the rollout is not observed");
    page.shows("id % 100 &lt; 50").shows("Stop and roll back");
    service.beat(0).await;

    let run = service.run().await;
    assert_eq!((run.id, run.rollout.interruptions), (begun.id, 1));
    assert_eq!(run.conductor, world.portal.operations.watch.id());
    world.get("/system/cache").await.shows("was interrupted once; the open window started again");
    service.pass(3, 0).await;
    assert_eq!(service.policy().await, (2, "none".to_owned()));
}

#[tokio::test]
async fn a_portal_that_died_behind_its_order_set_it_once() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    of_another(&world, false).await;
    while service.run().await.conductor == "another" {
        service.beat(0).await;
    }
    assert_eq!(service.policy().await, (1, "none where id % 100 < 50; otherwise live".to_owned()));
    service.pass(3, 0).await;
    assert_eq!(
        (service.run().await.rollout.end(), service.policy().await.0),
        (Some(End::Finished), 2)
    );
}

#[tokio::test]
async fn a_conductor_that_goes_on_is_left_alone_and_a_wish_holds_at_once() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    of_another(&world, true).await;

    for _ in 0..12 {
        service.beat(0).await;

        // The other one beats too.
        let run = service.run().await;
        assert_eq!(run.conductor, "another");
        world.rollouts.replace(run).await.unwrap();
    }

    world
        .post("/system/cache/rollouts/1/stop", &[])
        .await
        .leads_to("/system/cache?note=rollout-stopped");
    assert_eq!(service.policy().await, (2, "live".to_owned()));
    assert_eq!(service.run().await.rollout.end(), Some(End::Stopped));
}

/// What another reader announces: how it caches, and how many batches it has answered, all of them
/// slowly.
async fn announce(service: &Service<'_>, choice: &Value, batches: u64) {
    let at_s = NOW_S + (service.beats + 1) * 5;
    let latency = json!({ "0.005": 0, "0.5": batches, "+Inf": batches });
    let values = json!({ "raingauge_range_counts_total": { "": batches * 10 },
        "raingauge_http_request_seconds_bucket": latency });
    let instance = Instance {
        id: "0123456789".to_owned(),
        name: "reader-2".to_owned(),
        roles: vec!["reader".to_owned()],
        version: "0.0.1".to_owned(),
        address: "10.0.0.2:8080".to_owned(),
        started_s: NOW_S,
        seen_s: at_s,
        measures: json!({ "atMs": at_s * 1_000, "values": values, "choice": choice }).to_string(),
    };

    service.world.instances.announce(instance).await.unwrap();
}

#[tokio::test]
async fn every_reader_is_watched_and_has_to_follow() {
    let world = World::new();
    let mut service = Service::new(&world).await;
    begin(&world).await;

    let old = json!({ "strategy": "live" });
    let new = json!({ "strategy": "live", "rollout": [{ "strategy": "none", "modulo": 100, "below": 50 }] });

    while service.run().await.rollout.watched.is_empty() {
        announce(&service, &old, 0).await;
        service.beat(0).await;
    }

    announce(&service, &old, 0).await;
    service.beat(0).await;
    page(&world).await.shows("Still missing: reader-2 (012345)");
    announce(&service, &new, 0).await;
    service.beat(0).await;
    assert!(matches!(service.run().await.rollout.phase, Phase::Watching { .. }));

    // What the other reader is slow at counts as much as what this process is.
    for batches in [100, 200] {
        announce(&service, &new, batches).await;
        service.beat(0).await;
    }

    assert_eq!(service.run().await.rollout.end(), Some(End::Broken));
}

#[tokio::test]
async fn what_makes_no_sense_does_not_begin_and_is_kept_in_the_form() {
    let world = World::new();
    for (name, text) in
        [("shares", "50, 20"), ("hold", "soon"), ("p99-times", "-1"), ("to", "fast"), ("why", "")]
    {
        let mut plan = PLAN;
        plan.iter_mut().filter(|(known, _)| *known == name).for_each(|field| field.1 = text);
        let page = world.post("/system/cache/rollouts", &plan).await;
        page.is(StatusCode::UNPROCESSABLE_ENTITY).shows("class=\"problem\"").shows("value=\"0.1\"");
    }

    assert_eq!(world.rollouts.list(9).await.unwrap(), []);
    assert_eq!(world.get("/system/cache/rollouts/1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        world.get("/system/cache/rollouts/1/report.json").await.status,
        StatusCode::NOT_FOUND
    );
}
