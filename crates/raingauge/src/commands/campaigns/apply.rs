//! Compares the documents of a file with those of the server, and makes the changes.

use super::file::{Draft, path_of, plural_of, remove_version};
use anyhow::Context;
use raingauge_campaigns::documents::Kind;
use raingauge_console::client::Error;
use raingauge_console::{Client, Method, encoded};
use serde::Serialize;
use serde_json::{Value, json};

/// The outcome for one document of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub kind: &'static str,
    /// Empty until the server assigns one.
    pub id: String,
    pub name: String,
    pub action: Action,
    /// The changes, one line for each member.
    pub differences: Vec<String>,
    /// Why it failed; empty on success.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Created,
    Changed,
    Unchanged,
    Failed,
}

impl Outcome {
    /// The outcome for people, with a line for each change and each problem.
    pub fn line(&self, dry_run: bool) -> String {
        let action = match (self.action, dry_run) {
            (Action::Created, false) => "created",
            (Action::Created, true) => "would be created",
            (Action::Changed, false) => "changed",
            (Action::Changed, true) => "would be changed",
            (Action::Unchanged, _) => "unchanged",
            (Action::Failed, _) => "failed",
        };

        let Self { kind, id, name, .. } = self;
        let id = if id.is_empty() || id == name { String::new() } else { format!("{id} ") };
        let width = if dry_run { 16 } else { 9 };
        let more = self.differences.iter().chain(&self.problems);
        let more: String = more.map(|sentence| format!("\n  {sentence}")).collect();
        format!("{action:<width$}  {kind:<11}  {id}{name}{more}")
    }
}

/// A document of the server.
struct Existing {
    id: String,
    version: u64,
    configuration: Value,
}

/// Creates and replaces, in the order of the drafts. With `dry_run`, it compares alone.
pub fn apply(
    client: &Client,
    drafts: Vec<Draft>,
    dry_run: bool,
    reason: &str,
) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for draft in drafts {
        let existing = find(client, &draft)?;
        let wanted = with_id(&draft, existing.as_ref());
        let differences = existing
            .as_ref()
            .map_or_else(Vec::new, |existing| differences(&existing.configuration, &wanted));

        let action = match &existing {
            None => Action::Created,
            Some(_) if differences.is_empty() => Action::Unchanged,
            Some(_) => Action::Changed,
        };
        let id = existing.as_ref().map(|existing| existing.id.clone());
        let mut outcome = Outcome {
            kind: draft.kind.name(),
            id: id.or_else(|| draft.id.clone()).unwrap_or_default(),
            name: draft.name.clone(),
            action,
            differences,
            problems: Vec::new(),
        };

        if !dry_run && action != Action::Unchanged {
            match send(client, draft.kind, &wanted, existing.as_ref(), reason) {
                Ok(answer) => outcome.id = id_of(draft.kind, &answer),
                Err(error) => {
                    outcome.action = Action::Failed;
                    outcome.problems.push(error.to_string());
                }
            }
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Finds the document that a draft denotes: by its id, or by the name of a campaign without one.
fn find(client: &Client, draft: &Draft) -> anyhow::Result<Option<Existing>> {
    let kind = draft.kind;
    let found = match &draft.id {
        Some(id) => match client.get(&format!("{}/{}", path_of(kind), encoded(id)), &[]) {
            Ok(found) => Some(found),
            Err(Error::Refused { status, .. }) if status == 404 => None,
            Err(error) => return Err(error.into()),
        },
        None => {
            let listed = client.get(path_of(kind), &[])?;
            let listed = listed[plural_of(kind)].as_array().context("the list cannot be read")?;
            let mut same = listed.iter().filter(|found| found["name"] == draft.name.as_str());
            let first = same.next().cloned();
            if same.next().is_some() {
                anyhow::bail!("two campaigns are called {}: give it an id", draft.name);
            }
            first
        }
    };

    found
        .map(|mut found| {
            let version = found["version"].as_u64().context("the answer has no version")?;
            let id = id_of(kind, &found);
            remove_version(&mut found);
            Ok(Existing { id, version, configuration: found })
        })
        .transpose()
}

fn id_of(kind: Kind, document: &Value) -> String {
    match kind {
        Kind::Campaign => document["id"].to_string(),
        _ => document["name"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A campaign that was found by its name has the id of the one on the server.
fn with_id(draft: &Draft, existing: Option<&Existing>) -> Value {
    let mut wanted = draft.configuration.clone();
    if let (Kind::Campaign, Some(existing)) = (draft.kind, existing) {
        wanted["id"] = existing.configuration["id"].clone();
    }
    wanted
}

fn send(
    client: &Client,
    kind: Kind,
    document: &Value,
    existing: Option<&Existing>,
    reason: &str,
) -> Result<Value, Error> {
    let body = document.to_string();
    let media = ("content-type", "application/json");
    match existing {
        None => {
            let headers = [media, ("x-reason", reason)];
            client.send(Method::POST, path_of(kind), &headers, body.as_bytes())
        }
        // A concurrent change is not overwritten.
        Some(Existing { id, version, .. }) => {
            let version = format!("\"{version}\"");
            let headers = [media, ("x-reason", reason), ("if-match", &version)];
            let path = format!("{}/{}", path_of(kind), encoded(id));
            client.send(Method::PUT, &path, &headers, body.as_bytes())
        }
    }
}

/// Returns the members in which two documents differ, by their paths.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    let inner = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    };
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                compare(&inner(name), &before[name], &after[name], found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (place, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&inner(&place.to_string()), old, new, found);
            }
        }
        // What is left out is null.
        (before, after) => found.push(format!("{path}: {before} → {after}")),
    }
}

/// Prints the outcomes. Fails if one of them did.
pub fn report(outcomes: &[Outcome], dry_run: bool, is_json: bool) -> anyhow::Result<()> {
    let failed = outcomes.iter().filter(|outcome| outcome.action == Action::Failed).count();
    if is_json {
        raingauge_console::print_json(&json!({ "dryRun": dry_run, "documents": outcomes }))?;
    } else {
        for outcome in outcomes {
            raingauge_console::print(&outcome.line(dry_run))?;
        }
        if outcomes.iter().all(|outcome| outcome.action == Action::Unchanged) {
            raingauge_console::print("no changes")?;
        }
    }

    if failed > 0 {
        anyhow::bail!("{failed} of {} documents could not be applied", outcomes.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_shown_by_path() {
        let before = json!({"a": 1, "b": {"c": [1, 2]}, "d": true, "same": {}});
        let after = json!({"a": 1, "b": {"c": [1, 3]}, "e": "x", "same": {}});
        let told = differences(&before, &after);
        assert_eq!(told, ["b.c.1: 2 → 3", "d: true → null", "e: null → \"x\""]);
        assert!(differences(&before, &before).is_empty());
    }

    #[test]
    fn an_outcome_is_one_line() {
        let outcome = Outcome {
            kind: "campaign",
            id: "7".to_owned(),
            name: "c".to_owned(),
            action: Action::Changed,
            differences: vec!["a: 1 → 2".to_owned()],
            problems: Vec::new(),
        };
        assert_eq!(outcome.line(false), "changed    campaign     7 c\n  a: 1 → 2");
    }
}
