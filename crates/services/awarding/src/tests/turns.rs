use super::stage::{DAY_MS, HOUR_MS, PROGRAMME, Process, Stage, award, command, programme, wallet};
use crate::error::Error;
use crate::intake::Manner;
use crate::teller::Progress;
use raingauge_core::code::Code;
use raingauge_points::{Answer, Body, Command, Kind};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::clock::Clock as _;
use raingauge_ports::points::{Books, QueueName};
use serde_json::json;
use std::sync::Arc;

fn points_of(answer: &Result<Answer, Error>) -> i64 {
    match answer {
        Ok(Answer::Done(entries)) => entries[0].points(),
        Ok(Answer::Replayed(entry)) => entry.points(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_is_awarded_once_and_the_position_is_in_the_same_turn() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.available(&process, "bob"), 60);

    let head = stage.books.head(0).unwrap();
    assert_eq!(head.position, process.worker.shared().snapshot().position);
    let entries = stage.entries();
    let kinds: Vec<Kind> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Programme, Kind::Earn]);

    // Another process goes on there.
    let mut process = stage.open();
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.entries().len(), 2);
    stage.order("o-2", "bob", "ride", 10);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.available(&process, "bob"), 80);
}

#[test]
fn a_command_with_the_same_key_has_the_same_answer() {
    let (stage, mut process) = Stage::with_programme();
    let first = stage.submit(&mut process, vec![award("bob", "k-1", 100)]);
    assert!(matches!(first[0], Ok(Answer::Done(_))));
    let again = stage.submit(&mut process, vec![award("bob", "k-1", 100)]);
    assert!(matches!(again[0], Ok(Answer::Replayed(_))));
    assert_eq!((points_of(&first[0]), points_of(&again[0])), (100, 100));

    let other = stage.submit(&mut process, vec![award("bob", "k-1", 101)]);
    match &other[0] {
        Ok(Answer::Invalid(refusal)) => assert_eq!(refusal.code, Code::KeyReused),
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.available(&process, "bob"), 100);
}

#[test]
fn a_refusal_fails_neither_its_request_nor_the_turn() {
    let (stage, mut process) = Stage::with_programme();
    let burn = command("bob", "k-2", Body::Burn { points: 1_000 });
    let commands = vec![award("bob", "k-1", 100), burn, award("eve", "k-3", 7)];
    let answers = stage.submit(&mut process, commands);
    assert!(matches!(answers[0], Ok(Answer::Done(_))));
    assert!(matches!(&answers[1], Ok(Answer::Refused { refusal, .. })
        if refusal.code == Code::InsufficientPoints));
    assert_eq!(stage.available(&process, "eve"), 7);

    // The refusal stays the answer of its key.
    stage.submit(&mut process, vec![award("bob", "k-4", 5_000)]);
    let burn = command("bob", "k-2", Body::Burn { points: 1_000 });
    let again = stage.submit(&mut process, vec![burn]);
    assert!(matches!(&again[0], Ok(Answer::Refused { replayed: true, .. })));
}

#[test]
fn commands_happen_together_or_not_at_all() {
    let (stage, mut process) = Stage::with_programme();
    let shared = Arc::clone(&process.shared);
    let burn = |key: &str| command("bob", key, Body::Burn { points: 60 });
    let both = vec![award("bob", "k-1", 100), burn("k-2"), burn("k-3")];
    let answers =
        stage.during(&mut process, async move { shared.decide(both, Manner::Together).await });
    assert!(answers.iter().all(|answer| !matches!(answer, Ok(Answer::Done(_)))));
    assert_eq!(stage.available(&process, "bob"), 0);
}

#[test]
fn a_trial_answers_and_writes_nothing() {
    let (stage, mut process) = Stage::with_programme();
    let shared = Arc::clone(&process.shared);
    let number = stage.entries().len();
    let trial = vec![award("bob", "k-1", 100), command("bob", "k-2", Body::Burn { points: 30 })];
    let answers =
        stage.during(&mut process, async move { shared.decide(trial, Manner::Trial).await });
    assert_eq!((points_of(&answers[0]), points_of(&answers[1])), (100, -30));
    assert_eq!((stage.entries().len(), stage.available(&process, "bob")), (number, 0));
}

