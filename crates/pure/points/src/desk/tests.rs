//! What scripts cannot say: groups, sweeps, limits, and how the desk keeps its state.

mod refunds;

use super::{Answer, Desk};
use crate::command::{Award, Basis, Body, Command};
use crate::day::Day;
use crate::document::ProgrammeDocument;
use crate::entry::Kind;
use crate::identity::WalletId;
use crate::limits::{
    ENTRY_POINTS_MAX, HOLD_HOURS_MAX, WALLET_HOLDS_MAX, WALLET_LOTS_MAX, WALLET_PENDING_MAX,
};
use crate::number::Number;
use crate::programme::{Programme, Programmes};
use crate::script::{Replica, ScriptLedger};
use crate::snapshot::{BookHead, Footprint, Snapshot};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// 2026-01-01T00:00:00Z.
const DAY: i32 = 20_454;
const NOW_MS: i64 = DAY as i64 * 86_400_000;

fn programmes(json: &Json, version: u32) -> Programmes {
    let document = ProgrammeDocument::parse(json).unwrap();
    let mut programmes = Programmes::new();
    programmes.insert(Arc::new(Programme::compile(&document, version).unwrap()));
    programmes
}

fn plain() -> Programmes {
    programmes(&json!({"programme": "p"}), 1)
}

fn command(member: &str, key: impl ToString, body: Body) -> Command {
    Command {
        programme: "p".into(),
        member: member.into(),
        key: key.to_string().into(),
        source: "".into(),
        occurred_ms: None,
        accepted_ms: None,
        reference: None,
        reason: None,
        body,
    }
}

fn award(points: i64) -> Body {
    Body::Award(Award::of(Basis::Points(points)))
}

fn together(ledger: &mut Replica, programmes: &Programmes, commands: &[Command]) -> Vec<Answer> {
    let footprint = Footprint::of(commands, programmes, NOW_MS);
    ledger.turn(programmes, NOW_MS, footprint, |desk| desk.execute_together(commands))
}

fn codes(answers: &[Answer]) -> Vec<&'static str> {
    let code = |answer: &Answer| match answer {
        Answer::Done(_) => "ok",
        Answer::Replayed(_) => "replayed",
        Answer::Refused { refusal, .. } | Answer::Invalid(refusal) => refusal.code.as_str(),
    };
    answers.iter().map(code).collect()
}

#[test]
fn a_group_happens_whole_or_not_at_all() {
    let programmes = plain();
    let mut ledger = Replica::new(4);
    let transfer = |points| Body::Transfer { to: "ben".into(), points };
    let good = [command("amy", "a", award(10)), command("amy", "b", transfer(4))];
    assert_eq!(codes(&together(&mut ledger, &programmes, &good)), ["ok", "ok"]);
    assert_eq!(codes(&together(&mut ledger, &programmes, &good)), ["replayed", "replayed"]);

    let entries = ledger.entries().len();
    let bad = [
        command("cy", "c", award(5)),
        command("amy", "d", transfer(6)),
        command("amy", "e", transfer(1)),
        command("cy", "f", award(5)),
    ];
    let answers = together(&mut ledger, &programmes, &bad);
    assert_eq!(
        codes(&answers),
        [
            "transaction_refused",
            "transaction_refused",
            "insufficient_points",
            "transaction_refused"
        ]
    );
    // It would have been done alone, so nothing is left, and it can be sent again.
    assert_eq!(ledger.entries().len(), entries);
    assert_eq!(ledger.wallet(&WalletId::new("p", "amy")).balance(), 6);
    assert_eq!(ledger.wallet(&WalletId::new("p", "cy")).sequence, 0);
    assert_eq!(codes(&together(&mut ledger, &programmes, &bad[2..3])), ["ok"]);

    // A refusal of its own is kept, and stays the answer.
    let entries = ledger.entries().len();
    let bad = [command("cy", "g", award(5)), command("amy", "h", transfer(50))];
    for _ in 0..2 {
        let answers = together(&mut ledger, &programmes, &bad);
        assert_eq!(codes(&answers), ["transaction_refused", "insufficient_points"]);
        assert_eq!(ledger.entries().len(), entries + 1);
    }

    let many: Vec<Command> = (0..17).map(|key| command("amy", key, award(1))).collect();
    assert!(codes(&together(&mut ledger, &programmes, &many)).iter().all(|code| *code != "ok"));
}

