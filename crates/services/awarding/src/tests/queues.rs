use super::stage::{DAY_MS, HOUR_MS, START_MS, Stage, award, command, programme};
use raingauge_points::{Answer, Body, Command, Entry, Kind};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::points::{Letter, QueueControl, QueueName, Queues, Shelf};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// The dependency of a price is away: every event waits, and is awarded once when it is back.
#[test]
fn what_has_no_price_is_awarded_when_the_row_is_there() {
    let (stage, mut process) = Stage::with_programme();
    for number in 0..50 {
        stage.order(&format!("m-{number}"), "bob", "mart", 10);
        stage.order(&format!("f-{number}"), "eve", "food", 10);
    }
    stage.settle_down(&mut process);
    assert_eq!((stage.available(&process, "bob"), stage.available(&process, "eve")), (0, 2_000));
    assert_eq!(stage.depth(QueueName::Retry), (50, 0));

    let mut with_row = programme();
    with_row["tables"]["vertical"]["rows"]["SG.mart"] = json!(3);
    stage.save(with_row);
    for _ in 0..12 {
        stage.clock.advance(20 * 60_000);
        stage.settle_down(&mut process);
    }
    assert_eq!(stage.available(&process, "bob"), 50 * 60);
    assert_eq!(stage.depth(QueueName::Retry), (0, 0));
}

/// The position moves when the queue has what could not be awarded, and not before.
#[test]
fn the_position_waits_for_the_queue() {
    let (stage, mut process) = Stage::with_programme();
    let position = process.shared.snapshot().position;
    stage.order("o-1", "bob", "food", 15);
    stage.order("m-1", "bob", "mart", 15);
    // The turn is the first call, and the queue the second one.
    stage.fuse.arm(1, false);
    stage.turn(&mut process).unwrap();
    assert!(stage.fuse.has_blown());
    assert_eq!(process.shared.snapshot().position, position);
    assert!(process.shared.trouble().is_some());

    stage.fuse.replace();
    let mut process = stage.open();
    stage.turn(&mut process).unwrap();
    assert_eq!(process.shared.snapshot().position, position + 2);
    assert_eq!((stage.depth(QueueName::Retry), stage.available(&process, "bob")), ((1, 0), 60));
}

#[test]
fn an_event_without_a_price_is_dead_after_three_days() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("m-1", "bob", "mart", 10);
    for _ in 0..80 {
        stage.settle_down(&mut process);
        stage.clock.advance(HOUR_MS);
    }
    assert_eq!(stage.depth(QueueName::Retry), (0, 1));
    let peeked = stage.queues.peek(QueueName::Retry, Shelf::Dead, 10);
    let dead = &stage.runtime.block_on(peeked).unwrap()[0];
    let death = dead.death.as_ref().unwrap();
    assert_eq!(death.reason, "too_old");
    assert!(death.attempts > 40, "{death:?}");
    assert!(death.last_error.contains("vertical"), "{death:?}");
}

#[test]
fn what_is_malformed_is_dead_at_once() {
    let (stage, mut process) = Stage::with_programme();
    let letter = |body: &str| Letter { id: body.into(), body: body.into(), first_error: None };
    for queue in QueueName::ALL {
        let sent = stage.queues.send(queue, vec![letter("{}"), letter("x")], Duration::ZERO);
        stage.runtime.block_on(sent).unwrap();
    }
    let unknown = command("bob", "k-1", Body::Tier { tier: "wood".into(), until: None });
    let letters = vec![Letter::of_command(&unknown), Letter::of_command(&award("bob", "k-2", 7))];
    let sent = stage.queues.send(QueueName::Award, letters, Duration::ZERO);
    stage.runtime.block_on(sent).unwrap();
    stage.settle_down(&mut process);

    for queue in QueueName::ALL {
        let dead = if queue == QueueName::Award { 3 } else { 2 };
        assert_eq!(stage.depth(queue), (0, dead), "{queue:?}");
    }
    assert_eq!(stage.available(&process, "bob"), 7);
}

/// A refund may come before the order that it is about.
#[test]
fn a_refund_waits_for_its_order() {
    let (stage, mut process) = Stage::with_programme();
    let refund = json!({ "member": "bob", "order_id": "o-1", "amount": 15 });
    stage.send_at("r-1", "order.refunded", START_MS, &refund);
    stage.settle_down(&mut process);
    assert_eq!(stage.depth(QueueName::Retry), (1, 0));
    stage.order("o-1", "bob", "food", 15);
    stage.settle_down(&mut process);
    assert_eq!(stage.available(&process, "bob"), 60);
    stage.clock.advance(HOUR_MS);
    stage.settle_down(&mut process);
    assert_eq!(stage.available(&process, "bob"), 0);
    assert_eq!(stage.depth(QueueName::Retry), (0, 0));
}