/// A turn that settles takes longer than one of few commands, which should not wait for two.
#[test]
fn wallets_of_a_sweep_wait_for_commands_but_not_twice() {
    let (_stage, mut process) = Stage::with_programme();
    let mut answers = Vec::new();
    let mut push = |process: &Process, key: &str| {
        let commands = vec![award("bob", key, 1)];
        answers.push(process.shared.intake.push(commands, Manner::Each).unwrap());
    };

    push(&process, "k-1");
    let mut first = process.shared.intake.settle(vec![wallet("bob")]).unwrap();
    let mut second = process.shared.intake.settle(vec![wallet("bob")]).unwrap();
    process.worker.turn().unwrap();
    assert!(first.try_recv().is_err(), "the command comes first");
    push(&process, "k-2");
    process.worker.turn().unwrap();
    assert!(matches!(first.try_recv(), Ok(Ok(0))), "beside a command, this time");
    process.worker.turn().unwrap();
    assert!(matches!(second.try_recv(), Ok(Ok(0))), "there is no command");
    assert!(answers.iter_mut().all(|answer| answer.try_recv().unwrap()[0].is_ok()));
}

#[test]
fn what_is_too_much_waits_outside() {
    let (stage, process) = Stage::with_programme();
    let many = |number: usize| vec![award("bob", "k", 1); number];
    let shared = &process.shared;
    let busy = stage.runtime.block_on(async {
        let first = shared.intake.push(many(1_000), Manner::Each);
        let others = (0..19).map(|_| shared.intake.push(many(1_000), Manner::Each).unwrap());
        let others: Vec<_> = others.collect();
        let busy = shared.decide(many(1), Manner::Each).await;
        drop((first, others));
        busy
    });
    assert!(matches!(busy[0], Err(Error::Busy { .. })));
    let large = stage.runtime.block_on(shared.decide(many(1_001), Manner::Each));
    assert!(matches!(large[0], Err(Error::TooLarge(_))));
}

/// Commands of different books take different turns, and a transfer takes both.
#[test]
fn commands_over_several_books_keep_their_order() {
    let mut stage = Stage::new(16, |_| Ok(Response::of_status(200)));
    stage.options.turns_at_once = 4;
    let mut process = stage.open();
    stage.save(super::stage::programme());
    stage.turn(&mut process).unwrap();
    let members: Vec<String> = (0..40).map(|number| format!("member-{number}")).collect();
    let mut commands: Vec<_> =
        members.iter().map(|member| award(member, &format!("a-{member}"), 100)).collect();
    for (from, to) in members.iter().zip(&members[1..]) {
        let body = Body::Transfer { to: to.as_str().into(), points: 100 };
        commands.push(command(from, &format!("t-{from}"), body));
    }
    let answers = stage.submit(&mut process, commands);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Answer::Done(_)))), "{answers:?}");

    // The first one has given its points, the others have passed on 100 and kept what came.
    let left: Vec<i64> = members.iter().map(|member| stage.available(&process, member)).collect();
    assert_eq!(left.iter().sum::<i64>(), 4_000);
    assert_eq!((left[0], left[39]), (0, 200));
    let books: std::collections::BTreeSet<u16> =
        members.iter().map(|member| wallet(member).book(16)).collect();
    assert!(books.len() > 8);
}

#[test]
fn in_the_mode_of_queues_awards_wait_in_one() {
    let (mut stage, process) = Stage::with_programme();
    drop(process);
    stage.options.awarding = crate::Awarding::Queued;
    let mut process = stage.open();
    stage.order("o-1", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.available(&process, "bob"), 0);
    assert_eq!(stage.depth(QueueName::Award), (1, 0));
    stage.settle_down(&mut process);
    assert_eq!(stage.available(&process, "bob"), 60);
    assert_eq!(stage.depth(QueueName::Award), (0, 0));
}

/// A position that nothing else stores is stored after a while.
#[test]
fn the_position_moves_without_awards() {
    let (stage, mut process) = Stage::with_programme();
    let stored = stage.books.head(0).unwrap().position;
    stage.send_at("x", "weather", 0, &json!({}));
    stage.turn(&mut process).unwrap();
    assert_eq!(process.shared.snapshot().position, stored + 1);
    assert_eq!(stage.books.head(0).unwrap().position, stored);
    stage.clock.advance(HOUR_MS);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.books.head(0).unwrap().position, stored + 1);
}

