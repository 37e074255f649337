//! Erasing a subject.

use super::{
    NOW_MS, action, budget_change, budget_key, commit_to, cost, decision, delivery, state_key,
};
use crate::campaigns::{
    Budget, DecisionQuery, Decisions, Delivery, ErasedRecords, Ledger, LedgerErasure, LedgerReader,
    Outbox, Settled, Settlement, StateKey, StateKind,
};

/// A subject whose name begins with that of another one, and the other one.
const OTHER: &str = "u-77";
const ERASED: &str = "u-7";

pub async fn erases_one_subject_and_keeps_the_ids<L>(ledger: &L)
where
    L: Ledger + LedgerErasure + LedgerReader + Outbox,
{
    let kinds = StateKind::OF_SUBJECTS;
    let states = |subject: &'static str| {
        let key = move |kind| StateKey { kind, ..state_key(subject) };
        let second = StateKey { owner: u128::MAX, ..state_key(subject) };
        kinds.into_iter().map(key).chain([second])
    };
    commit_to(ledger, |commit| {
        let all = states(ERASED).chain(states(OTHER));
        commit.states = all.map(|key| (key, Some(vec![1]))).collect();
        let mark = StateKey { kind: StateKind::Erasure, ..state_key(ERASED) };
        commit.states.push((mark, Some(vec![2])));
        commit.budgets = vec![budget_change(10_000, 4_000)];

        let mut others = decision(9, 5);
        others.subject = OTHER.to_owned();
        let mut refused = decision(2, 1);
        refused.is_granted = false;
        commit.decisions = vec![decision(1, 0), refused, others];

        // One is pending, one delivered, one dead, and one being sent.
        let priced = |number| Delivery { cost: Some(cost(500)), ..delivery(number, 0) };
        commit.deliveries = (1..=4).map(priced).collect();
        commit.deliveries.push(Delivery { subject: OTHER.to_owned(), ..priced(5) });
        commit.deliveries[0].due_ms += 1_000;
    });

    ledger.take("messages", NOW_MS, 3).await.expect("deliveries");
    let settled = |number, settlement| Settled {
        action: action(number),
        at_ms: NOW_MS,
        settlement,
        note: String::new(),
    };
    let results = vec![settled(2, Settlement::Delivered), settled(3, Settlement::Dead)];
    ledger.settle(results).await.expect("settled");
    let spent = Budget { max: 10_000, reserved: 4_000, spent: 500 };
    assert_eq!(ledger.budgets(&[budget_key()]).expect("budgets"), [spent]);

    let erased = ledger.erase(ERASED).expect("erased");
    assert_eq!(erased, ErasedRecords { states: 5, decisions: 2, deliveries: 4 });

    // What was open is returned, and what may arrive is spent.
    let after = Budget { reserved: 3_000, spent: 1_000, ..spent };
    assert_eq!(ledger.budgets(&[budget_key()]).expect("budgets"), [after]);
    ledger.settle(vec![settled(4, Settlement::Delivered)]).await.expect("settled");
    assert_eq!(ledger.budgets(&[budget_key()]).expect("budgets"), [after]);

    let found =
        |keys: Vec<StateKey>| ledger.load(&keys).expect("states").into_iter().flatten().count();
    assert_eq!((found(states(ERASED).collect()), found(states(OTHER).collect())), (0, 5));
    let mark = StateKey { kind: StateKind::Erasure, ..state_key(ERASED) };
    assert_eq!(found(vec![mark]), 1);

    let all = DecisionQuery { len_max: 99, ..DecisionQuery::default() };
    let of_subject = DecisionQuery { subject: Some(ERASED.to_owned()), ..all.clone() };
    let of_campaign = DecisionQuery { campaign: Some(7), ..all.clone() };
    for (query, number) in [(all, 1), (of_subject, 0), (of_campaign, 1)] {
        let Decisions { decisions, .. } = ledger.decisions(query).await.expect("decisions");
        assert_eq!(decisions.len(), number);
    }
    for number in 1..=5 {
        let is_there = ledger.get(action(number)).await.expect("a delivery").is_some();
        assert_eq!(is_there, number == 5, "{number}");
    }

    // The ids stay, and nothing is left to erase.
    assert_eq!(ledger.known(&[action(1), action(2)]).expect("actions"), [true, false]);
    assert_eq!(ledger.erase(ERASED).expect("erased"), ErasedRecords::default());
    let others = ledger.take("messages", NOW_MS + 9_999, 9).await.expect("deliveries");
    assert_eq!(others.len(), 1);
}
