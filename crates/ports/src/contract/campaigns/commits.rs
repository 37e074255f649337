//! What a commit makes durable, and which commits are refused.

use super::{
    action, budget_change, budget_key, commit, commit_to, decision, delivery, state_key, timer,
};
use crate::campaigns::limits::{LEDGER_LABEL_LEN_MAX, LEDGER_TIMER_LEN_MAX};
use crate::campaigns::{
    Budget, BudgetChange, Commit, DecisionQuery, Error, Ledger, LedgerReader, Outbox, StateKey,
    StateKind,
};

const LATER_MS: i64 = i64::MAX;

pub async fn an_empty_ledger_has_nothing<L: Ledger + LedgerReader + Outbox>(ledger: &L) {
    let first = ledger.take_over().expect("taken over");
    assert_eq!((first.position, first.log_ms, &first.control[..]), (0, 0, &[][..]));
    assert!(first.epoch > 0);
    assert_eq!(ledger.take_over().expect("taken over").epoch, first.epoch + 1);

    assert_eq!(ledger.load(&[state_key("u-7")]).expect("states"), [None]);
    assert_eq!(ledger.known(&[action(1)]).expect("actions"), [false]);
    assert_eq!(ledger.budgets(&[budget_key()]).expect("budgets"), [Budget::default()]);
    assert_eq!(ledger.due(LATER_MS, 9).expect("timers"), []);
    assert_eq!(ledger.budgets_of(7).await.expect("budgets"), []);
    assert_eq!(ledger.granted(action(1)).await.expect("a decision"), None);
    assert_eq!(ledger.get(action(1)).await.expect("a delivery"), None);
}

/// A commit with a record of each kind.
fn full(commit: &mut Commit) {
    commit.control = Some(b"rules".to_vec());
    commit.states = vec![(state_key("u-7"), Some(vec![1])), (state_key("u-8"), Some(vec![]))];
    commit.budgets = vec![budget_change(1_000, 500)];
    commit.decisions = vec![decision(1, 0)];
    commit.timers = vec![timer(2, 60_000)];
    commit.deliveries = vec![delivery(1, 0)];
}

pub async fn everything_moves_with_the_position<L: Ledger + LedgerReader + Outbox>(ledger: &L) {
    let committed = commit_to(ledger, full);
    let checkpoint = ledger.take_over().expect("taken over");
    assert_eq!(checkpoint.position, committed.position);
    assert_eq!(checkpoint.log_ms, committed.log_ms);
    assert_eq!(checkpoint.control, b"rules");
    assert!(checkpoint.check_log(checkpoint.position).is_ok());
    let shorter = checkpoint.check_log(checkpoint.position - 1);
    assert!(matches!(shorter, Err(Error::LogTooShort { .. })));

    let keys = [state_key("u-8"), state_key("u-9"), state_key("u-7")];
    assert_eq!(ledger.load(&keys).expect("states"), [Some(vec![]), None, Some(vec![1])]);
    assert_eq!(ledger.known(&[action(2), action(1)]).expect("actions"), [false, true]);
    let budget = Budget { max: 1_000, reserved: 500, spent: 0 };
    assert_eq!(ledger.budgets(&[budget_key()]).expect("budgets"), [budget]);
    assert_eq!(ledger.due(LATER_MS, 9).expect("timers"), [timer(2, 60_000)]);
    assert_eq!(ledger.granted(action(1)).await.expect("a decision"), Some(decision(1, 0)));
    let sent = ledger.get(action(1)).await.expect("a delivery").expect("it is there");
    assert_eq!(sent.delivery, delivery(1, 0));

    // Values are replaced or removed; a commit without a control leaves it.
    let mut next = commit(&checkpoint);
    next.states = vec![(state_key("u-7"), None), (state_key("u-8"), Some(vec![2]))];
    next.fired = vec![(timer(2, 60_000).due_ms, action(2)), (0, action(9))];
    ledger.commit(next).expect("committed");
    assert_eq!(ledger.load(&keys).expect("states"), [Some(vec![2]), None, None]);
    assert_eq!(ledger.due(LATER_MS, 9).expect("timers"), []);
    assert_eq!(ledger.take_over().expect("taken over").control, b"rules");
}