#[test]
fn a_malformed_command_of_a_group_leaves_nothing() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    let group = [command("amy", "a", award(5)), command("amy", "b", award(-1))];
    let answers = together(&mut ledger, &programmes, &group);
    assert_eq!(codes(&answers), ["transaction_refused", "points_invalid"]);
    assert!(ledger.entries().is_empty());
}

#[test]
fn commands_are_checked() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    let mut code = |command: Command| codes(&ledger.execute(&programmes, NOW_MS, &[command]))[0];
    assert_eq!(
        code(Command { programme: "q".into(), ..command("a", 1, award(1)) }),
        "programme_unknown"
    );
    assert_eq!(code(command("", 1, award(1))), "member_invalid");
    assert_eq!(code(command("a\nb", 1, award(1))), "member_invalid");
    assert_eq!(code(command(&"a".repeat(129), 1, award(1))), "member_invalid");
    assert_eq!(code(command("a", "", award(1))), "points_invalid");
    assert_eq!(code(command("a", "k".repeat(129), award(1))), "points_invalid");
    let long = Some("r".repeat(129).into());
    assert_eq!(code(Command { reference: long, ..command("a", 1, award(1)) }), "points_invalid");
    let mut budget = Award::of(Basis::Points(1));
    budget.budget = Some("a:b".into());
    assert_eq!(code(command("a", 1, Body::Award(budget))), "points_invalid");
    assert_eq!(code(command("a", 1, award(1))), "ok");
}

#[test]
fn an_empty_group_does_nothing() {
    let mut ledger = Replica::new(1);
    assert_eq!(together(&mut ledger, &plain(), &[]), []);
    assert!(ledger.entries().is_empty());
}

#[test]
fn times_ahead_are_bounded() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    let mut code = |command: Command| codes(&ledger.execute(&programmes, NOW_MS, &[command]))[0];
    let at = |ms: i64| Command { occurred_ms: Some(ms), ..command("a", ms, award(5)) };
    let day_ms = 86_400_000;
    assert_eq!(code(at(NOW_MS + day_ms + 1)), "time_in_future");
    assert_eq!(code(at(i64::MAX)), "time_in_future");
    assert_eq!(code(at(i64::MIN)), "time_invalid");
    assert_eq!(code(at(NOW_MS + day_ms)), "ok");

    assert_eq!(code(command("a", "now", award(5))), "ok");
    let hold = |until_ms| Body::Hold { points: Some(1), until_ms: Some(until_ms), reward: None };
    let last_ms = NOW_MS + i64::from(HOLD_HOURS_MAX) * 3_600_000;
    assert_eq!(code(command("a", "h", hold(last_ms + 1))), "time_invalid");
    assert_eq!(code(command("a", "h", hold(i64::MAX))), "time_invalid");
    assert_eq!(code(command("a", "h", hold(last_ms))), "ok");
    assert_eq!(ledger.entries().len(), 3);
}

/// Gives a member as many points as a wallet can have.
fn fill(ledger: &mut Replica, programmes: &Programmes, member: &str) {
    let many: Vec<Command> =
        (0..1_000).map(|number| command(member, number, award(ENTRY_POINTS_MAX))).collect();
    let answers = ledger.execute(programmes, NOW_MS, &many);
    assert!(codes(&answers).iter().all(|code| *code == "ok"));
}

#[test]
fn a_full_wallet_gets_nothing_more() {
    let json = json!({"programme": "p",
        "partners": [{"name": "hotel", "exchangeIn": {"give": 1, "get": 1}}]});
    let programmes = programmes(&json, 1);
    let mut ledger = Replica::new(2);
    fill(&mut ledger, &programmes, "amy");
    let mut code = |member: &str, key: &str, body: Body| {
        codes(&ledger.execute(&programmes, NOW_MS, &[command(member, key, body)]))[0]
    };
    assert_eq!(code("ben", "a", award(5)), "ok");

    let transfer = || Body::Transfer { to: "amy".into(), points: 5 };
    let exchange = || Body::ExchangeIn { partner: "hotel".into(), points: Some(5), amount: None };
    let adjust = Body::Adjust { points: 5, expires_on: None };
    assert_eq!(code("ben", "t", transfer()), "overflow");
    assert_eq!(code("amy", "x", exchange()), "overflow");
    assert_eq!(code("amy", "j", adjust), "overflow");
    assert_eq!(code("amy", "w", award(5)), "overflow");
    // What is held counts as well.
    let hold = Body::Hold { points: Some(ENTRY_POINTS_MAX), until_ms: None, reward: None };
    assert_eq!(code("amy", "h", hold), "ok");
    assert_eq!(code("ben", "t", transfer()), "overflow");
    assert_eq!(code("amy", "b", Body::Burn { points: 5 }), "ok");
    assert_eq!(code("ben", "t", transfer()), "ok");
    assert_eq!(code("amy", "x", exchange()), "overflow");
}