#[test]
fn an_entry_is_published_once_with_what_the_member_has_then() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    stage.settle_down(&mut process);
    let burn = command("bob", "k-1", Body::Burn { points: 20 });
    stage.submit(&mut process, vec![burn]);
    stage.settle_down(&mut process);

    let published = stage.published();
    let lines: Vec<_> =
        published.iter().map(|(id, kind, _)| (id.as_str(), kind.as_str())).collect();
    let expected =
        [("grab-sg:0:2", "raingauge.points.awarded"), ("grab-sg:0:3", "raingauge.points.burned")];
    assert_eq!(lines, expected);
    let awarded = json!({
        "balance": 60, "expiresOn": "2026-07-31", "key": "1:4:shop:o-1", "kind": "earn",
        "member": "bob", "occurredAt": "2026-01-10T02:00:00.000Z", "points": 60,
        "programme": "grab-sg", "reason": "orders", "reference": "o-1", "rule": "orders",
        "sequence": 1,
    });
    assert_eq!(published[0].2, awarded);
    assert_eq!((&published[1].2["points"], &published[1].2["balance"]), (&json!(-20), &json!(40)));

    // A publisher that did not note its place appends the same again, and the log knows it.
    stage.submit(&mut process, vec![award("bob", "k-2", 1)]);
    stage.fuse.arm(1, false);
    assert!(stage.runtime.block_on(process.publisher.step()).is_err());
    assert_eq!(stage.published().len(), 3);
    stage.fuse.replace();
    let mut process = stage.open();
    stage.settle_down(&mut process);
    assert_eq!(stage.published().len(), 3);
}

/// A number with decimals is a text, which loses nothing on its way.
#[test]
fn points_are_published_as_their_programme_writes_them() {
    let stage = Stage::new(1, |_| Ok(Response::of_status(200)));
    let mut process = stage.open();
    let mut cents = programme();
    cents["decimals"] = json!(2);
    stage.save(cents);
    stage.settle_down(&mut process);
    stage.submit(&mut process, vec![award("bob", "k-1", 1_050)]);
    stage.settle_down(&mut process);

    let published = stage.published();
    let (_, _, awarded) = published.last().unwrap();
    assert_eq!((&awarded["points"], &awarded["balance"]), (&json!("10.50"), &json!("10.50")));
}

#[test]
fn members_are_notified_with_a_signature_until_the_receiver_takes_it() {
    let status = Arc::new(AtomicU16::new(500));
    let answer = Arc::clone(&status);
    let mut stage = Stage::new(1, move |_| Ok(Response::of_status(answer.load(Ordering::Relaxed))));
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let notify = stage.options.notify.as_mut().unwrap();
    notify.secrets = vec![raingauge_campaigns::sign::Secret::parse(secret).unwrap()];
    let mut process = stage.open();
    stage.save(programme());
    stage.order("o-1", "bob", "food", 15);
    stage.settle_down(&mut process);
    assert_eq!(stage.depth(QueueName::Notify), (1, 0));
    assert_eq!(stage.available(&process, "bob"), 60, "the award waits for nobody");

    status.store(204, Ordering::Relaxed);
    stage.clock.advance(HOUR_MS);
    stage.settle_down(&mut process);
    assert_eq!(stage.depth(QueueName::Notify), (0, 0));
    let requests = stage.sender.requests();
    assert!(requests.len() >= 2);
    for request in &requests {
        assert_eq!(request.header("webhook-id"), Some("grab-sg:0:2"));
        assert!(request.header("webhook-signature").unwrap().starts_with("v1,"));
        assert_eq!(request.body, requests[0].body, "the same body each time");
    }

    // One that is refused is dead at once.
    status.store(400, Ordering::Relaxed);
    stage.order("o-2", "bob", "food", 15);
    stage.settle_down(&mut process);
    stage.clock.advance(HOUR_MS);
    stage.settle_down(&mut process);
    assert_eq!(stage.depth(QueueName::Notify), (0, 1));
}

#[test]
fn a_member_is_notified_so_often_in_a_day() {
    let mut stage = Stage::new(1, |_| Ok(Response::of_status(200)));
    let notify = stage.options.notify.as_mut().unwrap();
    notify.per_day_max = 3;
    notify.quiet = vec![Kind::Burn];
    let mut process = stage.open();
    stage.save(programme());
    stage.turn(&mut process).unwrap();
    let mut submit = |key: &str| {
        let commands = (0..5).map(|number| award("bob", &format!("{key}-{number}"), 10)).collect();
        stage.submit(&mut process, commands);
        let burn = command("bob", &format!("b-{key}"), Body::Burn { points: 1 });
        stage.submit(&mut process, vec![burn]);
        stage.settle_down(&mut process);
        stage.sender.requests().len()
    };
    assert_eq!(submit("today"), 3);
    stage.clock.advance(DAY_MS);
    assert_eq!(submit("tomorrow"), 6);
}

/// The queue may be emptied after the points of the member have expired.
#[test]
fn a_command_of_the_queue_happened_when_it_was_accepted() {
    let (stage, mut process) = Stage::with_programme();
    let gift = award("bob", "k-1", 7);
    let accepted = Command { accepted_ms: Some(START_MS), ..gift.clone() };
    // A letter that was dead is sent again later.
    stage.clock.advance(HOUR_MS);
    let letters = vec![Letter::of_command(&accepted), Letter::of_command(&award("bob", "k-2", 1))];
    stage.runtime.block_on(stage.queues.send(QueueName::Award, letters, Duration::ZERO)).unwrap();
    stage.clock.advance(HOUR_MS);
    stage.settle_down(&mut process);
    let times = |entry: &Arc<Entry>| (entry.occurred_ms, entry.recorded_ms);
    let recorded_ms = START_MS + 2 * HOUR_MS;
    let expected = [(START_MS, recorded_ms), (START_MS + HOUR_MS, recorded_ms)];
    let entries = stage.entries();
    assert!(entries.iter().skip(1).map(times).eq(expected), "{entries:?}");

    let again = stage.submit(&mut process, vec![gift]);
    assert!(matches!(again[0], Ok(Answer::Replayed(_))));
}
