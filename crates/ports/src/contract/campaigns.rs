//! The contract of the ledger of campaigns.

mod commits;
pub mod databases;
mod decisions;
pub mod documents;
mod erasure;
mod outbox;
mod retention;
pub mod sender;
pub mod tables;

use crate::campaigns::{
    ActionId, BudgetChange, BudgetKey, Checkpoint, Commit, Cost, Decision, Delivery, Ledger,
    LedgerErasure, LedgerReader, LedgerRetention, Outbox, StateKey, StateKind, Timer,
};

/// 2024-09-24T00:00:00Z.
const NOW_MS: i64 = 1_727_136_000_000;
const DAY_MS: i64 = 86_400_000;

/// Runs the whole suite. `fresh` returns an empty ledger each time.
pub async fn suite<L>(fresh: impl Fn() -> L)
where
    L: Ledger + LedgerErasure + LedgerReader + LedgerRetention + Outbox,
{
    commits::an_empty_ledger_has_nothing(&fresh()).await;
    commits::everything_moves_with_the_position(&fresh()).await;
    commits::a_refused_commit_changes_nothing(&fresh()).await;
    commits::a_worker_that_was_replaced_writes_nothing(&fresh());
    commits::an_action_is_granted_once(&fresh()).await;
    commits::budgets_are_never_exceeded(&fresh());
    commits::timers_are_due_in_order(&fresh());
    commits::states_are_read_in_order(&fresh()).await;

    decisions::are_read_newest_first(&fresh()).await;
    decisions::are_found_by_all_that_is_asked(&fresh()).await;

    outbox::sends_what_is_due_in_order(&fresh()).await;
    outbox::tries_again_until_it_is_settled(&fresh()).await;
    outbox::holds_and_releases_a_campaign(&fresh()).await;
    outbox::spends_and_returns_budgets(&fresh()).await;
    outbox::redrives_and_cancels_a_selection(&fresh()).await;
    outbox::lists_every_delivery_in_pages(&fresh()).await;

    retention::forgets_each_kind_at_its_time(&fresh()).await;
    retention::removes_the_states_of_one_owner(&fresh());

    erasure::erases_one_subject_and_keeps_the_ids(&fresh()).await;
}

/// An action with this number.
pub fn action(number: u8) -> ActionId {
    let mut id = [number; 16];
    id[15] = 0;
    ActionId(id)
}

pub fn state_key(subject: &str) -> StateKey {
    StateKey { kind: StateKind::Tally, owner: 7 << 96 | 3, subject: subject.to_owned() }
}

pub fn budget_key() -> BudgetKey {
    BudgetKey { campaign: 7, name: "vouchers".to_owned(), period: 0 }
}

pub fn budget_change(max: i64, reserve: i64) -> BudgetChange {
    BudgetChange { key: budget_key(), max, reserve }
}

pub fn cost(amount: i64) -> Cost {
    Cost { budget: budget_key(), amount, is_refunded: true }
}

/// A granted action of campaign 7 for `u-7`, decided `after_ms` after the beginning.
pub fn decision(number: u8, after_ms: i64) -> Decision {
    Decision {
        action: action(number),
        is_granted: true,
        campaign: 7,
        version: 2,
        step: "reward".to_owned(),
        name: "voucher".to_owned(),
        subject: "u-7".to_owned(),
        source: "mart".to_owned(),
        event: format!("o-{number}"),
        event_ms: NOW_MS,
        decided_ms: NOW_MS + after_ms,
        outcome: "granted".to_owned(),
        variant: (number % 2 == 1).then(|| "b".to_owned()),
        cost: (number % 2 == 1).then(|| cost(500)),
        evidence: r#"{"count.orders":[2,3]}"#.to_owned(),
    }
}

/// A delivery of campaign 7 to `messages`, due `after_ms` after the beginning.
pub fn delivery(number: u8, after_ms: i64) -> Delivery {
    Delivery {
        action: action(number),
        campaign: 7,
        subject: "u-7".to_owned(),
        destination: "messages".to_owned(),
        due_ms: NOW_MS + after_ms,
        cost: None,
        body: format!("{{\"number\":{number}}}").into_bytes(),
    }
}

pub fn timer(number: u8, after_ms: i64) -> Timer {
    Timer {
        due_ms: NOW_MS + after_ms,
        action: action(number),
        campaign: 7,
        subject: "u-7".to_owned(),
        body: vec![number, 0, 255],
    }
}

/// The next commit behind a checkpoint, with nothing in it.
pub fn commit(checkpoint: &Checkpoint) -> Commit {
    Commit {
        epoch: checkpoint.epoch,
        from: checkpoint.position,
        position: checkpoint.position + 10,
        log_ms: NOW_MS,
        ..Commit::default()
    }
}

/// Takes a ledger over and commits.
pub fn commit_to(ledger: &impl Ledger, fill: impl FnOnce(&mut Commit)) -> Commit {
    let checkpoint = ledger.take_over().expect("taken over");
    let mut next = commit(&checkpoint);
    fill(&mut next);
    ledger.commit(next.clone()).expect("committed");
    next
}