#[test]
fn what_comes_back_counts_against_the_bound_of_a_wallet() {
    let json = json!({"programme": "p",
        "expiry": {"kind": "activity", "months": 1, "graceHours": 0, "reinstateDays": 5}});
    let programmes = programmes(&json, 1);
    let mut ledger = Replica::new(1);
    fill(&mut ledger, &programmes, "amy");
    let late = |key: &str, points| {
        let body = Award { extends: Some(true), ..Award::of(Basis::Points(points)) };
        let occurred_ms = Some(NOW_MS + 40 * 86_400_000);
        Command { occurred_ms, ..command("amy", key, Body::Award(body)) }
    };

    // All points expire after February, day 59, and come back with an award of the time before.
    let now_ms = NOW_MS + 60 * 86_400_000;
    let mut code = |command| codes(&ledger.execute(&programmes, now_ms, &[command]))[0];
    assert_eq!(code(late("l", 1)), "overflow");
    assert_eq!(code(late("m", 0)), "ok");
    let wallet = ledger.wallet(&WalletId::new("p", "amy"));
    assert_eq!(wallet.balance(), 1_000 * ENTRY_POINTS_MAX);
}

#[test]
fn what_a_member_owes_is_bounded() {
    // Without a floor, which documents have unless they say null.
    let programmes = programmes(&json!({"programme": "p", "arrearsFloor": null}), 1);
    let mut ledger = Replica::new(1);
    let mut code = |key: String, body| {
        codes(&ledger.execute(&programmes, NOW_MS, &[command("amy", key, body)]))[0]
    };
    for number in 0..=1_000 {
        assert_eq!(code(format!("a{number}"), award(ENTRY_POINTS_MAX)), "ok");
        let burn = Body::Burn { points: ENTRY_POINTS_MAX };
        assert_eq!(code(format!("b{number}"), burn), "ok");
    }
    let reverse = |number: i32| Body::Reverse {
        key: Some(format!("a{number}").into()),
        source: None,
        amount: None,
        points: None,
    };
    for number in 0..1_000 {
        assert_eq!(code(format!("r{number}"), reverse(number)), "ok");
    }
    assert_eq!(code("r".into(), reverse(1_000)), "overflow");
}

#[test]
fn time_does_not_go_back() {
    let programmes = plain();
    let head = BookHead { book: 0, sequence: 9, recorded_ms: NOW_MS };
    let state = Snapshot { heads: vec![head], books: 1, ..Snapshot::default() };
    let mut desk = Desk::new(&programmes, state, NOW_MS - 5_000);
    desk.execute(&command("amy", 1, award(1)));
    let turn = desk.finish();
    assert_eq!(turn.recorded_ms, NOW_MS);
    assert_eq!(turn.entries[0].sequence, 10);
    assert_eq!((turn.wallets.len(), turn.moved.len()), (1, 2));
}

#[test]
fn versions_are_noted_in_each_book() {
    let programmes = plain();
    let mut ledger = Replica::new(3);
    ledger.turn(&programmes, NOW_MS, Footprint::default(), |desk| desk.programme("p", 4));
    let noted = ledger.entries().iter().map(|entry| (entry.kind, entry.changes.version));
    assert_eq!(noted.collect::<Vec<_>>(), [(Kind::Programme, Some(4)); 3]);
}