#[test]
fn a_ledger_that_is_new_begins_at_the_end_of_the_log() {
    let stage = Stage::new(1, |_| Ok(Response::of_status(200)));
    stage.order("o-1", "bob", "food", 15);
    let mut process = stage.open();
    assert_eq!(process.shared.snapshot().position, 1);
    stage.save(super::stage::programme());
    stage.order("o-2", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    assert_eq!(stage.entries().len(), 2);
    assert_eq!(stage.entries()[1].programme.as_ref(), PROGRAMME);
}

/// The day of a partner is that of the turn, which another process may have begun.
#[test]
fn a_partner_keeps_to_its_day_when_another_clock_is_ahead() {
    let (stage, mut ahead) = Stage::with_programme();
    let mut with_partner = super::stage::programme();
    with_partner["partners"] = json!([{ "name": "skyair", "perDayMax": 800 }]);
    stage.save(with_partner);
    stage.settle_down(&mut ahead);
    let mut behind = stage.open();

    let gift = |key: &str| Command { source: "skyair".into(), ..award("bob", key, 500) };
    stage.clock.advance(3 * DAY_MS);
    let first = stage.submit(&mut ahead, vec![gift("k-1")]);
    assert!(matches!(first[0], Ok(Answer::Done(_))), "{first:?}");
    stage.clock.advance(-3 * DAY_MS);
    let second = stage.submit(&mut behind, vec![gift("k-2")]);
    let Ok(Answer::Refused { refusal, .. }) = &second[0] else { panic!("{second:?}") };
    assert_eq!(refusal.code, Code::PartnerLimit);
}

/// In a cluster, what one machine lets expire is gone for all.
#[test]
fn a_clock_that_the_database_contradicts_decides_nothing() {
    let (stage, mut process) = Stage::with_programme();
    let number = stage.entries().len();
    for apart_ms in [61_000, -61_000] {
        stage.fuse.set_engine_ms(stage.clock.now_ms() - apart_ms);
        let commands = vec![award("bob", "k-1", 1)];
        let mut answers = process.shared.intake.push(commands, Manner::Each).unwrap();
        let turned = process.worker.turn();
        assert!(matches!(turned, Err(Error::ClockApart { apart_ms: told }) if told == apart_ms));
        assert!(matches!(answers.try_recv().unwrap()[0], Err(Error::ClockApart { .. })));
    }
    // Nor does it put a programme into force.
    stage.save(programme());
    assert!(matches!(process.worker.turn(), Ok(Progress::Busy)));
    assert!(process.shared.trouble().is_some_and(|why| why.contains("the clock of this machine")));
    assert_eq!(stage.entries().len(), number);

    stage.fuse.set_engine_ms(stage.clock.now_ms() - 59_000);
    let answers = stage.submit(&mut process, vec![award("bob", "k-1", 1)]);
    assert_eq!(points_of(&answers[0]), 1);
}

/// Awards for forty members, in most of sixteen books.
fn forty() -> Vec<Command> {
    (0..40).map(|number| award(&format!("member-{number}"), &format!("f-{number}"), 10)).collect()
}

#[test]
fn turns_at_once_learn_what_another_process_put_into_force() {
    let mut stage = Stage::new(16, |_| Ok(Response::of_status(200)));
    stage.options.turns_at_once = 4;
    let mut process = stage.open();
    stage.save(programme());
    let mut other = stage.open();
    stage.turn(&mut process).unwrap();
    stage.save(programme());
    stage.turn(&mut process).unwrap();

    let answers = stage.submit(&mut other, forty());
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Answer::Done(_)))), "{answers:?}");
    assert_eq!(other.shared.snapshot().version_of("programme", PROGRAMME), Some(2));
}

#[test]
fn a_turn_that_fails_among_others_leaves_theirs() {
    let mut stage = Stage::new(16, |_| Ok(Response::of_status(200)));
    stage.options.turns_at_once = 4;
    let mut process = stage.open();
    stage.save(programme());
    stage.turn(&mut process).unwrap();
    stage.fuse.arm(5, false);
    let answers = stage.submit(&mut process, forty());
    let done = |answer: &&Result<Answer, Error>| matches!(answer, Ok(Answer::Done(_)));
    let before = answers.iter().filter(done).count();
    assert!(before > 0 && before < 40, "{before}");

    stage.fuse.replace();
    let mut process = stage.open();
    let again = stage.submit(&mut process, forty());
    assert_eq!(again.iter().filter(done).count(), 40 - before);
    for (first, again) in answers.iter().zip(&again) {
        let is_replayed = matches!(again, Ok(Answer::Replayed(_)));
        assert_eq!(matches!(first, Ok(Answer::Done(_))), is_replayed, "{first:?} {again:?}");
    }
}