/// Every reason to refuse a commit leaves all of it out, though it has a record of each kind.
pub async fn a_refused_commit_changes_nothing<L: Ledger + LedgerReader + Outbox>(ledger: &L) {
    let twice = |commit: &mut Commit| commit.decisions.push(decision(1, 5));
    let too_long = |commit: &mut Commit| commit.timers[0].body = vec![0; LEDGER_TIMER_LEN_MAX + 1];
    let same_state = |commit: &mut Commit| commit.states.push((state_key("u-7"), None));
    let same_budget = |commit: &mut Commit| commit.budgets.push(budget_change(1_000, 0));
    let same_delivery = |commit: &mut Commit| commit.deliveries.push(delivery(1, 9));
    let too_much = |commit: &mut Commit| commit.budgets[0].reserve = 1_001;
    let back = |commit: &mut Commit| commit.position = commit.from.wrapping_sub(1);
    let other_place = |commit: &mut Commit| commit.from += 1;
    let long_subject = |commit: &mut Commit| commit.states[0].0.subject = "u".repeat(257);
    let long_value = |commit: &mut Commit| commit.states[0].1 = Some(vec![0; 4_097]);
    let long_label =
        |commit: &mut Commit| commit.decisions[0].step = "s".repeat(LEDGER_LABEL_LEN_MAX + 1);
    let long_evidence = |commit: &mut Commit| commit.decisions[0].evidence = "e".repeat(65_537);
    let long_event = |commit: &mut Commit| commit.decisions[0].event = "o".repeat(1_025);
    let long_body = |commit: &mut Commit| commit.deliveries[0].body = vec![0; 65_537];
    let too_many = |commit: &mut Commit| commit.fired = vec![(0, action(9)); 400_000];
    let zero = |commit: &mut Commit| commit.deliveries[0].destination.push('\0');
    let other_zero = |commit: &mut Commit| commit.budgets[0].key.name.push('\0');
    let spoil: [&dyn Fn(&mut Commit); 17] = [
        &twice,
        &too_long,
        &same_state,
        &same_budget,
        &same_delivery,
        &too_much,
        &back,
        &other_place,
        &long_subject,
        &long_value,
        &long_label,
        &long_evidence,
        &long_event,
        &long_body,
        &too_many,
        &zero,
        &other_zero,
    ];

    let mut checkpoint = ledger.take_over().expect("taken over");
    ledger.commit(commit(&checkpoint)).expect("committed");
    checkpoint = ledger.take_over().expect("taken over");

    for spoil in spoil {
        let mut next = commit(&checkpoint);
        full(&mut next);
        spoil(&mut next);
        let refused = ledger.commit(next).expect_err("it is refused");
        assert!(matches!(refused, Error::Invalid(_) | Error::Lost { .. }), "{refused}");
    }

    assert_eq!(ledger.load(&[state_key("u-7")]).expect("states"), [None]);
    assert_eq!(ledger.known(&[action(1)]).expect("actions"), [false]);
    assert_eq!(ledger.budgets(&[budget_key()]).expect("budgets"), [Budget::default()]);
    assert_eq!(ledger.due(LATER_MS, 9).expect("timers"), []);
    assert_eq!(ledger.get(action(1)).await.expect("a delivery"), None);
    let query = DecisionQuery { len_max: 9, ..DecisionQuery::default() };
    assert_eq!(ledger.decisions(query).await.expect("decisions").decisions, []);
    let mut next = commit(&checkpoint);
    full(&mut next);
    ledger.commit(next).expect("committed");
}

pub fn a_worker_that_was_replaced_writes_nothing(ledger: &impl Ledger) {
    let zombie = ledger.take_over().expect("taken over");
    let owner = ledger.take_over().expect("taken over");

    let mut late = commit(&zombie);
    late.states = vec![(state_key("u-7"), Some(vec![1]))];
    let lost = Error::Lost { epoch: owner.epoch, position: owner.position };
    assert_eq!(ledger.commit(late.clone()), Err(lost));
    assert_eq!(ledger.load(&[state_key("u-7")]).expect("states"), [None]);

    // Also when the position has not moved, and when it has.
    ledger.commit(commit(&owner)).expect("committed");
    assert!(matches!(ledger.commit(late), Err(Error::Lost { .. })));
    let again = ledger.commit(commit(&owner));
    assert!(matches!(again, Err(Error::Lost { position: 10, .. })), "{again:?}");
}

pub async fn an_action_is_granted_once<L: Ledger + LedgerReader>(ledger: &L) {
    let checkpoint = ledger.take_over().expect("taken over");
    let mut refusal = decision(1, 0);
    refusal.is_granted = false;
    refusal.outcome = "budget_exhausted".to_owned();
    let mut first = commit(&checkpoint);
    first.decisions = vec![refusal.clone()];
    let checkpoint = checkpoint.after(&first);
    ledger.commit(first).expect("committed");
    assert_eq!(ledger.known(&[action(1)]).expect("actions"), [false]);
    assert_eq!(ledger.granted(action(1)).await.expect("a decision"), None);

    // What was refused may be granted later, under the same id.
    let mut second = commit(&checkpoint);
    second.decisions = vec![decision(1, 10)];
    let checkpoint = checkpoint.after(&second);
    ledger.commit(second).expect("committed");
    assert_eq!(ledger.known(&[action(1)]).expect("actions"), [true]);

    let mut third = commit(&checkpoint);
    third.decisions = vec![decision(2, 20), decision(1, 20)];
    assert!(matches!(ledger.commit(third), Err(Error::Invalid(_))));
    assert_eq!(ledger.known(&[action(2)]).expect("actions"), [false]);
    let query = DecisionQuery { len_max: 9, ..DecisionQuery::default() };
    let found = ledger.decisions(query).await.expect("decisions");
    assert_eq!(found.decisions, [decision(1, 10), refusal]);
}