#[test]
fn a_sweep_moves_what_a_new_version_made_due_later() {
    let version = |months: u16| {
        json!({"programme": "p", "expiry": {"kind": "activity", "months": months, "graceHours": months},
            "rules": [{"id": 1, "name": "order", "amount": "data.amount"}]})
    };
    let mut ledger = Replica::new(1);
    let first = programmes(&version(1), 1);
    ledger.execute(&first, NOW_MS, &[command("amy", 1, award(5))]);
    let id = WalletId::new("p", "amy");
    let due = ledger.wallet(&id).due_hour.unwrap();

    let second = programmes(&version(6), 2);
    let swept_ms = i64::from(due) * 3_600_000;
    let mut footprint = Footprint::default();
    footprint.wallet(id.clone());
    let sweep = |ledger: &mut Replica| {
        ledger.turn(&second, swept_ms, footprint.clone(), |desk| desk.sweep(&id))
    };
    assert_eq!(sweep(&mut ledger), 1);
    assert_eq!(ledger.entries().last().unwrap().kind, Kind::Extend);
    assert_eq!(sweep(&mut ledger), 0);
    assert_eq!(ledger.wallet(&WalletId::new("p", "amy")).due_hour, Some(due + 5));
}

#[test]
fn what_expires_at_once_is_part_of_its_award() {
    let expiry = json!({"programme": "p", "expiry": {"kind": "fixed", "months": 1}});
    let programmes = programmes(&expiry, 1);
    let occurred_ms = Some(NOW_MS - 100 * 86_400_000);
    let late = Command { occurred_ms, ..command("amy", 1, award(10)) };
    let answers = together(&mut Replica::new(1), &programmes, &[late]);
    let [Answer::Done(entries)] = &answers[..] else { panic!("{answers:?}") };
    let happened = entries.iter().map(|entry| (entry.kind, entry.balance_after));
    assert!(happened.eq([(Kind::Bonus, 10), (Kind::Expire, 0)]), "{entries:?}");
}

#[test]
fn a_partner_that_left_is_refused_also_where_its_commands_waited() {
    let left = json!({"programme": "p", "formerPartners": ["skyair"]});
    let programmes = programmes(&left, 2);
    let waited = Command { source: "skyair".into(), ..command("amy", 1, award(10)) };
    let answers = together(&mut Replica::new(1), &programmes, &[waited]);
    assert_eq!(codes(&answers), ["source_foreign"]);
}

#[test]
fn an_exchange_leaves_no_points_over() {
    let mut ledger = Replica::new(1);
    let mut give = |decimals: u8, rate: (u32, u32), points: i64| {
        let document = json!({"programme": "p", "decimals": decimals, "partners": [
            {"name": "skyair", "exchange": {"give": rate.0, "get": rate.1}}]});
        let programmes = programmes(&document, 1);
        let key = format!("{decimals} {rate:?} {points}");
        let given = command("amy", format!("{key} given"), award(points));
        let out = command("amy", key, Body::ExchangeOut { partner: "skyair".into(), points });
        match &ledger.execute(&programmes, NOW_MS, &[given, out])[1] {
            Answer::Done(entries) => {
                entries[0].explain.as_ref().unwrap().amount.unwrap().to_string()
            }
            Answer::Invalid(refusal) => format!("{}: {}", refusal.code.as_str(), refusal.detail),
            answer => panic!("{answer:?}"),
        }
    };
    assert_eq!(give(0, (1_000, 1), 2_000), "2");
    let in_thousands = "points_invalid: `skyair` takes points in multiples of 1000";
    assert_eq!(give(0, (1_000, 1), 1_999), in_thousands);
    assert_eq!(give(0, (1_000, 1), 999), in_thousands);
    assert_eq!(give(0, (1, 3), 5), "15");
    assert_eq!(give(0, (6, 4), 9), "6");
    let in_threes = "points_invalid: `skyair` takes points in multiples of 3";
    assert_eq!(give(0, (6, 4), 10), in_threes);
    assert_eq!(give(2, (1, 4), 125), "5");
    let in_quarters = "points_invalid: `skyair` takes points in multiples of 0.25";
    assert_eq!(give(2, (1, 4), 130), in_quarters);
}

#[test]
fn a_version_that_is_needed_is_kept_beside_newer_ones() {
    let version = |number: u32| programmes(&json!({"programme": "p"}), number);
    let mut known = version(9);
    (1..9).for_each(|number| known.keep_all_of(&version(number)));
    known.forget_others(&[(Arc::from("p"), 2)].into());
    let kept = (1..=9).filter(|number| known.version("p", *number).is_some());
    assert!(kept.eq([2, 5, 6, 7, 8, 9]));
}

