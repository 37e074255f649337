//! Prices of events and facts, and products against arithmetic on paper.

use super::{Facts, Priced, PricedFactor, Unpriced};
use crate::command::{Basis, Body};
use crate::document::ProgrammeDocument;
use crate::number::{Number, Rounding};
use crate::programme::Programme;
use proptest::prelude::*;
use raingauge_core::event::Event;
use serde_json::json;

fn programme() -> Programme {
    let json = json!({
        "programme": "p",
        "tables": {
            "vertical": {"by": ["data.country", "data.vertical"], "rows": {"SG.food": 2, "SG.*": 1}},
            "mixed": {"by": ["tier", "data.country"], "rows": {"gold.SG": 3, "gold.*": 2, "*": 1}},
        },
        "tiers": {"levels": [{"name": "base", "from": 0}, {"name": "gold", "from": 100}]},
        "rules": [
            {"id": 1, "name": "food", "eventType": "order", "member": "data.member",
             "amount": "data.amount", "factors": ["vertical", "mixed"], "reference": "data.order",
             "filter": {"operator": "ne", "lhs": "data.test", "rhs": true},
             "activeFrom": "2026-01-01T00:00:00Z", "activeUntil": "2026-02-01T00:00:00Z"},
            {"id": 2, "name": "extra", "eventType": "order", "member": "subject", "points": 5,
             "filter": {"operator": "exists", "lhs": "data.extra"}},
        ],
    });
    Programme::compile(&ProgrammeDocument::parse(&json).unwrap(), 7).unwrap()
}

/// 2026-01-15T00:00:00Z.
const TIME_MS: i64 = 1_768_435_200_000;

fn priced(data: &str, time_ms: i64) -> Vec<Result<crate::command::Command, Unpriced>> {
    programme().price_event(&Event::of_data("order", time_ms, data))
}

#[test]
fn events_become_commands() {
    let data = r#"{"member": "amy", "country": "SG", "vertical": "food", "amount": "12.50", "order": "o1"}"#;
    let commands = priced(data, TIME_MS);
    let [Ok(command)] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!((&*command.member, &*command.key), ("amy", "1:4:test:1"));
    assert_eq!(command.reference.as_deref(), Some("o1"));
    assert_eq!(command.occurred_ms, Some(TIME_MS));
    let Body::Award(award) = &command.body else { panic!() };
    let Basis::Priced(priced) = &award.basis else { panic!() };

    let points = |tier| programme().product(priced, Some(tier)).unwrap().points;
    assert_eq!(points("base"), 25);
    assert_eq!(points("gold"), 75);
    assert!(matches!(&priced.factors[1], PricedFactor::Open { values, .. } if values.len() == 2));
}

