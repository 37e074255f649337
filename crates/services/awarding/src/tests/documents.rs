use super::stage::{PROGRAMME, Stage, award, programme};
use crate::error::Error;
use raingauge_consumers::control::{DocumentVersion, document_entry};
use raingauge_points::{Answer, Kind};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::log::EventSink;
use raingauge_ports::points::Books;
use serde_json::json;
use std::sync::Arc;

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