#[test]
fn terms_say_what_moves_wallets_in_the_due_index() {
    let terms = |members: Json| {
        let mut document = json!({"programme": "p", "remindDays": [7],
            "expiry": {"kind": "activity", "months": 6}});
        for (name, value) in members.as_object().unwrap() {
            document[name] = value.clone();
        }
        programmes(&document, 1).get("p").unwrap().due_terms()
    };
    let before = terms(json!({}));
    assert_eq!(terms(json!({"unit": "miles", "holdHours": 1})), before);
    for change in [
        json!({"remindDays": [7, 30]}),
        json!({"timezone": "Asia/Singapore"}),
        json!({"expiry": {"kind": "activity", "months": 6, "graceHours": 25}}),
        json!({"tiers": {"levels": [{"name": "member", "from": 0}]}}),
    ] {
        assert_ne!(terms(change.clone()), before, "{change}");
    }
}

#[test]
fn the_factors_of_a_partner_are_bounded_together() {
    let programmes = programmes(
        &json!({"programme": "p", "partners": [{"name": "sky", "ownFactors": {"max": 10}}],
            "tables": {"x": {"by": ["data.x"], "default": 2}, "y": {"by": ["data.y"], "default": 3}},
            "rules": [{"id": 1, "name": "order", "amount": "data.amount", "factors": ["x", "y"]}]}),
        1,
    );
    let mut ledger = Replica::new(1);
    let mut number = 0;
    let mut answer = |source: &str, rule: Option<u32>, factors: &[(&str, i64)]| {
        number += 1;
        let own = factors.iter().map(|(name, value)| ((*name).into(), Number::whole(*value)));
        let basis = Basis::Amount {
            amount: Some(Number::ONE),
            rule,
            event_type: None,
            facts: None,
            factors: own.collect(),
        };
        let body = Body::Award(Award::of(basis));
        let command = Command { source: source.into(), ..command("amy", number, body) };
        codes(&ledger.execute(&programmes, NOW_MS, &[command]))[0]
    };
    assert_eq!(answer("sky", Some(1), &[("x", 5), ("y", 2)]), "ok");
    assert_eq!(answer("sky", Some(1), &[("x", 5), ("y", 3)]), "partner_limit");
    assert_eq!(answer("sky", Some(1), &[("x", 5), ("z", 2)]), "points_invalid");
    assert_eq!(answer("sky", None, &[("factor 1", 5), ("factor 2", 2)]), "ok");
    assert_eq!(answer("sky", None, &[("factor 1", 10), ("factor 2", 10)]), "partner_limit");
    // Operators answer for what they bring.
    assert_eq!(answer("", Some(1), &[("x", 5), ("z", 20)]), "ok");
}

#[test]
fn points_that_are_pending_on_the_date_of_a_year_expire_a_year_later() {
    let programmes = programmes(
        &json!({"programme": "p", "pendingDays": 30, "expiry": {"kind": "yearly", "date": "01-10"}}),
        1,
    );
    let mut ledger = Replica::new(1);
    ledger.execute(&programmes, NOW_MS, &[command("amy", 1, award(5))]);
    let id = WalletId::new("p", "amy");
    // The last of January is the first day on which the points can be spent.
    ledger.settle(&programmes, NOW_MS + 30 * 86_400_000, &id);
    let wallet = ledger.wallet(&id);
    assert_eq!(wallet.balance(), 5);
    assert_eq!(wallet.expires_on().unwrap().to_string(), "2027-01-10");
}

#[test]
fn reminders_are_written_once() {
    let programmes = programmes(
        &json!({"programme": "p", "remindDays": [7, 30], "expiry": {"kind": "fixed", "months": 2}}),
        1,
    );
    let mut ledger = Replica::new(1);
    ledger.execute(&programmes, NOW_MS, &[command("amy", 1, award(5))]);
    let id = WalletId::new("p", "amy");
    for day in 0..100 {
        ledger.settle(&programmes, NOW_MS + day * 86_400_000, &id);
    }
    // The lot ends with March: days 89, and a day of grace.
    let found: Vec<_> = ledger
        .entries()
        .iter()
        .map(|entry| (entry.kind.name(), (entry.recorded_ms - NOW_MS) / 86_400_000))
        .collect();
    assert_eq!(found, [("bonus", 0), ("remind", 59), ("remind", 82), ("expire", 91)]);
}