pub fn budgets_are_never_exceeded(ledger: &impl Ledger) {
    let mut checkpoint = ledger.take_over().expect("taken over");
    let mut reserve = |max, reserve| {
        let mut next = commit(&checkpoint);
        next.budgets = vec![budget_change(max, reserve)];
        let after = checkpoint.after(&next);
        let done = ledger.commit(next);
        if done.is_ok() {
            checkpoint = after;
        }
        done.is_ok()
    };

    let changes =
        [(1_000, 500), (1_000, 501), (1_000, 500), (1_000, 1), (400, -200), (400, 1), (1_000, 200)];
    assert_eq!(
        changes.map(|(max, amount)| reserve(max, amount)),
        [true, false, true, false, true, false, true]
    );
    let mut other = budget_key();
    other.period = -1;
    let budgets = ledger.budgets(&[other, budget_key()]).expect("budgets");
    assert_eq!(budgets, [Budget::default(), Budget { max: 1_000, reserved: 1_000, spent: 0 }]);
}

pub fn timers_are_due_in_order(ledger: &impl Ledger) {
    let due = [timer(5, -3), timer(1, 0), timer(3, 0), timer(2, 7), timer(4, 8)];
    let at = |after_ms: i64| timer(0, after_ms).due_ms;
    let committed = commit_to(ledger, |commit| {
        commit.timers = vec![timer(3, 0), timer(4, 8), timer(2, 7), timer(5, -3), timer(1, 0)];
    });
    assert_eq!(ledger.due(at(-4), 9).expect("timers"), []);
    assert_eq!(ledger.due(at(7), 9).expect("timers"), due[..4]);
    assert_eq!(ledger.due(at(100), 2).expect("timers"), due[..2]);
    assert_eq!(ledger.due(at(100), 0).expect("timers"), []);
    let from = |place: &super::Timer| ledger.timers_from((place.due_ms, place.action), 2);
    assert_eq!(from(&due[1]).expect("timers"), due[1..3]);
    assert_eq!(from(&due[4]).expect("timers"), due[4..]);
    assert_eq!(from(&timer(5, 8)).expect("timers"), []);

    // A timer that is set late is found in front of those that were read.
    let mut next = commit(&crate::campaigns::Checkpoint {
        epoch: committed.epoch,
        position: committed.position,
        ..Default::default()
    });
    next.position = next.from;
    next.fired = due[..3].iter().map(|timer| (timer.due_ms, timer.action)).collect();
    next.timers = vec![timer(6, -100)];
    ledger.commit(next).expect("committed");
    assert_eq!(ledger.due(at(7), 9).expect("timers"), [timer(6, -100), timer(2, 7)]);
}

pub async fn states_are_read_in_order<L: Ledger + LedgerReader>(ledger: &L) {
    let key = |kind, owner, subject: &str| StateKey { kind, owner, subject: subject.to_owned() };
    let keys = [
        key(StateKind::Tally, u128::MAX, "z"),
        key(StateKind::Usage, 0, ""),
        key(StateKind::Usage, 1, ""),
        key(StateKind::Usage, 1, "a"),
        key(StateKind::Usage, 1, "a\0"),
        key(StateKind::Usage, 1, "b"),
        key(StateKind::Usage, 2 << 96, ""),
        key(StateKind::Exposure, 0, ""),
    ];
    commit_to(ledger, |commit| {
        let states = keys.iter().rev().map(|key| (key.clone(), Some(key.subject.clone().into())));
        commit.states = states.collect();
    });

    let read = async |from: usize, len_max| {
        let states = ledger.states(keys[from].clone(), len_max).await.expect("states");
        assert!(states.iter().all(|(key, value)| key.subject.as_bytes() == value));
        states.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 9).await, keys[..1]);
    assert_eq!(read(1, 9).await, keys[1..7]);
    assert_eq!(read(3, 2).await, keys[3..5]);
    assert_eq!(read(7, 9).await, keys[7..]);
    assert_eq!(read(1, 0).await, []);

    let elsewhere = BudgetChange { max: 5, ..budget_change(0, 0) };
    let checkpoint = ledger.take_over().expect("taken over");
    let mut next = commit(&checkpoint);
    next.budgets = vec![elsewhere];
    ledger.commit(next).expect("committed");
    let budgets = ledger.budgets_of(7).await.expect("budgets");
    assert_eq!(budgets, [(budget_key(), Budget { max: 5, ..Budget::default() })]);
    assert_eq!(ledger.budgets_of(8).await.expect("budgets"), []);
}
