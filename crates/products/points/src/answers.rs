//! What the ledger has done, as answers have it.

use crate::refused;
use raingauge_awarding::{
    Allowance, Balance, Error, Explanation, Members, Settlement, StatementRow,
};
use raingauge_http::queries::time;
use raingauge_points::{
    Account, Answer, Day, Entry, Kind, Liability, Number, Programme, Programmes,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A number of points, in units of 10^-decimals: a whole number, or a decimal text.
pub fn points(points: i64, programme: &Programme) -> Value {
    match programme.decimals() {
        0 => json!(points),
        _ => json!(programme.text_of(points)),
    }
}

/// The place of an entry, which is also the id of its event.
pub fn place(entry: &Entry) -> Value {
    match entry.sequence {
        0 => Value::Null,
        sequence => json!(format!("{}:{}:{sequence}", entry.programme, entry.book)),
    }
}

fn day(day: Option<Day>) -> Value {
    json!(day.map(|day| day.to_string()))
}

/// The result of an item of a batch.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ItemResult {
    Done(Box<Done>),
    /// What was refused or failed.
    Other(Value),
}

/// The result of a command that was carried out. Its members are written as they are here: a tree
/// of JSON for each of a thousand awards would take longer than to decide them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    balance: Value,
    entry: Value,
    expires_on: Option<Day>,
    key: Arc<str>,
    kind: &'static str,
    member: Option<Arc<str>>,
    points: Value,
    programme: Arc<str>,
    replayed: bool,
    tier: Option<Arc<str>>,
}

/// The results of a batch, in the order of its items.
#[derive(Serialize)]
pub struct Results {
    pub results: Vec<ItemResult>,
}

/// The result of the command with a key. What a trial decided has no place, since it is no entry.
pub async fn result(
    key: Arc<str>,
    answer: Result<Answer, Error>,
    programmes: &Programmes,
    members: &Members,
    is_trial: bool,
) -> ItemResult {
    let place = |entry: &Entry, is_replayed: bool| {
        if is_trial && !is_replayed { Value::Null } else { place(entry) }
    };
    ItemResult::Other(match &answer {
        Ok(Answer::Done(entries)) => match entries.first() {
            Some(entry) => return done(key, entries, place(entry, false), false, programmes),
            None => Value::Null,
        },
        Ok(Answer::Replayed(first)) => match members.of_command(first).await {
            Ok(entries) => return done(key, &entries, place(first, true), true, programmes),
            Err(error) => refused::failed_item(&error),
        },
        Ok(Answer::Refused { refusal, entry, replayed }) => {
            let mut refused = refused::item(refusal);
            refused["error"]["entry"] = place(entry, *replayed);
            refused["error"]["replayed"] = json!(replayed);
            refused
        }
        Ok(Answer::Invalid(refusal)) => refused::item(refusal),
        Err(error) => refused::failed_item(error),
    })
}

/// What the first entry of a command did with those of its kind behind it, such as the parts of a
/// reversal, and what its member has after the last one.
fn done(
    key: Arc<str>,
    entries: &[Arc<Entry>],
    place: Value,
    replayed: bool,
    programmes: &Programmes,
) -> ItemResult {
    let entry = &entries[0];
    let is_same =
        |other: &&Arc<Entry>| other.programme == entry.programme && other.member == entry.member;
    let own = || entries.iter().filter(is_same);
    let last = own().next_back().unwrap_or(entry);
    let worth = own().filter(|other| other.kind == entry.kind).map(|other| awarded(other)).sum();
    let shown = |amount: i64| match programmes.get(&entry.programme) {
        Some(programme) => points(amount, programme),
        None => json!(amount),
    };
    ItemResult::Done(Box::new(Done {
        balance: shown(last.balance_after),
        entry: place,
        expires_on: last.expires_after,
        key,
        kind: entry.kind.name(),
        member: entry.member.clone(),
        points: shown(worth),
        programme: Arc::clone(&entry.programme),
        replayed,
        tier: last.tier_after.clone(),
    }))
}

/// What an award is worth, also if it is pending or pays arrears, and what its reversal takes of
/// that; the change of the balance by any other entry.
fn awarded(entry: &Entry) -> i64 {
    let is_pending = |account: &Account| matches!(account, Account::Pending { .. });
    match entry.kind {
        Kind::Earn | Kind::Bonus => entry.awarded(),
        Kind::Reverse => {
            let pending = entry.postings.iter().filter(|posting| is_pending(&posting.account));
            entry.points() + pending.map(|posting| posting.amount).sum::<i64>()
        }
        _ => entry.points(),
    }
}

/// What a member has.
pub fn balance(balance: &Balance, programme: &Programme) -> Value {
    let shown = |amount: i64| points(amount, programme);
    let lots: Vec<Value> = balance
        .lots
        .iter()
        .map(|lot| json!({ "points": shown(lot.points), "expiresOn": day(lot.expires_on) }))
        .collect();
    let mut answer = json!({
        "programme": balance.id.programme,
        "member": balance.id.member,
        "available": shown(balance.available),
        "pending": shown(balance.pending),
        "held": shown(balance.held),
        "arrears": shown(balance.arrears),
        "tier": balance.tier,
        "expiresOn": day(balance.expires_on),
        "lots": lots,
    });
    if balance.closed {
        answer["closed"] = json!(true);
    }
    answer
}

/// A row of a statement.
pub fn row(row: &StatementRow, programme: &Programme) -> Value {
    let entry = row.place.map(|(book, sequence)| format!("{}:{book}:{sequence}", programme.name()));
    json!({
        "sequence": row.sequence,
        "entry": entry,
        "kind": row.kind.name(),
        "points": points(row.points, programme),
        "balanceAfter": points(row.balance_after, programme),
        "occurredAt": time(row.occurred_ms),
        "recordedAt": time(row.recorded_ms),
        "reason": row.reason,
        "reference": row.reference,
        "key": row.key,
    })
}

