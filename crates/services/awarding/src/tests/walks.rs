//! Walks through the due index after a change of a programme.

use super::stage::{DAY_MS, HOUR_MS, Stage, programme};
use raingauge_points::Kind;
use raingauge_ports::points::{Books, QueueName};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The end of 31 July in Singapore.
const END_MS: i64 = 1_785_513_600_000;
const MEMBERS: usize = 5;

/// Members with points, and a sweep whose ranges have two wallets.
fn stage() -> (Stage, super::stage::Process) {
    let (mut stage, _) = Stage::with_programme();
    stage.options.sweep.range = 2;
    let mut process = stage.open();
    for number in 0..MEMBERS {
        stage.order(&format!("o-{number}"), &format!("member-{number}"), "food", 15);
    }
    stage.settle_down(&mut process);
    (stage, process)
}

/// The hours in which something is due, in milliseconds since 1970.
fn hours(stage: &Stage) -> BTreeSet<i64> {
    let due = stage.books.due(0, u32::MAX, None, 100).unwrap();
    assert_eq!(due.len(), MEMBERS);
    due.iter().map(|due| i64::from(due.hour) * HOUR_MS).collect()
}

fn walk(stage: &Stage, process: &mut super::stage::Process) -> bool {
    let sweeper = Arc::clone(&process.sweeper);
    stage.during(process, sweeper.walk()).unwrap()
}

#[test]
fn a_new_version_reaches_wallets_that_nothing_touches() {
    let (stage, mut process) = stage();
    assert!(!walk(&stage, &mut process), "the first version has left nothing behind");
    assert_eq!(hours(&stage), BTreeSet::from([END_MS + DAY_MS]));

    let mut reminding = programme();
    reminding["remindDays"] = json!([30]);
    stage.save(reminding.clone());
    stage.settle_down(&mut process);
    assert_eq!(hours(&stage), BTreeSet::from([END_MS + DAY_MS]));
    assert!(walk(&stage, &mut process));
    assert!(stage.depth(QueueName::Expiry).0 > 0);

    // The process dies, and the next one works on the ranges.
    let mut process = stage.open();
    stage.settle_down(&mut process);
    assert_eq!(hours(&stage), BTreeSet::from([END_MS - 31 * DAY_MS]));
    let moved = stage.entries().iter().filter(|entry| entry.kind == Kind::Extend).count();
    assert_eq!(moved, MEMBERS);

    // Versions that agree on the terms are no reason to walk.
    reminding["rules"][0]["name"] = json!("purchases");
    stage.save(reminding);
    stage.settle_down(&mut process);
    assert!(!walk(&stage, &mut process));
}

#[test]
fn a_walk_that_fails_begins_again() {
    let (stage, mut process) = stage();
    walk(&stage, &mut process);
    let mut patient = programme();
    patient["expiry"]["graceHours"] = json!(48);
    stage.save(patient);
    stage.settle_down(&mut process);

    // The process dies behind the note that a walk begins, and the first range.
    stage.fuse.arm(2, true);
    let sweeper = Arc::clone(&process.sweeper);
    assert!(stage.during(&mut process, sweeper.walk()).is_err());
    stage.fuse.replace();
    let mut process = stage.open();
    stage.settle_down(&mut process);
    assert_eq!(hours(&stage).len(), 2, "the others wait for the next walk");

    assert!(walk(&stage, &mut process));
    stage.settle_down(&mut process);
    assert_eq!(hours(&stage), BTreeSet::from([END_MS + 2 * DAY_MS]));
}
