//! Compares the counters of a file with those of the server, and makes the changes.

use super::draft::{Drafts, remove_version};
use anyhow::{Context, anyhow, bail};
use raingauge_console::{Client, Method};
use raingauge_core::counter::{Counter, Problem, State};
use raingauge_core::ruleset::conflicts;
use raingauge_counters::difference;
use raingauge_policy::cache::Policy;
use serde::Serialize;
use serde_json::{Value, json};

/// A counter of the server, and its version.
pub struct Existing {
    counter: Counter,
    version: u64,
}

/// The outcome for one counter of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// 0 until the server assigns one.
    pub id: u32,
    pub name: String,
    pub action: Action,
    /// The changes, one sentence for each field.
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
    /// The outcome for people, with a line for each problem.
    pub fn line(&self, dry_run: bool) -> String {
        let action = match (self.action, dry_run) {
            (Action::Created, false) => "created",
            (Action::Created, true) => "would be created",
            (Action::Changed, false) => "changed",
            (Action::Changed, true) => "would be changed",
            (Action::Unchanged, _) => "unchanged",
            (Action::Failed, _) => "failed",
        };

        let id = if self.id == 0 { "-".to_owned() } else { self.id.to_string() };
        let width = if dry_run { 16 } else { 9 };
        let more = self.differences.iter().chain(&self.problems);
        let more: String = more.map(|sentence| format!("\n  {sentence}")).collect();

        format!("{action:<width$}  {id:>6}  {}{more}", self.name)
    }
}

/// Creates and replaces. Everything is checked before anything is changed.
pub fn apply(
    client: &Client,
    drafts: Drafts,
    dry_run: bool,
    reason: &str,
) -> anyhow::Result<Vec<Outcome>> {
    let cache_policy = drafts.cache_policy.clone();
    let resolved = resolve(client, drafts)?;
    let mut outcomes = Vec::new();

    for (counter, existing) in resolved {
        let action = match &existing {
            None => Action::Created,
            Some(existing) if existing.counter == counter => Action::Unchanged,
            Some(_) => Action::Changed,
        };

        let differences =
            existing.as_ref().map_or_else(Vec::new, |existing| told(&existing.counter, &counter));
        let name = counter.name.clone();
        let mut outcome =
            Outcome { id: counter.id, name, action, differences, problems: Vec::new() };

        if !dry_run && action != Action::Unchanged {
            match send(client, &counter, existing.as_ref(), reason) {
                Ok(id) => outcome.id = id,
                Err(error) => {
                    (outcome.action, outcome.problems) = (Action::Failed, vec![error.to_string()])
                }
            }
        }

        outcomes.push(outcome);
    }

    if let Some(policy) = cache_policy {
        outcomes.push(apply_policy(client, &policy, dry_run, reason)?);
    }
    Ok(outcomes)
}

/// Returns the differences between two configurations, one sentence for each field.
fn told(before: &Counter, after: &Counter) -> Vec<String> {
    let changed = difference::between(before, after);
    changed
        .iter()
        .map(|change| format!("{}: {} → {}", change.label, change.before, change.after))
        .collect()
}

fn apply_policy(
    client: &Client,
    policy: &Policy,
    dry_run: bool,
    reason: &str,
) -> anyhow::Result<Outcome> {
    const PATH: &str = "/v1/cache-policy";

    let mut found = client.get(PATH, &[])?;
    let version = format!("\"{}\"", found["version"]);
    remove_version(&mut found);

    let wanted = json!(policy);
    let is_same = found == wanted;
    let mut outcome = Outcome {
        id: 0,
        name: "cache policy".to_owned(),
        action: if is_same { Action::Unchanged } else { Action::Changed },
        differences: if is_same { Vec::new() } else { vec![format!("{found} → {wanted}")] },
        problems: Vec::new(),
    };

    if !dry_run && !is_same {
        let headers = [("x-reason", reason), ("if-match", &version)];
        if let Err(error) = client.send(Method::PUT, PATH, &headers, wanted.to_string().as_bytes())
        {
            (outcome.action, outcome.problems) = (Action::Failed, vec![error.to_string()]);
        }
    }

    Ok(outcome)
}

/// Returns the counters of a file with their ids, each with the counter that it replaces. An error
/// lists every template that conflicts with others.
pub fn resolve(
    client: &Client,
    drafts: Drafts,
) -> anyhow::Result<Vec<(Counter, Option<Existing>)>> {
    let mut existing = existing(client)?;
    let mut resolved = Vec::new();
    for mut counter in drafts.counters {
        let at = position(&existing, &counter)?;
        let old = at.map(|at| existing.swap_remove(at));
        counter.id = old.as_ref().map_or(counter.id, |old| old.counter.id);
        resolved.push((counter, old));
    }

    let untouched: Vec<&Counter> = existing.iter().map(|existing| &existing.counter).collect();
    let problems = conflicts_among(&resolved, &untouched);
    if !problems.is_empty() {
        bail!("there are {} conflict(s):\n{}", problems.len(), problems.join("\n"));
    }

    Ok(resolved)
}