/// The sweep stood still, or a new version of the programme asks for reminders.
#[test]
fn nobody_is_reminded_of_points_that_are_gone() {
    let programmes = programmes(
        &json!({"programme": "p", "remindDays": [7, 30], "expiry": {"kind": "fixed", "months": 2}}),
        1,
    );
    let day_ms = |day: i64| NOW_MS + day * 86_400_000;
    let mut ledger = Replica::new(1);
    ledger.execute(&programmes, day_ms(0), &[command("amy", 1, award(5))]);
    ledger.execute(&programmes, day_ms(31), &[command("amy", 2, award(7))]);
    // The first lot ended with March, and the second one ends with April.
    ledger.settle(&programmes, day_ms(100), &WalletId::new("p", "amy"));
    let found: Vec<_> = ledger.entries().iter().map(|entry| entry.kind.name()).collect();
    assert_eq!(found, ["bonus", "bonus", "expire", "remind"]);
    let reminded = ledger.entries().last().unwrap().changes.reminded.unwrap();
    assert_eq!(reminded.expires.to_string(), "2026-04-30");
}

#[test]
fn lots_beyond_the_limit_merge_into_the_later_date() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    let dated = |number: i32| {
        let expires_on = Some(Day(DAY + 10 * number + i32::from(number > 40)));
        Body::Award(Award { expires_on, ..Award::of(Basis::Points(1)) })
    };
    for number in 0..WALLET_LOTS_MAX as i32 + 6 {
        ledger.execute(&programmes, NOW_MS, &[command("amy", number, dated(number))]);
    }
    let wallet = ledger.wallet(&WalletId::new("p", "amy"));
    assert_eq!((wallet.lots.len(), wallet.balance()), (WALLET_LOTS_MAX, 70));
    // No point expires earlier than it would have by itself.
    let mut dates: Vec<i32> =
        (0..70).map(|number| DAY + 10 * number + i32::from(number > 40)).collect();
    dates.sort_unstable();
    let mut after = Vec::new();
    for (points, day) in wallet.lots_by_date() {
        after.extend(std::iter::repeat_n(day.unwrap().0, points as usize));
    }
    assert!(dates.iter().zip(&after).all(|(own, merged)| merged >= own));

    let transfer = Body::Transfer { to: "ben".into(), points: 70 };
    assert_eq!(
        codes(&ledger.execute(&programmes, NOW_MS, &[command("amy", "t", transfer)])),
        ["ok"]
    );
}

#[test]
fn holds_and_pending_days_are_bounded() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    let mut code = |body: Body, key: &str| {
        codes(&ledger.execute(&programmes, NOW_MS, &[command("amy", key, body)]))[0]
    };
    assert_eq!(code(award(1_000), "a"), "ok");
    let hold = || Body::Hold { points: Some(1), until_ms: None, reward: None };
    for number in 0..WALLET_HOLDS_MAX {
        assert_eq!(code(hold(), &format!("h{number}")), "ok");
    }
    assert_eq!(code(hold(), "h"), "wallet_full");

    // Two expiries on each of these days.
    let pending = |days: usize, expires_on| {
        let pending_days = Some(days as u16);
        Body::Award(Award { pending_days, expires_on, ..Award::of(Basis::Points(1)) })
    };
    for number in 0..WALLET_PENDING_MAX {
        let expires_on = (number % 2 == 1).then_some(Day(DAY + 1_000));
        assert_eq!(code(pending(1 + number / 2, expires_on), &format!("p{number}")), "ok");
    }
    assert_eq!(code(pending(300, None), "p"), "wallet_full");
    assert_eq!(code(pending(7, None), "p"), "ok");
}

#[test]
#[should_panic(expected = "no entry is left out (I4)")]
fn an_entry_that_is_not_the_next_one_is_not_applied() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    for key in 0..2 {
        ledger.execute(&programmes, NOW_MS, &[command("amy", key, award(1))]);
    }
    crate::wallet::Wallet::default().apply(&ledger.entries()[1]);
}

#[test]
fn damaged_bytes_are_refused() {
    let programmes = plain();
    let mut ledger = Replica::new(1);
    ledger.execute(&programmes, NOW_MS, &[command("amy", 1, award(1))]);
    let mut bytes = Vec::new();
    ledger.entries()[0].encode(&mut bytes);
    for len in 0..bytes.len() {
        assert!(crate::entry::Entry::decode(&bytes[..len]).is_err());
    }
    let mut wallet = Vec::new();
    ledger.wallet(&WalletId::new("p", "amy")).encode(&mut wallet);
    for len in 0..wallet.len() {
        assert!(crate::wallet::Wallet::decode(&wallet[..len]).is_err());
    }
}
