//! The order of arrival does not matter, as long as all arrive within the windows.

use super::in_force;
use crate::command::{Award, Basis, Body, Command};
use crate::identity::WalletId;
use crate::number::Number;
use crate::script::{Replica, ScriptLedger};
use crate::wallet::Wallet;
use proptest::prelude::*;
use serde_json::json;

const HOUR_MS: i64 = 3_600_000;
/// 2026-01-01T00:00:00Z.
const START_MS: i64 = 20_454 * 24 * HOUR_MS;

/// A transaction, with the hours after which it arrives in either of two runs.
type Transaction = (i64, i64, [i64; 2]);

fn settled_end(expiry: &serde_json::Value, transactions: &[Transaction], run: usize) -> Wallet {
    let programmes = in_force(json!({
        "programme": "p",
        "timezone": "Asia/Singapore",
        "expiry": expiry,
        "rules": [{"id": 1, "name": "order", "amount": "data.amount"}],
    }));
    let mut arrivals: Vec<(i64, i64, usize)> = transactions
        .iter()
        .enumerate()
        .map(|(number, (hour, _, late))| (hour + late[run], *hour, number))
        .collect();
    arrivals.sort_unstable();

    let mut ledger = Replica::new(1);
    for (arrives, hour, number) in &arrivals {
        let basis = Basis::Amount {
            amount: Some(Number::whole(transactions[*number].1)),
            rule: Some(1),
            event_type: None,
            facts: None,
            factors: Vec::new(),
        };
        let command = Command {
            programme: "p".into(),
            member: "amy".into(),
            key: format!("k{number}").into(),
            source: "".into(),
            occurred_ms: Some(START_MS + hour * HOUR_MS),
            accepted_ms: None,
            reference: None,
            reason: None,
            body: Body::Award(Award::of(basis)),
        };
        ledger.execute(&programmes, START_MS + arrives * HOUR_MS, &[command]);
    }

    let id = WalletId::new("p", "amy");
    let last = arrivals.last().map_or(0, |(arrives, ..)| *arrives) + 24 * 8;
    let wallet = ledger.wallet(&id);
    wallet.settled(&id, START_MS + last * HOUR_MS, programmes.get("p").unwrap()).0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_order_of_arrival_does_not_matter(
        mut transactions in prop::collection::vec(
            (0_i64..24 * 800, 0_i64..100, [0_i64..24 * 7, 0_i64..24 * 7]), 1..14),
        kind in 0_usize..3,
        months in 1_u16..4,
    ) {
        let expiry = [
            json!({"kind": "activity", "months": months, "reinstateDays": 7}),
            json!({"kind": "fixed", "months": months}),
            json!({"kind": "yearly", "months": months, "date": "06-30"}),
        ];
        let expiry = &expiry[kind];
        // Those that arrive last do so at one time in both runs.
        if let Some(last) = transactions.iter_mut().max_by_key(|(hour, ..)| *hour) {
            last.2 = [24 * 7; 2];
        }
        let first = settled_end(expiry, &transactions, 0);
        let second = settled_end(expiry, &transactions, 1);
        prop_assert_eq!(first.balance(), second.balance());
        prop_assert_eq!(first.lots, second.lots);
        prop_assert_eq!(first.rolling_expires, second.rolling_expires);
    }
}
