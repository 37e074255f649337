//! Sentences that say how points came about.

use crate::account::Account;
use crate::entry::{Entry, Explain, Kind};
use crate::programme::Programme;
use std::fmt::Write;

/// How the points of an entry came about, in one line.
pub fn of_entry(entry: &Entry, programme: &Programme) -> String {
    let points = |points: i64| format!("{} {}", programme.text_of(points), programme.unit());
    if let Some(refusal) = &entry.refusal {
        return format!("refused: {}", refusal.detail);
    }
    if let (Kind::Earn, Some(explain)) = (entry.kind, &entry.explain) {
        return of_product(explain, programme);
    }

    let moved = points(entry.points().abs());
    match entry.kind {
        Kind::Earn | Kind::Bonus => format!("{} awarded", points(entry.awarded())),
        Kind::Activate => format!("{moved} that were pending can be spent"),
        Kind::Burn => format!("{moved} spent, the earliest to expire first"),
        Kind::Hold => format!("{moved} reserved"),
        Kind::Capture => format!("reserved points spent, {moved} released"),
        Kind::Release => format!("{moved} released"),
        Kind::TransferOut => format!("{moved} given to another member"),
        Kind::TransferIn => format!("{moved} received from another member"),
        Kind::ExchangeOut => format!("{moved} given to {}", of_exchange(entry)),
        Kind::ExchangeIn => format!("{moved} received from {}", of_exchange(entry)),
        Kind::Reverse => {
            let reversed = entry.changes.reversal.as_ref().map_or(0, |reversal| reversal.points);
            let text = format!("{} of an award taken back", points(reversed));
            let expired = entry.postings.iter().filter_map(|posting| match posting.account {
                Account::Expired(_) => Some(-posting.amount),
                _ => None,
            });
            match expired.sum() {
                0 => text,
                expired => format!("{text}, of which {} had expired", programme.text_of(expired)),
            }
        }
        Kind::Adjust => format!("adjusted by {}", points(entry.points())),
        Kind::Expire => format!("{moved} expired"),
        Kind::Reinstate => format!("{moved} came back: a transaction from before was late"),
        Kind::Tier => match &entry.tier_after {
            Some(tier) => format!("tier {tier}"),
            None => "no tier".to_owned(),
        },
        Kind::Remind => match entry.changes.reminded {
            Some(reminder) => format!("points expire after {}", reminder.expires),
            None => "points expire soon".to_owned(),
        },
        Kind::Programme => "another version of the programme is in force".to_owned(),
        Kind::Extend => "the due time follows the programme".to_owned(),
        Kind::Refused => "refused".to_owned(),
        Kind::Close => "closed".to_owned(),
    }
}

/// The partner of an exchange, and how many of its points were on the other side. Entries from
/// before this was computed have none.
fn of_exchange(entry: &Entry) -> String {
    let partner = entry.postings.iter().find_map(|posting| match &posting.account {
        Account::Partner(name, _) => Some(name),
        _ => None,
    });
    let name = partner.map_or("a partner", |name| name);
    let amount = entry.explain.as_ref().and_then(|explain| explain.amount);
    match amount.filter(|amount| !amount.is_zero()) {
        Some(amount) => format!("{name} for {amount} of its points"),
        None => name.to_owned(),
    }
}

/// `15 × vertical 2 (SG.food) × tier 3 (platinum) = 90, half_up → 90`.
pub fn of_product(explain: &Explain, programme: &Programme) -> String {
    let points = programme.text_of(explain.points);
    let (Some(amount), Some(exact)) = (explain.amount, explain.exact) else {
        return match &explain.rule_name {
            Some(rule) => format!("{points} by the rule `{rule}`"),
            None => points,
        };
    };

    let mut text = amount.to_string();
    for factor in &explain.factors {
        // Writing to a text does not fail.
        let _ = write!(text, " × {} {} ({})", factor.name, factor.value, factor.row);
    }
    let _ = write!(text, " = {exact}, {} → ", explain.rounding.name());
    match explain.limit {
        Some(limit) => {
            let _ = write!(text, "at most {}", programme.text_of(limit));
        }
        None => text.push_str(&points),
    }
    text
}
