//! What the ledger forgets.

use super::{DAY_MS, NOW_MS, action, commit_to, decision, delivery};
use crate::campaigns::{
    DecisionQuery, Horizons, Ledger, LedgerReader, LedgerRetention, Outbox, Settled, Settlement,
    StateKey, StateKind,
};

pub async fn forgets_each_kind_at_its_time<L>(ledger: &L)
where
    L: Ledger + LedgerReader + LedgerRetention + Outbox,
{
    commit_to(ledger, |commit| {
        // One granted and one refused action of each day, and two deliveries that end.
        for day in 0..6_u8 {
            let granted = decision(day * 2 + 1, i64::from(day) * DAY_MS);
            let mut refused = decision(day * 2 + 2, i64::from(day) * DAY_MS);
            refused.is_granted = false;
            commit.decisions.extend([granted, refused]);
        }
        commit.deliveries = (1..=4).map(|number| delivery(number, 0)).collect();
    });

    ledger.take("messages", NOW_MS, 3).await.expect("deliveries");
    let settled = |number, settlement, days| Settled {
        action: action(number),
        at_ms: NOW_MS + days * DAY_MS,
        settlement,
        note: String::new(),
    };
    let results = vec![
        settled(1, Settlement::Delivered, 1),
        settled(2, Settlement::Refused, 4),
        settled(3, Settlement::Dead, 1),
    ];
    ledger.settle(results).await.expect("settled");

    let expire = |decisions_days: i64, actions_days: i64, deliveries_days: i64| {
        let before_ms = |days| NOW_MS + days * DAY_MS;
        let horizons = Horizons {
            decisions_before_ms: before_ms(decisions_days),
            actions_before_ms: before_ms(actions_days),
            deliveries_before_ms: before_ms(deliveries_days),
        };
        // Two at a time, until nothing is left; again, in case that a call found too little.
        (0..20).map(|_| ledger.expire(horizons, 2).expect("expired")).sum::<usize>()
    };
    let decided = async || {
        let query = DecisionQuery { len_max: 99, ..DecisionQuery::default() };
        ledger.decisions(query).await.expect("decisions").decisions.len()
    };
    let by_subject = async || {
        let subject = Some("u-7".to_owned());
        let query = DecisionQuery { subject, campaign: Some(7), len_max: 99, ..Default::default() };
        ledger.decisions(query).await.expect("decisions").decisions.len()
    };
    let known = || {
        let granted: Vec<_> = (0..6).map(|day| action(day * 2 + 1)).collect();
        ledger.known(&granted).expect("actions")
    };

    assert_eq!(expire(0, 0, 0), 0);
    assert_eq!((decided().await, known()), (12, vec![true; 6]));

    // Decisions of two days go, their ids stay.
    assert_eq!(expire(2, 0, 0), 4);
    assert_eq!((decided().await, by_subject().await, known()), (8, 8, vec![true; 6]));
    assert_eq!(ledger.granted(action(1)).await.expect("a decision"), None);
    assert!(ledger.granted(action(5)).await.expect("a decision").is_some());

    // Then ids go, and never before their decisions.
    assert_eq!(expire(2, 1, 0), 1);
    assert_eq!(known(), [false, true, true, true, true, true]);
    assert_eq!(expire(2, 3, 0), 4);
    assert_eq!((decided().await, known()), (6, vec![false, false, false, true, true, true]));

    // Deliveries that ended go; dead and pending ones stay.
    assert_eq!(expire(2, 3, 4), 1);
    assert_eq!(ledger.get(action(1)).await.expect("a delivery"), None);
    assert_eq!(expire(2, 3, 99), 1);
    for (number, is_there) in [(2, false), (3, true), (4, true)] {
        assert_eq!(ledger.get(action(number)).await.expect("a delivery").is_some(), is_there);
    }
}

pub fn removes_the_states_of_one_owner<L: Ledger + LedgerRetention>(ledger: &L) {
    let key = |kind: StateKind, owner: u128, subject: &str| StateKey {
        kind,
        owner,
        subject: subject.to_owned(),
    };
    let others = [
        key(StateKind::Tally, 6, "a"),
        key(StateKind::Tally, 8, ""),
        key(StateKind::Usage, 7, "a"),
    ];
    let own: Vec<StateKey> =
        ["", "a", "b", "c", "d"].map(|subject| key(StateKind::Tally, 7, subject)).into();
    commit_to(ledger, |commit| {
        let all = others.iter().chain(&own);
        commit.states = all.map(|key| (key.clone(), Some(vec![1]))).collect();
    });

    let remove = || ledger.remove_states(StateKind::Tally, 7, 3).expect("removed");
    assert_eq!((remove(), remove(), remove()), (3, 2, 0));
    let left = |keys: &[StateKey]| ledger.load(keys).expect("states").into_iter().flatten().count();
    assert_eq!((left(&own), left(&others)), (0, 3));
}