/// An entry with what it follows from.
pub fn entry(entry: &Entry, programme: &Programme) -> Value {
    let mut shown = json!(entry);
    shown["entry"] = place(entry);
    shown["kind"] = json!(entry.kind.name());
    shown["points"] = points(entry.points(), programme);
    shown["balanceAfter"] = points(entry.balance_after, programme);
    shown["occurredAt"] = json!(time(entry.occurred_ms));
    shown["recordedAt"] = json!(time(entry.recorded_ms));
    if let Some(members) = shown.as_object_mut() {
        for name in ["occurredMs", "recordedMs", "fingerprint", "dueHourAfter"] {
            members.remove(name);
        }
    }
    shown["explanation"] = json!(raingauge_points::explain::of_entry(entry, programme));
    shown
}

/// A sum of points over many members.
fn sum(points: i128, programme: &Programme) -> Value {
    match i64::try_from(points) {
        Ok(points) => self::points(points, programme),
        Err(_) => json!(points.to_string()),
    }
}

/// Where the points of a member come from.
pub fn explanation(explanation: &Explanation, programme: &Programme) -> Value {
    let shown = |amount: i64| points(amount, programme);
    let awards: Vec<Value> = explanation
        .left
        .iter()
        .map(|left| {
            json!({
                "entry": place(&left.entry),
                "sequence": left.entry.member_sequence,
                "awarded": shown(awarded(&left.entry)),
                "left": shown(left.points),
                "expiresOn": day(left.expires_on),
                "occurredAt": time(left.entry.occurred_ms),
                "why": left.words,
            })
        })
        .collect();
    let spent: Vec<Value> = explanation
        .spent
        .iter()
        .map(|spent| {
            json!({
                "by": place(&spent.by),
                "kind": spent.by.kind.name(),
                "of": place(&spent.of),
                "points": shown(spent.points),
            })
        })
        .collect();
    json!({
        "balance": balance(&explanation.balance, programme),
        "awards": awards,
        "spent": spent,
        "complete": !explanation.is_cut,
    })
}

/// What a programme owes.
pub fn liability(liability: &Liability, programme: &Programme) -> Value {
    let shown = |amount: i128| sum(amount, programme);
    let months: Vec<Value> = liability
        .outstanding
        .iter()
        .map(|(month, amount)| {
            json!({ "month": month.map(|month| month.to_string()), "points": shown(*amount) })
        })
        .collect();
    let ppm = |ppm: Option<i128>| ppm.map(|ppm| ppm as i64);
    let breakage: Vec<Value> = liability
        .gone
        .iter()
        .map(|gone| {
            json!({
                "month": gone.month,
                "burned": shown(gone.burned),
                "expired": shown(gone.expired),
                "breakagePpm": ppm(gone.breakage_ppm()),
            })
        })
        .collect();
    json!({
        "programme": programme.name(),
        "unit": programme.unit(),
        "outstanding": shown(liability.outstanding.iter().map(|(_, amount)| amount).sum()),
        "months": months,
        "pending": shown(liability.pending),
        "held": shown(liability.held),
        "arrears": shown(liability.arrears),
        "total": shown(liability.total()),
        "issued": shown(liability.issued),
        "burned": shown(liability.burned),
        "expired": shown(liability.expired),
        "adjusted": shown(liability.adjusted),
        "writtenOff": shown(liability.written_off),
        "partners": shown(liability.partners),
        "breakage": breakage,
        "breakagePpm": ppm(liability.breakage_ppm()),
        "worth": worth(liability.total(), programme),
    })
}

/// What points cost, exactly; `None` where the programme does not say what one costs.
fn worth(points: i128, programme: &Programme) -> Option<String> {
    let points = Number::new(points, programme.decimals().into())?;
    Some(points.times(programme.unit_cost()?)?.to_string())
}

/// What the budgets of a programme have left.
pub fn budgets(budgets: &[Allowance], programme: &Programme) -> Value {
    let shown = |amount: i64| points(amount, programme);
    let budgets: Vec<Value> = budgets
        .iter()
        .map(|budget| {
            json!({
                "name": budget.name,
                "limit": budget.most.map(shown),
                "used": shown(budget.used),
                "left": budget.left().map(shown),
            })
        })
        .collect();
    json!({ "programme": programme.name(), "unit": programme.unit(), "budgets": budgets })
}

/// What a programme and a partner owe each other.
pub fn settlement(settlement: &Settlement, programme: &Programme) -> Value {
    let days: Vec<Value> = settlement
        .days
        .iter()
        .map(|(day, points)| json!({ "day": day, "points": sum(*points, programme) }))
        .collect();
    json!({
        "programme": settlement.programme,
        "partner": settlement.partner,
        "balance": sum(settlement.balance, programme),
        "days": days,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_points::ProgrammeDocument;

    #[test]
    fn what_is_owed_is_worth_its_cost_exactly() {
        let shown = |cost: Value| {
            let mut document = json!({ "programme": "shop", "decimals": 2 });
            if !cost.is_null() {
                document["unitCost"] = cost;
            }
            let document = ProgrammeDocument::parse(&document).unwrap();
            let programme = Programme::compile(&document, 1).unwrap();
            let owed = Liability { pending: 12_345, arrears: 45, ..Liability::default() };
            liability(&owed, &programme)["worth"].take()
        };
        // 123.00 points.
        assert_eq!(shown(json!(0.1)), "12.3");
        assert_eq!(shown(json!("0.007")), "0.861");
        assert_eq!(shown(Value::Null), Value::Null);
    }
}
