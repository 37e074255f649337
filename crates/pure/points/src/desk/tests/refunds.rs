//! Refunds of many awards, and of awards that come after them.

use super::{NOW_MS, award, codes, command, plain, programmes};
use crate::command::{Award, Basis, Body, Command};
use crate::identity::WalletId;
use crate::limits::REFERENCE_AWARDS_MAX;
use crate::number::Number;
use crate::programme::{EVENT_SOURCE, Programmes};
use crate::script::{Replica, ScriptLedger};
use serde_json::json;

fn back(key: Option<&str>, amount: Option<&str>) -> Body {
    let amount = amount.and_then(Number::parse);
    Body::Reverse { key: key.map(Into::into), source: None, amount, points: None }
}

fn under(reference: &str, command: Command) -> Command {
    Command { reference: Some(reference.into()), ..command }
}

fn balance(ledger: &mut Replica) -> i64 {
    ledger.wallet(&WalletId::new("p", "amy")).balance()
}

#[test]
fn awards_beyond_those_of_a_reference_are_made_and_found_by_their_keys() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    let mut code =
        |command: Command| codes(&ledger.execute(&programmes, NOW_MS, &[under("o", command)]))[0];
    for number in 0..=REFERENCE_AWARDS_MAX {
        assert_eq!(code(command("amy", format!("a{number}"), award(1))), "ok");
    }
    assert_eq!(code(command("amy", "r-1", back(None, None))), "ok");
    let last = format!("a{REFERENCE_AWARDS_MAX}");
    assert_eq!(code(command("amy", "r-2", back(Some("a0"), None))), "entry_not_reversible");
    assert_eq!(code(command("amy", "r-3", back(Some(&last), None))), "ok");
    assert_eq!(code(command("amy", "r-4", back(Some(&last), None))), "entry_not_reversible");
    assert_eq!(balance(&mut ledger), 0);
}

/// A programme that prices an order, once and twice, and has a gift for it.
fn orders() -> Programmes {
    programmes(
        &json!({"programme": "p", "rules": [
            {"id": 1, "name": "order", "amount": "data.amount"},
            {"id": 2, "name": "double", "amount": "data.amount", "factors": ["two"]},
            {"id": 3, "name": "gift", "points": 7}],
            "tables": {"two": {"by": ["data.x"], "default": 2}}}),
        1,
    )
}

/// What a rule awards for the event of an order.
fn of_event(rule: u32, amount: Option<&str>) -> Command {
    let amount = amount.and_then(Number::parse);
    let basis = Basis::Amount {
        amount,
        rule: Some(rule),
        event_type: None,
        facts: None,
        factors: Vec::new(),
    };
    let key = Command::event_key(rule, "shop", "o-1");
    let command = command("amy", key, Body::Award(Award::of(basis)));
    under("o-1", Command { source: EVENT_SOURCE.into(), ..command })
}

/// An event with two rules, of which the table of one is filled after a refund.
#[test]
fn an_award_of_an_event_loses_what_was_refunded_before_it() {
    let programmes = orders();

    let mut ledger = Replica::new(1);
    let mut play = |command: Command| {
        assert_eq!(codes(&ledger.execute(&programmes, NOW_MS, &[command])), ["ok"]);
        balance(&mut ledger)
    };
    assert_eq!(play(of_event(1, Some("10"))), 10);
    let refund = |key: &str, amount| under("o-1", command("amy", key, back(None, Some(amount))));
    assert_eq!(play(refund("r-1", "4")), 6);
    assert_eq!(play(of_event(2, Some("10"))), 6 + 12, "the rest of the order, twice");
    assert_eq!(play(refund("r-2", "6")), 0);
    assert_eq!(play(of_event(3, None)), 0, "nothing is left of the order");
    assert_eq!(play(under("o-1", command("amy", "new", award(5)))), 5, "another transaction");
}

/// The gift of an order is awarded before its points, whose row is missing. The refund is tried
/// again, as one whose award has not come.
#[test]
fn a_refund_by_amount_waits_for_an_award_that_has_one() {
    let programmes = orders();
    let mut ledger = Replica::new(1);
    let mut play = |command: Command| {
        let codes = codes(&ledger.execute(&programmes, NOW_MS, &[command]));
        (codes[0], balance(&mut ledger))
    };
    let refund = |key: &str| under("o-1", command("amy", key, back(None, Some("4"))));
    let of_events = Command { source: EVENT_SOURCE.into(), ..refund("r-1") };

    assert_eq!(play(of_event(3, None)), ("ok", 7));
    assert_eq!(play(of_events.clone()), ("reference_unknown", 7));
    assert_eq!(play(refund("r-2")), ("entry_not_reversible", 7), "a caller need not wait");
    assert_eq!(play(of_event(2, Some("10"))), ("ok", 27));
    assert_eq!(play(of_events), ("ok", 19));
}
