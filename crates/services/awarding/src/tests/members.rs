use super::stage::{DAY_MS, HOUR_MS, PROGRAMME, START_MS, Stage, award, command, wallet};
use crate::error::Error;
use crate::handle::Handle;
use crate::sweeper::SweepState;
use raingauge_core::code::Code;
use raingauge_points::{Body, Kind, WalletId};
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::clock::Clock;
use raingauge_ports::points::{self as ports, NotAwarded, Points, Worth};

/// The calendar of the reference: 10 January leads to 31 July, and no point is spendable behind the
/// grace, swept or not.
#[test]
fn points_expire_whether_they_are_swept_or_not() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    let members = process.members.clone();
    let id = wallet("bob");
    let balance = |id: WalletId| {
        let read = members.balances(vec![id], None);
        stage.runtime.block_on(read).unwrap().remove(0).unwrap()
    };
    let bob = balance(wallet("bob"));
    assert_eq!((bob.available, bob.expires_on.unwrap().to_string()), (60, "2026-07-31".to_owned()));
    assert_eq!((bob.lots.len(), bob.lots[0].points), (1, 60));
    assert_eq!(balance(wallet("nobody")).available, 0);

    // Midnight in Singapore behind 31 July, and 24 hours.
    let cut_ms = 1_785_513_600_000 + DAY_MS;
    stage.clock.advance(cut_ms - START_MS - 1);
    assert_eq!(balance(wallet("bob")).available, 60);
    stage.clock.advance(1);
    assert_eq!(balance(wallet("bob")).available, 0);

    let statement = members.statement(&id, None, 10);
    let rows = stage.runtime.block_on(statement).unwrap();
    let lines: Vec<_> =
        rows.iter().map(|row| (row.sequence, row.kind, row.points, row.balance_after)).collect();
    let expired = [(None, Kind::Expire, -60, 0), (Some(1), Kind::Earn, 60, 60)];
    assert_eq!(lines, expired);

    // The sweep writes down the same.
    let sweeper = std::sync::Arc::clone(&process.sweeper);
    let status = stage.during(&mut process, sweeper.sweep()).unwrap();
    assert_eq!((status.wallets, status.entries), (1, 1));
    let statement = members.statement(&id, None, 10);
    let rows = stage.runtime.block_on(statement).unwrap();
    assert_eq!((rows[0].sequence, rows[0].points), (Some(2), -60));
    let sweeper = std::sync::Arc::clone(&process.sweeper);
    assert_eq!(stage.during(&mut process, sweeper.sweep()).unwrap().wallets, 0);
}

#[test]
fn balances_of_the_past_are_those_of_then() {
    let (stage, mut process) = Stage::with_programme();
    stage.submit(&mut process, vec![award("bob", "k-1", 100)]);
    stage.clock.advance(HOUR_MS);
    stage.submit(&mut process, vec![command("bob", "k-2", Body::Burn { points: 30 })]);
    stage.clock.advance(HOUR_MS);
    stage.submit(&mut process, vec![award("bob", "k-3", 5)]);

    let at = |at_ms: i64| {
        let read = process.members.balances(vec![wallet("bob")], Some(at_ms));
        stage.runtime.block_on(read).unwrap().remove(0).unwrap().available
    };
    let found = [-1, 0, HOUR_MS - 1, HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS].map(|ms| at(START_MS + ms));
    assert_eq!(found, [0, 100, 100, 70, 75, 75]);
}

/// What is owed at the end of a quarter is asked for before it.
#[test]
fn balances_of_the_future_lack_what_will_have_expired() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    let at = |at_ms: i64| {
        let read = process.members.balances(vec![wallet("bob")], Some(at_ms));
        stage.runtime.block_on(read).unwrap().remove(0).unwrap()
    };

    // Midnight in Singapore behind 31 July, and 24 hours.
    let cut_ms = 1_785_513_600_000 + DAY_MS;
    assert_eq!(at(cut_ms - 1).available, 60);
    let expired = at(cut_ms);
    assert_eq!((expired.available, expired.lots.len()), (0, 0));
}

#[test]
fn an_unknown_programme_is_no_error_of_the_others() {
    let (stage, mut process) = Stage::with_programme();
    stage.submit(&mut process, vec![award("bob", "k-1", 100)]);
    let ids = vec![WalletId::new("other", "bob"), wallet("bob")];
    let read = process.members.balances(ids, None);
    let balances = stage.runtime.block_on(read).unwrap();
    assert_eq!(balances[0].as_ref().unwrap_err().code, Code::ProgrammeUnknown);
    assert_eq!(balances[1].as_ref().unwrap().available, 100);
}

