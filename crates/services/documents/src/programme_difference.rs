//! What differs between two versions of a programme of points, member by member, in words.
//!
//! A programme is mostly tables, so a change names the rows that differ and not the whole table:
//! `vertical SG.food 2` before, `vertical SG.food 3` after.

use raingauge_counters::difference::FieldChange;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The members of a programme, with their names for people.
const MEMBERS: [(&str, &str); 22] = [
    ("unit", "Unit"),
    ("decimals", "Decimals"),
    ("rounding", "Rounding"),
    ("timezone", "Time zone"),
    ("expiry", "Expiry"),
    ("pendingDays", "Days until points can be spent"),
    ("negative", "Negative balances"),
    ("arrearsFloor", "Largest arrears"),
    ("holdHours", "Hours until a hold times out"),
    ("remindDays", "Days before expiry on which members are reminded"),
    ("adjustReview", "Adjustments that two people make"),
    ("unitCost", "Cost of a point"),
    ("tiers", "Tiers"),
    ("tables", "Tables"),
    ("rules", "Rules"),
    ("partners", "Partners"),
    ("formerPartners", "Former partners"),
    ("budgets", "Budgets"),
    ("rewards", "Rewards"),
    ("examples", "Examples"),
    ("owner", "Owner"),
    ("description", "Description"),
];
/// What is in no member of the list.
const REST: (&str, &str) = ("programme", "Programme");
const NOTHING: &str = "nothing";

/// Values by where they are in a document.
type Leaves = BTreeMap<String, String>;

/// The members in which two programmes differ.
pub fn between(before: &Json, after: &Json) -> Vec<FieldChange> {
    let mut changes: Vec<FieldChange> = MEMBERS
        .into_iter()
        .filter_map(|(field, label)| {
            change(field, label, &leaves_of(&before[field]), &leaves_of(&after[field]))
        })
        .collect();

    let rest = |document: &Json| {
        let mut rest = document.clone();
        if let Some(members) = rest.as_object_mut() {
            members.retain(|name, _| MEMBERS.iter().all(|(known, _)| known != name));
        }
        leaves_of(&rest)
    };
    changes.extend(change(REST.0, REST.1, &rest(before), &rest(after)));
    changes
}

fn change(
    field: &'static str,
    label: &'static str,
    before: &Leaves,
    after: &Leaves,
) -> Option<FieldChange> {
    if before == after {
        return None;
    }
    Some(FieldChange { field, label, before: words(before, after), after: words(after, before) })
}

/// The values that the other version has not, or has otherwise.
fn words(leaves: &Leaves, other: &Leaves) -> String {
    let own = leaves.iter().filter(|(path, value)| other.get(*path) != Some(value));
    let words: Vec<String> = own
        .map(|(path, value)| match path.as_str() {
            "" => value.clone(),
            path => format!("{path} {value}"),
        })
        .collect();
    if words.is_empty() { NOTHING.to_owned() } else { words.join("; ") }
}

fn leaves_of(value: &Json) -> Leaves {
    let mut leaves = Leaves::new();
    collect(value, String::new(), &mut leaves);
    leaves
}

fn collect(value: &Json, path: String, leaves: &mut Leaves) {
    let within = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        path => format!("{path} {name}"),
    };
    match value {
        Json::Null => {}
        Json::Object(members) => {
            for (name, value) in members {
                // The rows of a table are what the table is.
                let path = if name == "rows" { path.clone() } else { within(name) };
                collect(value, path, leaves);
            }
        }
        Json::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                collect(item, within(&name_of(item, place)), leaves);
            }
        }
        Json::String(text) => drop(leaves.insert(path, text.clone())),
        other => drop(leaves.insert(path, other.to_string())),
    }
}

/// The name of an item of a list: its own, or its place.
fn name_of(item: &Json, place: usize) -> String {
    match (&item["id"], &item["name"]) {
        (Json::Number(id), _) => id.to_string(),
        (_, Json::String(name)) => name.clone(),
        _ => (place + 1).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_names_the_rows_that_differ() {
        let before = json!({
            "programme": "grab-sg", "unit": "GRP",
            "tables": { "vertical": { "by": ["data.vertical"], "rows": { "SG.food": 2, "*": 1 } } },
            "rules": [{ "id": 1, "name": "food", "amount": "data.amount" }],
        });
        assert_eq!(between(&before, &before), []);

        let mut after = before.clone();
        after["tables"]["vertical"]["rows"]["SG.food"] = json!(3);
        after["rules"][0]["perEventMax"] = json!(20_000);
        after["orbit"] = json!("low");
        let changes = between(&before, &after);
        let texts: Vec<(&str, &str, &str)> = changes
            .iter()
            .map(|change| (change.field, change.before.as_str(), change.after.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                ("tables", "vertical SG.food 2", "vertical SG.food 3"),
                ("rules", "nothing", "1 perEventMax 20000"),
                ("programme", "nothing", "orbit low"),
            ]
        );
    }
}
