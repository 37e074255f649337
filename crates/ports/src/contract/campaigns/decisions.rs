//! How decisions are read.

use super::{NOW_MS, commit_to, decision};
use crate::campaigns::{Decision, DecisionQuery, Ledger, LedgerReader};

/// Decisions of two campaigns and three subjects, with two outcomes; the subjects and outcomes
/// share their beginnings.
fn some() -> Vec<Decision> {
    let subjects = ["u-7", "u-77", "u-7\0"];
    let decisions = (1..=40).map(|number: u8| {
        let at = usize::from(number);
        // Several have the same time.
        let mut decision = decision(number, (at / 3) as i64);
        decision.campaign = if number.is_multiple_of(4) { 8 } else { 7 };
        decision.subject = subjects[at % 3].to_owned();
        decision.is_granted = !number.is_multiple_of(5);
        if !decision.is_granted {
            decision.outcome = "limit_reached".to_owned();
        }
        decision
    });
    decisions.collect()
}

/// All pages of a query.
async fn pages(ledger: &impl LedgerReader, mut query: DecisionQuery) -> Vec<Decision> {
    let mut all = Vec::new();
    loop {
        let page = ledger.decisions(query.clone()).await.expect("decisions");
        assert!(page.decisions.len() <= query.len_max);
        all.extend(page.decisions);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return all,
        }
    }
}

pub async fn are_read_newest_first<L: Ledger + LedgerReader>(ledger: &L) {
    let mut expected = some();
    commit_to(ledger, |commit| commit.decisions = some());
    expected.sort_by_key(|decision| std::cmp::Reverse(decision.place()));

    for len_max in [1, 3, 40, 99] {
        let query = DecisionQuery { len_max, ..DecisionQuery::default() };
        assert_eq!(pages(ledger, query).await, expected, "{len_max}");
    }
    let nothing = DecisionQuery { len_max: 9, from_ms: NOW_MS + 999, ..DecisionQuery::default() };
    assert_eq!(pages(ledger, nothing).await, []);
}

pub async fn are_found_by_all_that_is_asked<L: Ledger + LedgerReader>(ledger: &L) {
    let mut all = some();
    commit_to(ledger, |commit| commit.decisions = some());
    all.sort_by_key(|decision| std::cmp::Reverse(decision.place()));

    for campaign in [None, Some(7), Some(8), Some(9)] {
        for subject in [None, Some("u-7"), Some("u-77"), Some("u-7\0"), Some("u")] {
            for outcome in [None, Some("granted"), Some("limit_reached"), Some("limit")] {
                for (from_ms, to_ms) in [(0, None), (NOW_MS + 3, Some(NOW_MS + 9))] {
                    let query = DecisionQuery {
                        campaign,
                        subject: subject.map(str::to_owned),
                        outcome: outcome.map(str::to_owned),
                        from_ms,
                        to_ms,
                        after: None,
                        len_max: 4,
                    };
                    let expected: Vec<Decision> =
                        all.iter().filter(|decision| query.matches(decision)).cloned().collect();
                    assert_eq!(pages(ledger, query.clone()).await, expected, "{query:?}");
                }
            }
        }
    }
}
