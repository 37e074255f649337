//! What differs between two versions of a campaign, member by member, in words.

use raingauge_campaigns::campaign::{Action, Campaign, CountWindow, Step};
use raingauge_core::filter::Condition;
use raingauge_core::time::format_rfc3339;
use raingauge_counters::difference::{FieldChange, FieldText};
use serde::Deserialize as _;
use serde_json::{Value as Json, json};

/// The members of a campaign, with their names for people.
const MEMBERS: [(&str, &str); 19] = [
    ("name", "Name"),
    ("state", "State"),
    ("eventTypes", "Event types"),
    ("subject", "Subject"),
    ("zone", "Time zone"),
    ("activeFrom", "Active from"),
    ("activeUntil", "Active until"),
    ("counts", "Counts"),
    ("rule", "Rule"),
    ("steps", "Steps"),
    ("limits", "Limits"),
    ("budgets", "Budgets"),
    ("experiment", "Experiment"),
    ("holdout", "Holdout"),
    ("group", "Group"),
    ("priority", "Priority"),
    ("templates", "Templates"),
    ("owner", "Owner"),
    ("description", "Description"),
];
const NOTHING: &str = "nothing";

/// Describes a campaign member by member, without the id.
pub fn sentences(campaign: &Campaign) -> Vec<FieldText> {
    let json = json!(campaign);
    let text = |(field, label): (&'static str, &'static str)| FieldText {
        field,
        label,
        words: words_of(field, campaign, &json[field]),
    };
    MEMBERS.into_iter().map(text).collect()
}

/// The members in which two campaigns differ, compared by value and not by wording. Documents of a
/// newer release, which cannot be read, have no differences.
pub fn between(before: &Json, after: &Json) -> Vec<FieldChange> {
    let (Ok(old), Ok(new)) = (Campaign::deserialize(before), Campaign::deserialize(after)) else {
        return Vec::new();
    };
    let (before, after) = (json!(old), json!(new));
    let words = sentences(&old).into_iter().zip(sentences(&new));
    let changed = words.filter(|(text, _)| before[text.field] != after[text.field]);
    changed
        .map(|(old, new)| FieldChange {
            field: old.field,
            label: old.label,
            before: old.words,
            after: new.words,
        })
        .collect()
}

fn words_of(field: &str, campaign: &Campaign, value: &Json) -> String {
    let lines = |lines: Vec<String>| {
        if lines.is_empty() { NOTHING.to_owned() } else { lines.join("; ") }
    };
    let instant = |seconds: Option<i64>, otherwise: &str| {
        seconds.map_or_else(|| otherwise.to_owned(), format_rfc3339)
    };
    match field {
        "activeFrom" => instant(campaign.active_from, "the first event on"),
        "activeUntil" => instant(campaign.active_until, "it is changed"),
        "counts" => lines(campaign.counts.iter().map(count).collect()),
        "rule" => campaign.rule.as_ref().map_or("always".to_owned(), condition),
        "steps" => lines(campaign.steps.iter().map(step).collect()),
        "limits" => lines(campaign.limits.iter().map(limit).collect()),
        "budgets" => lines(campaign.budgets.iter().map(budget).collect()),
        "templates" => lines(templates(campaign)),
        _ => plain(value),
    }
}