#[test]
fn a_balance_and_its_entries_are_explained() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    stage.turn(&mut process).unwrap();
    stage.submit(&mut process, vec![award("bob", "k-1", 100)]);
    stage.submit(&mut process, vec![command("bob", "k-2", Body::Burn { points: 30 })]);

    let id = wallet("bob");
    let explained = process.members.explain(&id);
    let explained = stage.runtime.block_on(explained).unwrap().unwrap();
    assert_eq!(explained.balance.available, 130);
    assert!(!explained.is_cut);
    assert_eq!(explained.left.iter().map(|left| left.points).sum::<i64>(), 130);
    assert_eq!(explained.spent.iter().map(|spent| spent.points).sum::<i64>(), 30);
    let entries = stage.entries();
    let earn = entries.iter().find(|entry| entry.kind == Kind::Earn).unwrap();
    let words = process.members.explain_entry(earn).unwrap();
    assert!(words.contains("15") && words.contains("60"), "{words}");

    let found = process.members.by_key(PROGRAMME, "", "k-2");
    let found = stage.runtime.block_on(found).unwrap();
    assert_eq!((found.len(), found[0].kind), (1, Kind::Burn));
    let place = (found[0].book, found[0].sequence);
    let read = process.members.entry(PROGRAMME, place.0, place.1);
    assert_eq!(stage.runtime.block_on(read).unwrap(), Some(found[0].clone()));
    let read = process.members.entry("other", place.0, place.1);
    assert_eq!(stage.runtime.block_on(read).unwrap(), None);

    let liability = process.members.liability(PROGRAMME);
    assert_eq!(stage.runtime.block_on(liability).unwrap().unwrap().total(), 130);
}

/// The threads and tasks of a service, as the binary starts them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_answers_until_it_is_stopped() {
    let (deps, options) = tokio::task::spawn_blocking(|| {
        let (mut stage, process) = Stage::with_programme();
        drop(process);
        stage.options.sweep.every = std::time::Duration::from_millis(20);
        (stage.deps(), stage.options.clone())
    })
    .await
    .unwrap();
    let deps = crate::Deps { runtime: tokio::runtime::Handle::current(), ..deps };
    let log = deps.sink.clone();
    let handle: Handle = tokio::task::spawn_blocking(move || crate::Teller::start(deps, options))
        .await
        .unwrap()
        .unwrap();

    let answers = handle.submit(vec![award("bob", "k-1", 100)]).await;
    assert!(answers[0].is_ok(), "{answers:?}");
    handle.submit_later(vec![award("bob", "k-2", 11)]).await.unwrap();
    let mut batch = raingauge_ports::log::Batch::default();
    let data = r#"{"member":"bob","country":"SG","vertical":"food","amount":1,"order_id":"o"}"#;
    batch.push(&raingauge_core::event::Event::of_data("order.completed", START_MS, data));
    let appended = log.append(batch).await.unwrap();
    let patience = std::time::Duration::from_secs(30);
    let reached = tokio::time::timeout(patience, handle.reached(&appended.ends)).await;
    assert_eq!(reached, Ok(true));

    let expected = 100 + 11 + 2;
    let available = async || {
        let balances = handle.members().balances(vec![wallet("bob")], None).await.unwrap();
        balances[0].as_ref().unwrap().available
    };
    while available().await < expected {
        tokio::task::yield_now().await;
    }
    assert_eq!(available().await, expected);
    assert_eq!(handle.trouble(), None);

    assert_port(&handle).await;
    let stopping = handle.clone();
    tokio::task::spawn_blocking(move || stopping.stop()).await.unwrap();
    let refused = handle.submit(vec![award("bob", "k-3", 1)]).await;
    assert!(matches!(refused[0], Err(crate::Error::Closed(_))));
}

/// What campaigns award in the same process.
async fn assert_port(handle: &Handle) {
    let award = |key: &str, worth: Worth| ports::Award {
        programme: PROGRAMME.to_owned(),
        member: "cat".to_owned(),
        key: key.to_owned(),
        source: "campaigns".to_owned(),
        worth,
        occurred_ms: START_MS,
        reason: None,
        budget: None,
    };
    let product = |amount: &str| Worth::Product {
        amount: amount.to_owned(),
        factors: vec![("rate".to_owned(), "1.5".to_owned())],
    };
    let awards = vec![
        award("c-1", Worth::Points(7)),
        award("c-2", product("15.00")),
        award("c-1", Worth::Points(7)),
        award("c-3", product("fifteen")),
        ports::Award { programme: "other".to_owned(), ..award("c-4", Worth::Points(1)) },
    ];
    let line = |result: &Result<ports::Awarded, NotAwarded>| match result {
        Ok(awarded) => (awarded.points, awarded.is_replayed, ""),
        Err(NotAwarded::Refused(refusal)) => (0, false, refusal.code.as_str()),
        Err(NotAwarded::Later { .. }) => (0, false, "later"),
    };
    let results = Points::award(handle, awards).await;
    let lines: Vec<_> = results.iter().map(line).collect();
    let expected = [
        (7, false, ""),
        (23, false, ""),
        (7, true, ""),
        (0, false, "points_invalid"),
        (0, false, "later"),
    ];
    assert_eq!(lines, expected);

    // An award that was made has its points, whatever its worth would be by now.
    let awards = vec![
        award("c-2", product("16.00")),
        ports::Award { member: "dan".to_owned(), ..award("c-2", product("15.00")) },
    ];
    let results = Points::award(handle, awards).await;
    let lines: Vec<_> = results.iter().map(line).collect();
    assert_eq!(lines, [(23, true, ""), (0, false, "key_reused")]);
}