#[test]
fn what_is_missing_is_tried_again_and_what_is_wrong_is_not() {
    let reason = |data: &str| match priced(data, TIME_MS).pop() {
        Some(Err(Unpriced::Missing { detail, .. })) => format!("missing: {detail}"),
        Some(Err(Unpriced::Refused { refusal, .. })) => refusal.code.as_str().to_owned(),
        found => panic!("{found:?}"),
    };
    let data =
        r#"{"member": "amy", "country": "TH", "vertical": "car", "amount": 1, "order": "o"}"#;
    assert_eq!(reason(data), "missing: table `vertical` has no row for TH.car");
    assert_eq!(reason(r#"{"country": "SG", "amount": 1, "order": "o"}"#), "member_invalid");
    assert_eq!(reason(r#"{"member": "amy", "country": "SG", "order": "o"}"#), "points_invalid");
    let negative = r#"{"member": "amy", "country": "SG", "order": "o", "amount": -1}"#;
    assert_eq!(reason(negative), "points_invalid");
    let precise =
        r#"{"member": "amy", "country": "SG", "order": "o", "amount": 1.234567890123456789}"#;
    assert_eq!(reason(precise), "too_precise");
    let unnamed = r#"{"member": "amy", "country": "SG", "amount": 1}"#;
    assert_eq!(reason(unnamed), "points_invalid");
}

#[test]
fn rules_ask_for_their_times_and_filters() {
    let data = r#"{"member": "amy", "country": "SG", "amount": 1, "order": "o"}"#;
    assert_eq!(priced(data, TIME_MS).len(), 1);
    assert_eq!(priced(data, TIME_MS + 31 * 86_400_000).len(), 0);
    assert_eq!(priced(data, TIME_MS - 15 * 86_400_000).len(), 0);
    assert_eq!(priced(r#"{"test": true}"#, TIME_MS).len(), 0);
    // The second rule reads the subject, which this event does not have.
    let both = r#"{"member": "amy", "country": "SG", "amount": 1, "order": "o", "extra": 1}"#;
    let commands = priced(both, TIME_MS);
    assert!(matches!(&commands[..], [Ok(_), Err(Unpriced::Refused { rule: 2, .. })]));
}

#[test]
fn facts_are_priced_by_rules_of_their_time() {
    let facts =
        Facts { event_type: Some("order"), data: r#"{"country": "SG", "amount": 1, "extra": 1}"# };
    let rule_at = |rule: Option<u32>, at_ms: i64| {
        let priced = programme().price_facts(Some(at_ms), rule, None, Some(&facts), &[]);
        priced.map(|priced| priced.rule).map_err(|refusal| refusal.code.as_str())
    };
    let later_ms = TIME_MS + 31 * 86_400_000;
    assert_eq!(rule_at(None, TIME_MS), Ok(Some(1)));
    assert_eq!(rule_at(None, later_ms), Ok(Some(2)));
    assert_eq!(rule_at(Some(1), TIME_MS), Ok(Some(1)));
    assert_eq!(rule_at(Some(1), later_ms), Err("rule_unknown"));
}

#[test]
fn factors_of_a_caller_replace_tables() {
    let facts = Facts { event_type: None, data: r#"{"country": "SG", "amount": 10}"# };
    let own = [("vertical".into(), Number::whole(7)), ("more".into(), Number::whole(2))];
    let priced = programme().price_facts(None, Some(1), None, Some(&facts), &own).unwrap();
    let explain = programme().product(&priced, Some("gold")).unwrap();
    assert_eq!(explain.points, 10 * 7 * 3 * 2);
    let names: Vec<String> =
        explain.factors.iter().map(|factor| format!("{}={}", factor.name, factor.row)).collect();
    assert_eq!(names, ["vertical=own", "mixed=gold.SG", "more=own"]);
}

/// Digits of a product by the method of schools, from the last one.
fn product_on_paper(numbers: &[u64]) -> Vec<u8> {
    let mut product = vec![1_u8];
    for number in numbers {
        let digits: Vec<u8> = number.to_string().bytes().rev().map(|digit| digit - b'0').collect();
        let mut sums = vec![0_u32; product.len() + digits.len() + 1];
        for (place, left) in product.iter().enumerate() {
            for (shift, right) in digits.iter().enumerate() {
                sums[place + shift] += u32::from(left * right);
            }
        }
        let mut carry = 0;
        product = sums
            .into_iter()
            .map(|sum| {
                let all = sum + carry;
                carry = all / 10;
                (all % 10) as u8
            })
            .collect();
    }
    product
}

/// The digits without the last ones, rounded, as a number; `None` where it is too large.
fn rounded_on_paper(digits: &[u8], places: usize, rounding: Rounding) -> Option<i64> {
    let mut padded = digits.to_vec();
    padded.resize(digits.len().max(places) + 1, 0);
    let (rest, whole) = padded.split_at(places);
    let is_odd = whole[0] % 2 == 1;
    let first = rest.last().copied().unwrap_or(0);
    let is_exact_half = first == 5 && rest[..places - 1].iter().all(|digit| *digit == 0);
    let away = match rounding {
        Rounding::Down => false,
        Rounding::Up => rest.iter().any(|digit| *digit != 0),
        Rounding::HalfUp => first >= 5,
        Rounding::HalfEven => first >= 5 && (!is_exact_half || is_odd),
    };
    let text: String = whole.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
    let found = text.parse::<i128>().ok()? + i128::from(away);
    i64::try_from(found).ok()
}

proptest! {
    #[test]
    fn products_agree_with_paper(
        amount in 0_u64..1_000_000_000_000_000_000, amount_scale in 0_i32..12,
        factors in prop::collection::vec((0_u64..100_000, 0_i32..6), 0..4),
    ) {
        let mut numbers = vec![amount];
        numbers.extend(factors.iter().map(|(value, _)| value));
        let scale = amount_scale + factors.iter().map(|(_, scale)| scale).sum::<i32>();
        let digits = product_on_paper(&numbers);

        let known = |(value, scale): &(u64, i32)| PricedFactor::Known {
            name: "x".into(),
            row: "*".into(),
            value: Number::new(i128::from(*value), *scale).unwrap(),
        };
        let priced = Priced {
            version: 1,
            rule: None,
            rule_name: None,
            amount: Number::new(i128::from(amount), amount_scale),
            points: None,
            factors: factors.iter().map(known).collect(),
            budget: None,
            per_event_max: None,
            extends: true,
            qualifies: true,
            pending_days: 0,
        };
        let mut programme = programme();
        for rounding in Rounding::ALL {
            programme.rounding = rounding;
            let expected = rounded_on_paper(&digits, scale as usize, rounding)
                .filter(|points| *points <= crate::limits::ENTRY_POINTS_MAX);
            let found = programme.product(&priced, None).ok().map(|explain| explain.points);
            prop_assert_eq!(found, expected);
        }
    }
}