fn existing(client: &Client) -> anyhow::Result<Vec<Existing>> {
    let answer = client.get("/v1/counters", &[])?;
    let counters =
        answer["counters"].as_array().context("the server's list of counters cannot be read")?;
    let existing = |found: &Value| {
        Ok(Existing {
            counter: read(found)?,
            version: found["version"].as_u64().unwrap_or_default(),
        })
    };
    counters.iter().map(existing).collect()
}

/// Reads a counter from the server's answer.
pub fn read(found: &Value) -> anyhow::Result<Counter> {
    let mut json = found.clone();
    remove_version(&mut json);
    Counter::from_json(&json).map_err(|problems| {
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        let fields = fields.join(", ");
        anyhow!(
            "counter {} of the server cannot be read ({fields}): is the server of another version?",
            found["id"]
        )
    })
}

/// Returns the counter that a draft replaces: the one with its id or, if it has none, the counter
/// of its name that is not archived.
fn position(existing: &[Existing], draft: &Counter) -> anyhow::Result<Option<usize>> {
    if draft.id != 0 {
        return Ok(existing.iter().position(|existing| existing.counter.id == draft.id));
    }
    let lives = |existing: &Existing| {
        existing.counter.name == draft.name && existing.counter.state != State::Archived
    };
    let mut found = (0..existing.len()).filter(|at| lives(&existing[*at]));
    match (found.next(), found.next()) {
        (_, Some(_)) => {
            bail!(
                "several counters of the server are called {}: give the id of the one you mean",
                draft.name
            )
        }
        (first, None) => Ok(first),
    }
}

/// Returns every template that could render a key of another counter, of the file or of the server.
fn conflicts_among(
    resolved: &[(Counter, Option<Existing>)],
    untouched: &[&Counter],
) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, (counter, _)) in resolved.iter().enumerate() {
        // Counters without an id would all look like the same counter.
        let stand_in = |counter: &Counter, id: u32| Counter { id, ..counter.clone() };
        let before = resolved[..index].iter().map(|(other, _)| stand_in(other, other.id.max(1)));
        let others: Vec<Counter> =
            untouched.iter().map(|other| (*other).clone()).chain(before).collect();
        let draft = stand_in(counter, u32::MAX);
        let found = conflicts(&draft, &others);

        let line = |problem: &Problem| format!("  {}: {problem}", counter.name);
        problems.extend(found.iter().map(line));
    }

    problems
}

/// Creates or replaces one counter, and returns its id.
fn send(
    client: &Client,
    counter: &Counter,
    existing: Option<&Existing>,
    reason: &str,
) -> anyhow::Result<u32> {
    let mut json = json!(counter);
    let etag;
    let mut headers = vec![("content-type", "application/json"), ("x-reason", reason)];
    let (method, path) = match existing {
        Some(existing) => {
            etag = format!("\"{}\"", existing.version);
            headers.push(("if-match", &etag));
            (Method::PUT, format!("/v1/counters/{}", counter.id))
        }
        None => (Method::POST, "/v1/counters".to_owned()),
    };

    if counter.id == 0
        && let Some(members) = json.as_object_mut()
    {
        members.remove("id");
    }

    let answer = client.send(method, &path, &headers, json.to_string().as_bytes())?;
    Ok(answer["id"].as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or(counter.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(id: u32, name: &str, template: &str) -> Counter {
        Counter::from_json(&json!({"id": id, "name": name, "template": template, "eventType": "t"}))
            .unwrap()
    }

    fn existing(id: u32, name: &str, state: State) -> Existing {
        Existing { counter: Counter { state, ..counter(id, name, "a") }, version: 1 }
    }

    #[test]
    fn a_draft_finds_its_counter_by_id_or_by_name() {
        let all = [
            existing(1, "old", State::Archived),
            existing(2, "old", State::Active),
            existing(3, "twin", State::Draft),
            existing(4, "twin", State::Active),
        ];
        let found = |id, name| position(&all, &counter(id, name, "a"));
        assert_eq!(found(1, "other").unwrap(), Some(0));
        assert_eq!(found(0, "old").unwrap(), Some(1));
        assert_eq!(found(9, "old").unwrap(), None);
        assert_eq!(found(0, "new").unwrap(), None);
        assert!(found(0, "twin").is_err());
    }

    #[test]
    fn conflicts_are_found_inside_the_file_and_with_the_server() {
        let drafts = [
            (counter(0, "a", "x:{f}"), None),
            (counter(0, "b", "x:1"), None),
            (counter(5, "c", "y"), None),
        ];
        let server = counter(9, "d", "y");
        let problems = conflicts_among(&drafts, &[&server]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].starts_with("  b: template") && problems[1].starts_with("  c: template")
        );
        assert!(conflicts_among(&drafts[..1], &[&server]).is_empty());
    }
}