/// A value as people read it: texts as they are, lists with commas, and the rest as JSON.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => NOTHING.to_owned(),
        Json::String(text) if text.is_empty() => NOTHING.to_owned(),
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Json::Object(members) => {
            let member = |(name, value): (&String, &Json)| format!("{name} {}", plain(value));
            members.iter().map(member).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn condition(condition: &Condition) -> String {
    let parts = condition.conditions.as_deref().unwrap_or_default();
    let operator = condition.operator.as_str();
    match operator {
        "and" | "or" => {
            let inner = |part: &Condition| match part.operator.as_str() {
                "and" | "or" if part.operator != operator => format!("({})", self::condition(part)),
                _ => self::condition(part),
            };
            parts.iter().map(inner).collect::<Vec<_>>().join(&format!(" {operator} "))
        }
        "not" => format!("not ({})", parts.iter().map(self::condition).collect::<String>()),
        _ => {
            let lhs = condition.lhs.as_deref().unwrap_or_default();
            match &condition.rhs {
                Some(rhs) => format!("{lhs} {operator} {rhs}"),
                None => format!("{lhs} {operator}"),
            }
        }
    }
}

fn count((name, count): (&String, &raingauge_campaigns::campaign::Count)) -> String {
    let window = match &count.window {
        CountWindow::Campaign => "over the campaign".to_owned(),
        CountWindow::Calendar(period) => format!("of the {}", plain(&json!(period))),
        CountWindow::Last(last) => format!("over the last {}", plain(&json!(last))),
        CountWindow::Counter { template, last } => {
            format!("of the counter {template} over the last {}", plain(&json!(last)))
        }
    };
    let types = if count.event_types.is_empty() {
        String::new()
    } else {
        format!(" of {}", count.event_types.join(", "))
    };
    let filter = count.filter.as_ref().map(|filter| format!(" where {}", condition(filter)));
    let value = json!(count.value);
    let value =
        if value == json!(1) { String::new() } else { format!(" adding {}", plain(&value)) };
    format!("{name}: {window}{types}{}{value}", filter.unwrap_or_default())
}

fn step(step: &Step) -> String {
    let when = step.when.as_ref().map(|when| format!(" when {}", condition(when)));
    let variants = if step.variants.is_empty() {
        String::new()
    } else {
        format!(" for {}", step.variants.join(", "))
    };
    let actions: Vec<String> = step.actions.iter().map(action).collect();
    format!("{}{}{variants}: {}", step.name, when.unwrap_or_default(), actions.join(", "))
}

/// An action: what it is, where it goes, and then all that is special about it.
fn action(action: &Action) -> String {
    let mut rest = json!(action);
    if let Some(members) = rest.as_object_mut() {
        for known in ["name", "kind", "to", "cost"] {
            members.remove(known);
        }
        if let Some(recheck) = &action.recheck {
            members.insert("recheck".to_owned(), json!(condition(recheck)));
        }
    }
    let cost = action.cost.as_ref().map(|cost| {
        let refund = if cost.refund { "" } else { ", not refunded" };
        format!(", costs {} of {}{refund}", plain(&json!(cost.amount)), cost.budget)
    });
    let rest = match plain(&rest) {
        rest if rest.is_empty() => rest,
        rest => format!(", {rest}"),
    };
    let kind = action.kind.as_str();
    format!("{} ({kind} to {}{rest}{})", action.name, action.to, cost.unwrap_or_default())
}

fn limit(limit: &raingauge_campaigns::limit::Limit) -> String {
    let of = limit.step.as_deref().unwrap_or("all steps");
    let period = plain(&json!(limit.period));
    format!("{of}: at most {} per {} and {period}", limit.max, limit.per)
}

fn budget((name, budget): (&String, &raingauge_campaigns::budget::Budget)) -> String {
    let period = plain(&json!(budget.period));
    let zone = budget.zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
    format!("{name}: {} {} per {period}{zone}", budget.max, budget.unit)
}

fn templates(campaign: &Campaign) -> Vec<String> {
    let texts = campaign.templates.iter().flat_map(|(name, by_locale)| {
        by_locale.iter().map(move |(locale, text)| format!("{name} ({locale}): {text}"))
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign() -> Json {
        json!({
            "id": 7, "name": "mart", "eventTypes": ["mart.order"], "state": "active",
            "counts": { "orders": { "window": { "last": "PT24H" },
                "filter": { "operator": "eq", "lhs": "var.status", "rhs": "completed" } } },
            "rule": { "operator": "and", "conditions": [
                { "operator": "eq", "lhs": "var.country", "rhs": "sg" },
                { "operator": "or", "conditions": [
                    { "operator": "gt", "lhs": "var.total", "rhs": 5 },
                    { "operator": "not", "conditions": [
                        { "operator": "exists", "lhs": "var.coupon" } ] } ] } ] },
            "steps": [ { "name": "reward",
                "when": { "operator": "reaches", "lhs": "count.orders", "rhs": 3 },
                "actions": [ { "name": "voucher", "kind": "reward", "to": "rewards",
                    "reward": "MART5", "cost": { "budget": "vouchers", "amount": 500 } } ] } ],
            "limits": [ { "step": "reward", "max": 1, "period": "campaign" } ],
            "budgets": { "vouchers": { "unit": "SGD_cents", "max": 1000, "period": "day" } },
            "templates": { "congrats": { "en": "Congratulations!" } }
        })
    }

    #[test]
    fn a_campaign_is_described_member_by_member() {
        let campaign = Campaign::deserialize(&campaign()).unwrap();
        let said = sentences(&campaign);
        let words = |field: &str| {
            said.iter().find(|text| text.field == field).map(|text| text.words.as_str())
        };
        for (field, expected) in [
            ("name", "mart"),
            ("eventTypes", "mart.order"),
            ("activeFrom", "the first event on"),
            ("counts", r#"orders: over the last PT24H where var.status eq "completed""#),
            ("rule", r#"var.country eq "sg" and (var.total gt 5 or not (var.coupon exists))"#),
            (
                "steps",
                "reward when count.orders reaches 3: voucher (reward to rewards, reward MART5, \
                 costs 500 of vouchers)",
            ),
            ("limits", "reward: at most 1 per subject and campaign"),
            ("budgets", "vouchers: 1000 SGD_cents per day"),
            ("templates", "congrats (en): Congratulations!"),
            ("experiment", "nothing"),
        ] {
            assert_eq!(words(field), Some(expected), "{field}");
        }
    }

    #[test]
    fn only_members_that_differ_are_listed() {
        assert_eq!(between(&campaign(), &campaign()), []);
        let mut after = campaign();
        after["budgets"]["vouchers"]["max"] = json!(2_000);
        after["state"] = json!("paused");
        after["priority"] = json!(0);
        let changes = between(&campaign(), &after);
        let fields: Vec<&str> = changes.iter().map(|change| change.field).collect();
        assert_eq!(fields, ["state", "budgets"]);
        assert_eq!((&*changes[0].before, &*changes[0].after), ("active", "paused"));
        assert_eq!(changes[1].after, "vouchers: 2000 SGD_cents per day");

        after["orbit"] = json!(3);
        assert_eq!(between(&campaign(), &after), []);
    }

    /// Whatever a campaign has is a member of the list, so that no change goes unseen.
    #[test]
    fn every_member_is_listed() {
        let mut whole = campaign();
        for (member, value) in [
            ("holdout", json!("outside")),
            ("group", json!({ "name": "mart", "mode": "first" })),
            ("activeFrom", json!(0)),
            ("activeUntil", json!(1)),
            ("experiment", json!({ "key": "k", "variants": [] })),
        ] {
            whole[member] = value;
        }
        let whole = json!(Campaign::deserialize(&whole).unwrap());
        let mut members: Vec<&str> =
            whole.as_object().unwrap().keys().map(String::as_str).collect();
        members.retain(|member| *member != "id");
        let mut listed: Vec<&str> = MEMBERS.iter().map(|(field, _)| *field).collect();
        members.sort_unstable();
        listed.sort_unstable();
        assert_eq!(members, listed);
    }
}
