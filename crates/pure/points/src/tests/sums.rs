//! Liability, and which award paid for what.

use super::in_force;
use crate::command::{Award, Basis, Body, Command};
use crate::script::{Replica, ScriptLedger};
use crate::trace::{PointUse, trace};
use serde_json::json;

/// 2026-01-01T00:00:00Z.
const NOW_MS: i64 = 20_454 * 86_400_000;

fn command(key: &str, body: Body) -> Command {
    Command {
        programme: "p".into(),
        member: "amy".into(),
        key: key.into(),
        source: "".into(),
        occurred_ms: None,
        accepted_ms: None,
        reference: None,
        reason: None,
        body,
    }
}

fn award(points: i64, expires_on: &str) -> Body {
    let expires_on = Some(expires_on.parse().unwrap());
    Body::Award(Award { expires_on, ..Award::of(Basis::Points(points)) })
}

#[test]
fn what_is_owed_is_known_by_month() {
    let programmes = in_force(json!({"programme": "p"}));
    let mut ledger = Replica::new(1);
    let pending = Award { pending_days: Some(9), ..Award::of(Basis::Points(7)) };
    for command in [
        command("a", award(10, "2026-01-02")),
        command("b", award(20, "2026-03-05")),
        command("c", award(30, "2026-03-25")),
        command("d", Body::Award(Award::of(Basis::Points(40)))),
        command("e", Body::Award(pending)),
        command("f", Body::Hold { points: Some(5), until_ms: None, reward: None }),
    ] {
        ledger.execute(&programmes, NOW_MS, &[command]);
    }
    let burn = command("g", Body::Burn { points: 15 });
    ledger.execute(&programmes, NOW_MS + 5 * 86_400_000, &[burn]);

    // The hold ran out after three days, as the lot that it came from did.
    let liability = ledger.state().totals.liability("p");
    let outstanding: Vec<(String, i128)> = liability
        .outstanding
        .iter()
        .map(|(month, points)| (month.map_or("never".into(), |month| month.to_string()), *points))
        .collect();
    assert_eq!(outstanding, [("2026-03".to_owned(), 35), ("never".to_owned(), 40)]);
    assert_eq!((liability.pending, liability.held, liability.arrears), (7, 0, 0));
    assert_eq!((liability.issued, liability.burned, liability.expired), (107, 15, 10));
    assert_eq!(liability.total(), 82);
    assert_eq!(liability.breakage_ppm(), Some(400_000));
    let gone: Vec<(String, i128, i128, Option<i128>)> = liability
        .gone
        .iter()
        .map(|gone| (gone.month.to_string(), gone.burned, gone.expired, gone.breakage_ppm()))
        .collect();
    let months =
        [("2026-01".to_owned(), 0, 10, Some(1_000_000)), ("2026-03".to_owned(), 15, 0, Some(0))];
    assert_eq!(gone, months);
    assert_eq!(ledger.state().totals.liability("q"), Default::default());
}

#[test]
fn points_are_used_in_the_order_in_which_they_came() {
    let programmes = in_force(json!({"programme": "p"}));
    let mut ledger = Replica::new(1);
    let plain = |points| Body::Award(Award::of(Basis::Points(points)));
    for command in [
        command("a", plain(10)),
        command("b", plain(20)),
        command("c", Body::Burn { points: 12 }),
        command("d", plain(5)),
        command("e", Body::Hold { points: Some(10), until_ms: None, reward: None }),
        command("f", Body::Capture { hold: "e".into(), points: Some(4) }),
        command(
            "g",
            Body::Reverse { key: Some("d".into()), source: None, amount: None, points: Some(3) },
        ),
        command(
            "h",
            Body::Reverse { key: Some("b".into()), source: None, amount: None, points: None },
        ),
        command("i", plain(50)),
    ] {
        let answers = ledger.execute(&programmes, NOW_MS, &[command]);
        assert!(matches!(answers[0], crate::desk::Answer::Done(_)), "{answers:?}");
    }

    let traced = trace(ledger.entries().iter().map(|entry| &**entry));
    let used = |credit, debit, points| PointUse { credit, debit, points };
    assert_eq!(
        traced.uses,
        [
            used(1, 3, 10),
            used(2, 3, 2),
            used(2, 6, 4),
            // The reversal of an award takes the award's own points first.
            used(4, 7, 3),
            used(2, 8, 14),
            used(4, 8, 2),
            // What was missing then is paid by the award after it.
            used(9, 8, 4),
        ]
    );
    let left: Vec<(u64, i64)> =
        traced.left.iter().map(|remainder| (remainder.credit, remainder.points)).collect();
    assert_eq!(left, [(9, 46)]);
}

#[test]
fn a_capture_uses_what_expires_first_by_then() {
    let programmes = in_force(json!({"programme": "p",
        "expiry": {"kind": "activity", "months": 1, "graceHours": 0}}));
    let mut ledger = Replica::new(1);
    let extending = |points| {
        let award = Award::of(Basis::Points(points));
        Body::Award(Award { extends: Some(true), ..award })
    };
    let day_ms = 86_400_000;
    let until_ms = Some(NOW_MS + 50 * day_ms);
    for (day, command) in [
        (0, command("a", extending(10))),
        (0, command("b", award(10, "2026-03-15"))),
        (0, command("c", Body::Hold { points: Some(20), until_ms, reward: None })),
        // The first ten points live until the end of March by now.
        (40, command("d", extending(1))),
        (40, command("e", Body::Capture { hold: "c".into(), points: Some(12) })),
    ] {
        let answers = ledger.execute(&programmes, NOW_MS + day * day_ms, &[command]);
        assert!(matches!(answers[0], crate::desk::Answer::Done(_)), "{answers:?}");
    }

    let traced = trace(ledger.entries().iter().map(|entry| &**entry));
    let used = |credit, debit, points| PointUse { credit, debit, points };
    assert_eq!(traced.uses, [used(2, 5, 10), used(1, 5, 2)]);
    let left: Vec<(u64, i64)> =
        traced.left.iter().map(|remainder| (remainder.credit, remainder.points)).collect();
    assert_eq!(left, [(1, 8), (4, 1)]);
}
