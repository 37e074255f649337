use super::stage::{PROGRAMME, Stage, award, programme};
use crate::error::Error;
use raingauge_consumers::control::{DocumentVersion, document_entry};
use raingauge_points::{Answer, Kind};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::log::EventSink;
use raingauge_ports::points::{Books, QueueName};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What was appended before a change goes by the old rules, wherever the teller was then.
#[test]
fn a_programme_takes_effect_at_its_place_in_the_log() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "ride", 10);
    let mut dearer = programme();
    dearer["tables"]["vertical"]["rows"]["SG.ride"] = json!(5);
    stage.save(dearer);
    stage.order("o-2", "eve", "ride", 10);
    stage.turn(&mut process).unwrap();

    assert_eq!(stage.available(&process, "bob"), 20);
    assert_eq!(stage.available(&process, "eve"), 100);
    assert_eq!(process.shared.snapshot().version_of("programme", PROGRAMME), Some(2));
    let head = stage.books.head(0).unwrap();
    assert_eq!(head.versions, [(Arc::<str>::from(PROGRAMME), 2)]);

    // The next process has what the books have in force, and not what the store has.
    let mut other = programme();
    other["unit"] = json!("other");
    stage.store(other);
    let process = stage.open();
    assert_eq!(process.shared.snapshot().version_of("programme", PROGRAMME), Some(2));
}

#[test]
fn an_entry_that_comes_twice_takes_effect_once() {
    let (stage, mut process) = Stage::with_programme();
    for entry in ["{}", r#"{"for":"campaigns","kind":"x"}"#, r#"{"kind":"counter","version":1}"#] {
        let entry = entry.as_bytes().to_vec();
        stage.runtime.block_on(EventSink::append_control(&*stage.log, 0, entry)).unwrap();
    }
    let again =
        DocumentVersion { kind: "programme".to_owned(), id: PROGRAMME.to_owned(), version: 1 };
    let entry = document_entry("points", &again);
    let appended = EventSink::append_control(&*stage.log, 0, entry);
    stage.runtime.block_on(appended).unwrap();
    stage.turn(&mut process).unwrap();
    let programmes = stage.entries().iter().filter(|one| one.kind == Kind::Programme).count();
    assert_eq!(programmes, 1);
}

/// A newer release wrote it, and what it means for the events behind it is unknown.
#[test]
fn events_wait_behind_an_entry_that_cannot_be_obeyed_and_commands_do_not() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    let entry = br#"{"for":"points","kind":"orbit"}"#.to_vec();
    let appended = EventSink::append_control(&*stage.log, 0, entry);
    stage.runtime.block_on(appended).unwrap();
    stage.order("o-2", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.available(&process, "bob"), 60);
    assert!(process.shared.trouble().unwrap().contains("upgrade"));
    let answers = stage.submit(&mut process, vec![award("bob", "k", 1)]);
    assert!(matches!(answers[0], Ok(Answer::Done(_))));
}

/// A cluster has no log in the process: documents take effect as the store has them.
#[test]
fn without_a_log_documents_are_followed() {
    let mut stage = Stage::new(4, |_| Ok(Response::of_status(200)));
    stage.has_log = false;
    stage.store(programme());
    let mut process = stage.open();
    stage.turn(&mut process).unwrap();
    assert_eq!(process.shared.snapshot().version_of("programme", PROGRAMME), Some(1));
    assert_eq!(stage.entries().len(), 4, "an entry in each book");
    let answers = stage.submit(&mut process, vec![award("bob", "k", 1)]);
    assert!(matches!(answers[0], Ok(Answer::Done(_))));

    // Another process is faster: this one reads what the books have in force before it decides.
    let mut other = stage.open();
    let mut next = programme();
    next["unit"] = json!("other");
    stage.store(next);
    stage.clock.advance(10_000);
    stage.turn(&mut other).unwrap();
    assert_eq!(stage.entries().len(), 4 + 1 + 4);
    assert_eq!(process.shared.snapshot().version_of("programme", PROGRAMME), Some(1));
    let answers = stage.submit(&mut process, vec![award("bob", "k-2", 1)]);
    assert!(matches!(answers[0], Ok(Answer::Done(_))));
    assert_eq!(process.shared.snapshot().version_of("programme", PROGRAMME), Some(2));
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.entries().len(), 4 + 1 + 4 + 1);
}

#[test]
fn a_log_that_ends_before_the_position_is_refused() {
    let (stage, process) = Stage::with_programme();
    drop(process);
    let other = Stage { log: Arc::default(), ..stage };
    let refused = other.try_open().map(|_| ());
    assert!(matches!(refused, Err(Error::Books(_))), "{refused:?}");
}

/// Twice two or once four: sixty points each, and neither twice four nor once two.
#[test]
fn all_factors_of_an_award_are_of_the_version_that_priced_it() {
    let in_version = |vertical: u32, tier: u32| {
        let mut changed = programme();
        changed["tables"]["vertical"]["rows"]["SG.food"] = json!(vertical);
        changed["tables"]["tier"] = json!({ "by": ["tier"], "rows": { "base": tier } });
        changed["tiers"] =
            json!({ "window": "lifetime", "levels": [{ "name": "base", "from": 0 }] });
        changed["rules"][0]["factors"] = json!(["vertical", "tier"]);
        changed
    };
    let (mut stage, _) = Stage::with_programme();
    stage.options.awarding = crate::Awarding::Queued;
    let mut process = stage.open();
    stage.save(in_version(2, 2));
    stage.turn(&mut process).unwrap();

    // The price waits in the queue while the next version takes effect.
    stage.order("o-1", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    stage.save(in_version(1, 4));
    stage.settle_down(&mut process);
    assert_eq!(stage.available(&process, "bob"), 60);

    // A process that starts later has never seen the version.
    stage.order("o-2", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    stage.save(in_version(2, 2));
    stage.turn(&mut process).unwrap();
    let mut process = stage.open();
    stage.settle_down(&mut process);
    assert_eq!(stage.available(&process, "bob"), 120);

    let entries = stage.entries();
    let explained = entries.iter().filter_map(|entry| entry.explain.as_ref());
    assert!(explained.map(|explain| explain.version).eq([2, 3]));
}

/// The newer one may have the rule that the older one seems to miss.
#[test]
fn an_event_is_not_priced_again_by_an_older_version() {
    let (stage, mut process) = Stage::with_programme();
    let behind = stage.open();
    let mut changed = programme();
    let rules = changed["rules"].as_array_mut().unwrap();
    rules.push(json!({ "id": 5, "name": "gifts", "eventType": "gift.sent",
        "member": "data.member", "amount": "data.amount", "factors": ["vertical"] }));
    stage.save(changed);
    let gift = json!({ "member": "bob", "country": "SG", "vertical": "mart", "amount": 10 });
    stage.send_at("g-1", "gift.sent", super::stage::START_MS, &gift);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.depth(QueueName::Retry), (1, 0));

    stage.clock.advance(super::stage::HOUR_MS);
    assert!(stage.runtime.block_on(behind.retry.step(Duration::ZERO)).unwrap());
    assert_eq!(stage.depth(QueueName::Retry), (1, 0));
}
