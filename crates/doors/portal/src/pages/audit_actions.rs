//! Audit actions for counters, drafts and the cache policy: the target, the reason, and the
//! changes. Texts are cut, so that the details of an entry always fit.

use raingauge_core::counter::Counter;
use raingauge_counters::difference::{self, FieldChange};
use raingauge_counters::drafts::DraftChange;
use raingauge_people::audit::AuditAction;
use raingauge_policy::cache::{Choice, Policy};
use raingauge_ports::catalog::{Versioned, VersionedPolicy};
use serde_json::{Map, Value as Json, json};

/// Bytes of each side of a change.
const SIDE_LEN_MAX: usize = 100;
/// Bytes of a reason.
const REASON_LEN_MAX: usize = 300;
/// Number of instances named.
const INSTANCES_MAX: usize = 10;

fn brief(text: &str, len_max: usize) -> String {
    let end = text.floor_char_boundary(len_max);
    format!("{}{}", &text[..end], if end < text.len() { "…" } else { "" })
}

/// `before → after`
fn change(before: &str, after: &str) -> Json {
    json!(format!("{} → {}", brief(before, SIDE_LEN_MAX), brief(after, SIDE_LEN_MAX)))
}

/// The changed fields of a counter, by name.
fn changes(before: &Counter, after: &Counter) -> Json {
    sides(&difference::between(before, after))
}

fn sides(changed: &[FieldChange]) -> Json {
    changed
        .iter()
        .map(|one| (one.field.to_owned(), change(&one.before, &one.after)))
        .collect::<Map<_, _>>()
        .into()
}

fn with_reason(mut details: Json, name: &str, reason: &str) -> Json {
    if !reason.is_empty() {
        details[name] = json!(brief(reason, REASON_LEN_MAX));
    }
    details
}

/// The action on a published counter.
pub fn of_counter(did: &str, before: &Counter, after: &Versioned) -> AuditAction {
    let Versioned { counter, version, reason, .. } = after;
    let details = json!({ "version": version, "changes": changes(before, counter) });
    AuditAction {
        verb: format!("counter.{did}").into(),
        object: format!("counter {}", counter.id),
        details: with_reason(details, "reason", reason),
    }
}

/// The action on a draft.
pub fn of_draft(verb: &'static str, DraftChange { draft, changes }: &DraftChange) -> AuditAction {
    let mut details = json!({ "name": brief(draft.name(), SIDE_LEN_MAX) });
    match draft.document_id() {
        0 => {
            if let Some(template) = draft.configuration["template"].as_str() {
                details["template"] = json!(brief(template, SIDE_LEN_MAX));
            }
        }
        id => details[draft.kind.as_str()] = json!(id),
    }

    if let Some(changed) = changes {
        details["changes"] = sides(changed);
    }

    if draft.applied_version > 0 {
        details["version"] = json!(draft.applied_version);
    }
    let details = with_reason(details, "reason", &draft.reason);
    AuditAction::new(
        verb,
        format!("draft {}", draft.id),
        with_reason(details, "comment", &draft.comment),
    )
}

/// How many counters a policy change affects, and which share of the queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub changed: usize,
    pub counters: usize,
    /// The share of the queries in words; `None` when there were no queries.
    pub asked: Option<String>,
}

/// The change of the cache policy.
pub fn of_policy(
    verb: &'static str,
    before: &Policy,
    set: &VersionedPolicy,
    share: &Share,
) -> AuditAction {
    let VersionedPolicy { policy, version, reason, .. } = set;
    let mut details = json!({
        "version": version,
        "policy": change(&before.choice.to_string(), &policy.choice.to_string()),
        "countersChanged": format!("{} of {}", share.changed, share.counters),
    });

    if let Some(asked) = &share.asked {
        details["countsChanged"] = json!(asked);
    }
    let instances = instances(before, policy);
    if !instances.is_empty() {
        details["instances"] = instances.into();
    }

    AuditAction::new(verb, "cache policy".to_owned(), with_reason(details, "reason", reason))
}

/// The instances whose override changed.
fn instances(before: &Policy, after: &Policy) -> Map<String, Json> {
    let words =
        |choice: Option<&Choice>| choice.map_or_else(|| "as all".to_owned(), ToString::to_string);
    let mut names: Vec<&String> = before.overrides.keys().chain(after.overrides.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let sides =
        names.into_iter().map(|name| (name, before.overrides.get(name), after.overrides.get(name)));
    let changed = sides.filter(|(_, old, new)| old != new).take(INSTANCES_MAX);
    changed.map(|(name, old, new)| (name.clone(), change(&words(old), &words(new)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_policy::cache::{Step, Strategy};
    use raingauge_ports::drafts::Draft;

    fn choice(strategy: Strategy) -> Choice {
        Choice { strategy, rollout: Vec::new() }
    }

    #[test]
    fn a_change_of_policy_is_described_from_what_to_what_and_for_whom() {
        let rollout = vec![Step { strategy: Strategy::Live, modulo: 2, below: 1 }];
        let overrides = [("b".to_owned(), choice(Strategy::None))].into();
        let before = Policy { choice: choice(Strategy::None), overrides };
        let overrides = [("a".to_owned(), choice(Strategy::Live))].into();
        let policy = Policy { choice: Choice { strategy: Strategy::Result, rollout }, overrides };
        let set = VersionedPolicy {
            policy,
            version: 3,
            reason: "☔".repeat(200),
            ..VersionedPolicy::default()
        };

        let share = Share { changed: 2, counters: 4, asked: Some("30 %".to_owned()) };
        let AuditAction { verb, object, details } =
            of_policy("cache_policy.replace", &before, &set, &share);
        assert_eq!((&*verb, &*object), ("cache_policy.replace", "cache policy"));
        assert_eq!(details["policy"], "none → live where id % 2 < 1; otherwise result");
        assert_eq!(details["instances"], json!({ "a": "as all → live", "b": "none → as all" }));
        assert_eq!(
            (&details["countersChanged"], &details["countsChanged"]),
            (&json!("2 of 4"), &json!("30 %"))
        );
        assert_eq!(details["reason"].as_str().map(str::len), Some(303));
    }

    #[test]
    fn details_fit_whatever_is_changed() {
        let long = |filler: &str| {
            let json = json!({ "id": 1, "name": filler.repeat(30), "template": format!("t:{filler}"), "eventType": "\"".repeat(99),
                "description": filler.repeat(400), "owner": filler.repeat(30) });
            Counter::from_json(&json).expect("a counter")
        };

        let (before, after) = (long("☔"), long("\"\""));
        let draft = Draft {
            reason: "\"".repeat(2_000),
            comment: "\"".repeat(2_000),
            ..Draft::new("counter", json!(after), 1, "zoe", 0)
        };

        let changes = Some(difference::between(&before, &after));
        let details = of_draft("draft.save", &DraftChange { draft, changes }).details;
        assert_eq!(details["changes"].as_object().map(serde_json::Map::len), Some(4));

        assert!(
            details.to_string().len() <= raingauge_people::audit::DETAILS_LEN_MAX,
            "{}",
            details.to_string().len()
        );
    }
}
