//! The self-audit.

use crate::world::{HOUR_S, START_S, World, data, order};
use raingauge_ports::campaigns::{
    Checkpoint, Commit, Decision, DecisionQuery, Ledger, LedgerReader,
};
use raingauge_replay::Error;
use raingauge_replay::request::AuditRequest;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_what_was_decided() {
    let world = World::with_example().await;
    let job = world.replay.audit("ann", AuditRequest::default()).await.expect("a job");
    let found = world.result(job).await;
    assert_eq!((&found["campaign"], &found["subjects"]), (&json!(7), &json!(3)));
    assert_eq!((&found["different"], &found["differences"]), (&json!(0), &json!([])), "{found}");
    // Three nudges and two rewards of two actions; the third reward depends on the budget.
    assert_eq!((&found["events"], &found["compared"]), (&json!(11), &json!(7)));
    assert_eq!(found["readNaively"], 8, "{found}");
    assert_eq!(json!(*world.replay.last_audit().expect("an audit")), found);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_does_not_follow_is_a_difference() {
    let world = World::with_example().await;
    // The next order of a user has a decision that nothing explains.
    world.clock.set_s(START_S + 20 * HOUR_S);
    world.append(&[order("o-6", &data("u-7", "completed"), 20)]).await;
    world.decided().await;
    let query = DecisionQuery { len_max: 1, ..DecisionQuery::default() };
    let known = world.ledger.decisions(query).await.expect("decisions").decisions.remove(0);
    world.worker.stop();
    let Checkpoint { epoch, position, log_ms, .. } = world.ledger.take_over().expect("taken over");
    let wrong = Decision {
        is_granted: false,
        subject: "u-7".to_owned(),
        event: "o-6".to_owned(),
        outcome: "limit_reached".to_owned(),
        decided_ms: log_ms,
        ..known
    };
    let decisions = vec![wrong];
    let commit = Commit { epoch, from: position, position, log_ms, decisions, ..Commit::default() };
    world.ledger.commit(commit).expect("committed");

    let request = AuditRequest { campaign: Some(7), seed: Some(1) };
    let job = world.replay.audit("ann", request).await.expect("a job");
    let found = world.result(job).await;
    assert_eq!(found["different"], 1, "{found}");
    let difference = &found["differences"][0];
    assert_eq!(difference["event"]["id"], "o-6");
    assert_eq!((&difference["subject"], &difference["replayed"]), (&json!("u-7"), &json!({})));
    assert_eq!(difference["naive"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_campaign_there_is_nothing_to_audit() {
    let world = World::new().await;
    let none = world.replay.audit("ann", AuditRequest::default()).await;
    assert!(matches!(none, Err(Error::Invalid(_))));
    let unknown = AuditRequest { campaign: Some(9), seed: None };
    let unknown = world.replay.audit("ann", unknown).await;
    assert!(matches!(unknown, Err(Error::UnknownCampaign(9))));
}
