//! Documents of campaigns in a file, YAML or JSON: one, a list, or several YAML documents. Each
//! names its kind; one that names none is a campaign.

use anyhow::{Context, bail};
use raingauge_campaigns::documents::{Document, Kind};
use raingauge_core::counter::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The path of the list of these documents.
pub const fn path_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Table => "/v1/tables",
        Kind::Destination => "/v1/destinations",
        Kind::Lookup => "/v1/lookups",
        Kind::Budget => "/v1/budgets",
        Kind::Cap => "/v1/caps",
        Kind::Holdout => "/v1/holdouts",
        Kind::Campaign => "/v1/campaigns",
    }
}

/// The name of the list in answers.
pub fn plural_of(kind: Kind) -> &'static str {
    path_of(kind).trim_start_matches("/v1/")
}

/// What campaigns name is applied before them.
const fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Table | Kind::Destination => 0,
        Kind::Lookup | Kind::Budget | Kind::Cap | Kind::Holdout => 1,
        Kind::Campaign => 2,
    }
}

/// A segment is a table without columns.
fn kind_of(name: &str) -> Option<Kind> {
    Kind::from_name(if name == "segment" { "table" } else { name })
}

/// A document of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub kind: Kind,
    /// The number of a campaign, if the file has one; the name of anything else.
    pub id: Option<String>,
    pub name: String,
    pub configuration: Value,
}

/// Reads the documents of a file, `-` being standard input, in the order in which they are applied.
pub fn load(path: &Path) -> anyhow::Result<Vec<Draft>> {
    let text = read(path)?;
    parse(&text).with_context(|| path.display().to_string())
}

/// Reads a file of any JSON or YAML documents.
pub fn load_values(path: &Path) -> anyhow::Result<Vec<Value>> {
    values(&read(path)?).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text),
        _ => std::fs::File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)),
    };
    read.with_context(|| format!("{} cannot be read", path.display()))?;

    if text.len() as u64 > FILE_BYTES_MAX {
        bail!("{} is longer than {FILE_BYTES_MAX} bytes", path.display());
    }
    Ok(text)
}

/// Reads documents; the error lists every problem of each.
pub fn parse(text: &str) -> anyhow::Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    let mut problems = Vec::new();
    for (index, value) in listed(values(text)?).into_iter().enumerate() {
        let name = value["name"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
        let line = |problem: Problem| format!("  document {}{name}: {problem}", index + 1);
        match draft_of(value) {
            Ok(draft) => drafts.push(draft),
            Err(found) => problems.extend(found.into_iter().map(line)),
        }
    }

    problems.extend(repetitions(&drafts));
    if !problems.is_empty() {
        bail!("there are {} problem(s):\n{}", problems.len(), problems.join("\n"));
    }
    if drafts.is_empty() {
        bail!("there are no documents in it");
    }
    drafts.sort_by_key(|draft| rank(draft.kind));
    Ok(drafts)
}

/// JSON is tried first: it is YAML too, but not in every detail, and its errors are clearer.
pub fn values(text: &str) -> anyhow::Result<Vec<Value>> {
    if text.trim_start().starts_with(['{', '[']) {
        let values = serde_json::Deserializer::from_str(text).into_iter();
        return values.collect::<Result<_, _>>().context("this is not JSON");
    }
    let documents = serde_yaml_ng::Deserializer::from_str(text).map(Value::deserialize);
    documents.collect::<Result<_, _>>().context("this is not YAML")
}

fn listed(values: Vec<Value>) -> Vec<Value> {
    let flat = values.into_iter().flat_map(|value| match value {
        Value::Array(listed) => listed,
        Value::Null => Vec::new(),
        value => vec![value],
    });
    flat.collect()
}

fn draft_of(mut value: Value) -> Result<Draft, Vec<Problem>> {
    let problem = |field: &str, detail: &str| vec![Problem::new(field, detail)];
    remove_version(&mut value);
    let Some(members) = value.as_object_mut() else {
        return Err(problem("", "a document is an object"));
    };

    let named = members.get("kind").and_then(Value::as_str).unwrap_or(Kind::Campaign.name());
    let Some(kind) = kind_of(named) else {
        let detail =
            "the kinds are campaign, destination, lookup, table, segment, budget, cap and holdout";
        return Err(problem("kind", detail));
    };
    if kind == Kind::Campaign {
        members.remove("kind");
    }

    let document = Document::parse(kind, &value)?;
    let configuration = document.to_json();
    let name = configuration["name"].as_str().unwrap_or_default().to_owned();
    let id = Some(document.id()).filter(|id| !id.is_empty());
    Ok(Draft { kind, id, name, configuration })
}

/// Removes what reading a document added to it, so that it can be sent back.
pub fn remove_version(document: &mut Value) {
    if let Some(members) = document.as_object_mut() {
        for name in ["version", "changedBy", "changedByKind", "reason", "changedAt", "status"] {
            members.remove(name);
        }
    }
}

/// Returns the documents of a file that denote the same one.
fn repetitions(drafts: &[Draft]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        let is_same = |before: &&Draft| {
            let has_no_id = draft.id.is_none() || before.id.is_none();
            let is_equal =
                if has_no_id { before.name == draft.name } else { before.id == draft.id };
            before.kind == draft.kind && is_equal
        };
        if drafts[..index].iter().any(|before| is_same(&before)) {
            problems.push(format!("  two documents are the {} {}", draft.kind.name(), draft.name));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMPAIGN: &str = r#"{"id": 7, "name": "c", "eventTypes": ["e"], "version": 3,
        "steps": [{"name": "s", "actions": [{"name": "a", "kind": "reward", "to": "d", "reward": "r"}]}]}"#;

    #[test]
    fn what_campaigns_name_comes_before_them() {
        let text = format!(
            "[{CAMPAIGN}, {{\"kind\": \"segment\", \"name\": \"vip\"}}, \
             {{\"kind\": \"destination\", \"name\": \"d\", \"url\": \"https://d.example\"}}]"
        );
        let drafts = parse(&text).unwrap();
        let kinds: Vec<_> = drafts.iter().map(|draft| draft.kind).collect();
        assert_eq!(kinds, [Kind::Table, Kind::Destination, Kind::Campaign]);
        assert_eq!(drafts[0].configuration["kind"], "segment");
        assert_eq!(drafts[2].id.as_deref(), Some("7"));
        assert!(drafts[2].configuration.get("version").is_none());
    }

    #[test]
    fn yaml_has_lists_and_several_documents() {
        let drafts = parse(
            "kind: holdout\nname: a\nseed: s\nshare: 1\n---\n- {kind: segment, name: b}\n---\n",
        )
        .unwrap();
        assert_eq!(drafts.len(), 2);
    }

    #[test]
    fn every_problem_of_a_file_is_shown() {
        let error = parse("- {kind: hat, name: a}\n- {kind: cap}\n- 7\n").unwrap_err().to_string();
        assert!(
            error.contains("3 problem(s)") && error.contains("document 1 (a): kind"),
            "{error}"
        );
        let twice = format!("[{CAMPAIGN}, {CAMPAIGN}]");
        assert!(parse(&twice).unwrap_err().to_string().contains("two documents"));
        assert!(parse("[]").is_err());
    }
}
