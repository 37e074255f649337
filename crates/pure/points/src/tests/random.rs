//! Random commands: the ledger and the oracle must agree after each.

use super::in_force;
use super::oracle::{MONTHS, Member, Outcome, REINSTATE_DAYS, Terms};
use crate::command::{Award, Basis, Body, Command};
use crate::day::Day;
use crate::desk::Answer;
use crate::identity::WalletId;
use crate::number::Number;
use crate::programme::Programmes;
use crate::script::{Replica, ScriptLedger};
use crate::trace::trace;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// 2026-01-01T00:00:00Z.
const START_MS: i64 = 20_454 * DAY_MS;
const MEMBERS: [&str; 2] = ["amy", "ben"];

#[derive(Clone, Debug)]
enum Deed {
    Earn {
        points: i64,
        late_hours: i64,
        pending_days: i64,
    },
    Dated {
        points: i64,
        days: i64,
    },
    Bonus {
        points: i64,
        late_hours: i64,
    },
    Burn {
        points: i64,
    },
    Hold {
        points: i64,
        hours: i64,
    },
    /// The number of an earlier hold, counted back.
    Capture {
        back: u32,
        points: i64,
    },
    Release {
        back: u32,
    },
    Reverse {
        back: u32,
        points: Option<i64>,
    },
    Look,
}

fn deed() -> impl Strategy<Value = Deed> {
    let points = 0_i64..60;
    prop_oneof![
        4 => (points.clone(), late(), prop_oneof![Just(0_i64), 0_i64..20])
            .prop_map(|(points, late_hours, pending_days)| {
                Deed::Earn { points, late_hours, pending_days }
            }),
        2 => (points.clone(), 0_i64..120).prop_map(|(points, days)| Deed::Dated { points, days }),
        1 => (points.clone(), late())
            .prop_map(|(points, late_hours)| Deed::Bonus { points, late_hours }),
        3 => (1_i64..50).prop_map(|points| Deed::Burn { points }),
        2 => (1_i64..50, 1_i64..24 * 60).prop_map(|(points, hours)| Deed::Hold { points, hours }),
        2 => (0_u32..6, 1_i64..50).prop_map(|(back, points)| Deed::Capture { back, points }),
        1 => (0_u32..6).prop_map(|back| Deed::Release { back }),
        2 => (0_u32..12, prop::option::of(1_i64..30))
            .prop_map(|(back, points)| Deed::Reverse { back, points }),
        1 => Just(Deed::Look),
    ]
}

/// Hours after which a transaction arrives: within the windows, or long after them.
fn late() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 0_i64..24 * 9, 1 => 0_i64..24 * 200]
}

/// Hours that pass before a command: often few, sometimes past an expiry.
fn pause() -> impl Strategy<Value = i64> {
    prop_oneof![5 => 0_i64..48, 2 => 0_i64..24 * 40, 1 => 24_i64 * 80..24 * 130]
}

fn command(member: &str, number: u32, occurred_ms: Option<i64>, body: Body) -> Command {
    Command {
        programme: "p".into(),
        member: member.into(),
        key: format!("k{number}").into(),
        source: "".into(),
        occurred_ms,
        accepted_ms: None,
        reference: None,
        reason: None,
        body,
    }
}

/// A deed as a command, and what the oracle makes of it.
fn perform(
    deed: &Deed,
    number: u32,
    name: &str,
    now_ms: i64,
    member: &mut Member,
) -> (Option<Command>, Outcome) {
    member.pass(now_ms);
    let make = |body| Some(command(name, number, None, body));
    let plain =
        |points| Terms { points, date: None, extends: false, pending_days: 0, occurred_ms: now_ms };
    match *deed {
        Deed::Earn { points, late_hours, pending_days } => {
            let occurred_ms = (now_ms - late_hours * HOUR_MS).max(START_MS);
            let basis = Basis::Amount {
                amount: Some(Number::whole(points)),
                rule: Some(1),
                event_type: None,
                facts: None,
                factors: Vec::new(),
            };
            let award = Award { pending_days: Some(pending_days as u16), ..Award::of(basis) };
            let terms = Terms { points, date: None, extends: true, pending_days, occurred_ms };
            let made = member.award(number, terms, now_ms);
            (Some(command(name, number, Some(occurred_ms), Body::Award(award))), made)
        }
        Deed::Dated { points, days } => {
            let date = now_ms / DAY_MS + days;
            let expires_on = Some(Day(date as i32));
            let award = Award { expires_on, ..Award::of(Basis::Points(points)) };
            let terms = Terms { date: Some(date), ..plain(points) };
            let made = member.award(number, terms, now_ms);
            (make(Body::Award(award)), made)
        }
        Deed::Bonus { points, late_hours } => {
            let occurred_ms = (now_ms - late_hours * HOUR_MS).max(START_MS);
            let award = Award::of(Basis::Points(points));
            let made = member.award(number, Terms { occurred_ms, ..plain(points) }, now_ms);
            (Some(command(name, number, Some(occurred_ms), Body::Award(award))), made)
        }
        Deed::Burn { points } => (make(Body::Burn { points }), member.burn(points)),
        Deed::Hold { points, hours } => {
            let until_ms = now_ms + hours * HOUR_MS;
            let body = Body::Hold { points: Some(points), until_ms: Some(until_ms), reward: None };
            (make(body), member.hold(number, points, until_ms))
        }
        Deed::Capture { back, points } => {
            let key = number.saturating_sub(back);
            let body = Body::Capture { hold: format!("k{key}").into(), points: Some(points) };
            (make(body), member.resolve(key, points, now_ms))
        }
        Deed::Release { back } => {
            let key = number.saturating_sub(back);
            let body = Body::Release { hold: format!("k{key}").into() };
            (make(body), member.resolve(key, 0, now_ms))
        }
        Deed::Reverse { back, points } => {
            let key = number.saturating_sub(back);
            let body = Body::Reverse {
                key: Some(format!("k{key}").into()),
                source: None,
                amount: None,
                points,
            };
            (make(body), member.reverse(key, points))
        }
        Deed::Look => (None, Ok(())),
    }
}