#[test]
fn members_are_reminded_before_their_points_expire() {
    let (stage, mut process) = Stage::with_programme();
    let mut reminding = super::stage::programme();
    reminding["remindDays"] = serde_json::json!([30]);
    stage.save(reminding);
    stage.order("o-1", "bob", "food", 15);
    stage.settle_down(&mut process);

    // The end of 31 July in Singapore, and 30 days before it.
    let end_ms = 1_785_513_600_000;
    stage.clock.advance(end_ms - 30 * DAY_MS - START_MS + HOUR_MS);
    let sweeper = std::sync::Arc::clone(&process.sweeper);
    assert_eq!(stage.during(&mut process, sweeper.sweep()).unwrap().entries, 1);
    stage.settle_down(&mut process);
    let published = stage.published();
    let (_, kind, data) = published.last().unwrap();
    assert_eq!(kind, "raingauge.points.expiring");
    assert_eq!((&data["balance"], &data["expiresOn"]), (&60.into(), &"2026-07-31".into()));
    assert_eq!(stage.available(&process, "bob"), 60);
    let again = stage.during(&mut process, sweeper.sweep()).unwrap();
    assert_eq!(again.entries, 0);
}

#[test]
fn a_sweep_waits_until_the_books_have_room() {
    let (stage, mut process) = Stage::with_programme();
    stage.order("o-1", "bob", "food", 15);
    stage.settle_down(&mut process);
    stage.clock.advance(400 * DAY_MS);

    stage.fuse.crowd(3);
    let sweeper = std::sync::Arc::clone(&process.sweeper);
    assert_eq!(stage.during(&mut process, sweeper.sweep()).unwrap().wallets, 1);
    assert_eq!(stage.fuse.crowded(), 0);
}

#[test]
fn a_sweep_that_is_asked_for_is_carried_out_beside_the_request() {
    let mut stage = Stage::new(1, |_| Ok(Response::of_status(200)));
    stage.options.sweep.range = 1;
    let mut process = stage.open();
    stage.save(super::stage::programme());
    stage.order("o-1", "bob", "food", 15);
    stage.order("o-2", "eve", "food", 15);
    stage.settle_down(&mut process);
    stage.clock.advance(400 * DAY_MS);

    let sweeper = std::sync::Arc::clone(&process.sweeper);
    let refused = sweeper.begin(Some(stage.clock.now_ms() + 1));
    assert!(matches!(refused, Err(Error::Refused(why)) if why.code == Code::TimeInFuture));
    let early = sweeper.begin(Some(START_MS)).unwrap();
    let begun = sweeper.begin(None).unwrap();
    assert_eq!((begun.state, begun.wallets), (SweepState::Waiting, 0));
    assert_eq!(sweeper.statuses(), [begun.clone(), early.clone()]);

    // Nothing was due at the earlier time; what is due now waits in ranges.
    for _ in 0..2 {
        assert!(stage.during(&mut process, sweeper.obey_once()).unwrap());
    }
    let [now, then] = &sweeper.statuses()[..] else { panic!("two sweeps") };
    assert_eq!((then.state, then.wallets), (SweepState::Finished, 0));
    assert_eq!((now.state, now.ranges, now.ranges_done), (SweepState::Running, 2, 0));
    // Another one waits for them, and one that goes no further is the same.
    assert_eq!(sweeper.begin(None).unwrap().id, begun.id);
    stage.clock.advance(HOUR_MS);
    let next = sweeper.begin(None).unwrap();
    assert!(!stage.during(&mut process, sweeper.obey_once()).unwrap());

    stage.settle_down(&mut process);
    let statuses = sweeper.statuses();
    let found = statuses.iter().find(|status| status.id == begun.id).unwrap();
    assert_eq!((found.state, found.wallets, found.entries), (SweepState::Finished, 2, 2));
    assert!(stage.during(&mut process, sweeper.obey_once()).unwrap());
    assert_eq!(sweeper.statuses()[0].id, next.id);
    assert_eq!(sweeper.statuses()[0].state, SweepState::Finished);
    assert!(!stage.during(&mut process, sweeper.obey_once()).unwrap(), "nobody asks");
}