fn programmes() -> Programmes {
    in_force(serde_json::json!({
        "programme": "p",
        "expiry": {"kind": "activity", "months": MONTHS, "reinstateDays": REINSTATE_DAYS},
        "rules": [{"id": 1, "name": "order", "amount": "data.amount"}],
    }))
}

fn compare(
    ledger: &mut Replica,
    programmes: &Programmes,
    name: &str,
    member: &Member,
    now_ms: i64,
) {
    let id = WalletId::new("p", name);
    let stored = ledger.wallet(&id);
    let (wallet, _) = stored.settled(&id, now_ms, programmes.get("p").unwrap());
    assert_eq!(wallet.available(), member.available());
    assert_eq!(wallet.arrears, member.arrears);
    assert_eq!(wallet.pending_points(), member.pending());
    assert_eq!(wallet.held_points(), member.held());

    let mut by_date = BTreeMap::new();
    for (points, day) in wallet.lots_by_date() {
        *by_date.entry(i64::from(day.unwrap().0)).or_default() += points;
    }
    assert_eq!(by_date, member.by_date());
}

/// Where points went adds up to what there was.
fn check_trace(ledger: &Replica, name: &str) {
    let own = ledger.entries().iter().filter(|entry| entry.member.as_deref() == Some(name));
    let traced = trace(own.map(|entry| &**entry));
    let wallet = &ledger.state().wallets.get(&WalletId::new("p", name));
    let Some(wallet) = wallet else { return };
    let left: i64 = traced.left.iter().map(|remainder| remainder.points).sum();
    assert_eq!(left, wallet.available());
    for lot in &wallet.lots {
        let of_lot = traced.left.iter().filter(|remainder| remainder.expiry == lot.expiry);
        assert_eq!(of_lot.map(|remainder| remainder.points).sum::<i64>(), lot.points);
    }
    assert!(traced.uses.iter().all(|used| used.points > 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_ledger_agrees_with_the_oracle(
        deeds in prop::collection::vec((pause(), 0_usize..2, deed()), 1..60),
    ) {
        let programmes = programmes();
        let mut ledger = Replica::new(3);
        let mut members = [Member::default(), Member::default()];
        let mut now_ms = START_MS;
        for ((pause, place, deed), number) in deeds.iter().zip(1_u32..) {
            now_ms += pause * HOUR_MS;
            let name = MEMBERS[*place];
            let member = &mut members[*place];
            let before = format!("{:?}", member);
            let (command, expected) = perform(deed, number, name, now_ms, member);
            if let Some(command) = command {
                let answers = ledger.execute(&programmes, now_ms, std::slice::from_ref(&command));
                let found = match &answers[0] {
                    Answer::Done(_) => Ok(()),
                    Answer::Refused { refusal, .. } | Answer::Invalid(refusal) => {
                        Err(refusal.code.as_str())
                    }
                    Answer::Replayed(_) => Err("replayed"),
                };
                // A key that is not that of a hold or an award of the member has other codes.
                let is_other = |code: Result<(), &str>| matches!(
                    code,
                    Err("reference_unknown" | "entry_not_reversible" | "hold_unknown")
                );
                let agrees = found == expected || is_other(found) && is_other(expected);
                prop_assert!(agrees, "{command:?}: {found:?}, not {expected:?}; {before}");

                // The same again changes nothing.
                if number % 7 == 0 {
                    let again = ledger.execute(&programmes, now_ms, std::slice::from_ref(&command));
                    let is_same = match (&answers[0], &again[0]) {
                        (Answer::Done(_), Answer::Replayed(_)) => true,
                        (Answer::Refused { .. }, Answer::Refused { replayed, .. }) => *replayed,
                        (Answer::Invalid(_), Answer::Invalid(_)) => true,
                        _ => false,
                    };
                    prop_assert!(is_same);
                }
            }
            compare(&mut ledger, &programmes, name, member, now_ms);
        }
        MEMBERS.iter().for_each(|name| check_trace(&ledger, name));

        let mut gone = BTreeMap::new();
        for (name, member) in MEMBERS.iter().zip(&mut members) {
            member.pass(now_ms);
            ledger.settle(&programmes, now_ms, &WalletId::new("p", name));
            for ((year, month), (burned, expired)) in &member.gone {
                let sums: &mut (i128, i128) = gone.entry((*year, *month + 1)).or_default();
                sums.0 += i128::from(*burned);
                sums.1 += i128::from(*expired);
            }
        }
        gone.retain(|_, sums| *sums != (0, 0));
        let found = ledger.state().totals.liability("p").gone.into_iter();
        let found = found.map(|gone| (gone.month.civil(), (gone.burned, gone.expired)));
        let found: BTreeMap<_, _> = found.filter(|(_, sums)| *sums != (0, 0)).collect();
        prop_assert_eq!(found, gone);
    }
}
