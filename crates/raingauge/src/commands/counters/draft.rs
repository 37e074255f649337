//! Configurations in a file, YAML or JSON: counters, one or a list, and perhaps the cache policy,
//! each checked by itself.

use anyhow::{Context, bail};
use raingauge_core::counter::{Counter, Problem};
use raingauge_policy::cache::Policy;
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Largest file of counters, in bytes.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The contents of a file, which passed all checks.
#[derive(Debug, Default)]
pub struct Drafts {
    pub counters: Vec<Counter>,
    pub cache_policy: Option<Policy>,
}

impl Drafts {
    pub fn load(path: &Path) -> anyhow::Result<Self> {
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
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads configurations; the error lists every problem of each.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut drafts = Self::default();
        let mut problems = Vec::new();
        let (counters, policies) = parts_of(documents(text)?);
        for (index, mut json) in counters.into_iter().enumerate() {
            remove_version(&mut json);
            match Counter::from_json(&json) {
                Ok(counter) => drafts.counters.push(counter),
                Err(found) => {
                    problems.extend(found.iter().map(|problem| line(index, &json, problem)))
                }
            }
        }

        problems.extend(repetitions(&drafts.counters));

        if policies.len() > 1 {
            problems.push("  cachePolicy: stands there more than once".to_owned());
        }

        for mut json in policies {
            remove_version(&mut json);
            match Policy::from_json(&json) {
                Ok(policy) => drafts.cache_policy = Some(policy),
                Err(found) => {
                    let line = |problem: &Problem| format!("  cachePolicy: {problem}");
                    problems.extend(found.iter().map(line));
                }
            }
        }

        if !problems.is_empty() {
            bail!("there are {} problem(s):\n{}", problems.len(), problems.join("\n"));
        }

        if drafts.counters.is_empty() && drafts.cache_policy.is_none() {
            bail!("there are no counters in it");
        }
        Ok(drafts)
    }
}

const COUNTERS: &str = "counters";
const CACHE_POLICY: &str = "cachePolicy";
/// The members of an object that is not a counter.
const PARTS: [&str; 2] = [COUNTERS, CACHE_POLICY];

/// Removes what reading a counter added to it, so that it can be sent back.
pub fn remove_version(counter: &mut Value) {
    if let Some(members) = counter.as_object_mut() {
        for name in ["version", "changedBy", "changedByKind", "reason", "changedAt"] {
            members.remove(name);
        }
    }
}

/// JSON is tried first: it is YAML too, but not in every detail, and its errors are clearer.
fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    if text.trim_start().starts_with(['{', '[']) {
        return Ok(vec![serde_json::from_str(text).context("this is not JSON")?]);
    }
    let documents = serde_yaml_ng::Deserializer::from_str(text).map(Value::deserialize);
    documents.collect::<Result<_, _>>().context("this is not YAML")
}

/// Counters and cache policies: one counter, a list of them, or an object that holds both, as
/// `export` writes it.
fn parts_of(documents: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let mut counters = Vec::new();
    let mut policies = Vec::new();
    for document in documents {
        match document {
            Value::Array(listed) => counters.extend(listed),
            Value::Object(mut members)
                if members.keys().all(|name| PARTS.contains(&name.as_str())) =>
            {
                match members.remove(COUNTERS) {
                    Some(Value::Array(listed)) => counters.extend(listed),
                    other => counters.extend(other),
                }
                policies.extend(members.remove(CACHE_POLICY));
            }
            Value::Null => {}
            counter => counters.push(counter),
        }
    }

    (counters, policies)
}

fn line(index: usize, json: &Value, problem: &Problem) -> String {
    let name = json["name"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("  counter {}{name}: {problem}", index + 1)
}

/// Returns the counters of a file that denote the same counter.
fn repetitions(drafts: &[Counter]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        for before in &drafts[..index] {
            if draft.id != 0 && draft.id == before.id {
                problems.push(format!(
                    "  {} and {} have the same id {}",
                    before.name, draft.name, draft.id
                ));
            } else if draft.name == before.name && (draft.id == 0 || before.id == 0) {
                problems.push(format!("  two counters are called {}: give them ids", draft.name));
            }
        }
    }

    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "name: n\ntemplate: rain:{city}\neventType: t\n";

    #[test]
    fn yaml_and_json_one_and_many() {
        let json = r#"{"id": 7, "name": "n", "template": "rain:{city}", "eventType": "t", "version": 3, "changedBy": "x", "reason": "", "changedAt": 5}"#;
        let yaml_list = format!("# a comment\n- {}", ONE.replace('\n', "\n  "));

        for (text, count) in [
            (ONE.to_owned(), 1),
            (yaml_list, 1),
            (format!("{ONE}---\n{}", ONE.replace("name: n", "name: m")), 2),
            (json.to_owned(), 1),
            (format!("[{json}]"), 1),
            (format!("{{\"counters\": [{json}]}}"), 1),
        ] {
            let drafts = Drafts::parse(&text).unwrap().counters;
            assert_eq!(drafts.len(), count, "{text}");
            assert_eq!(drafts[0].template, "rain:{city}");
        }
    }

    #[test]
    fn a_file_may_hold_counters_and_the_cache_policy() {
        let text = format!(
            "counters:\n- {}cachePolicy:\n  strategy: live\n  version: 3\n",
            ONE.replace('\n', "\n  ")
        );
        let text = text.replace("\n  cachePolicy", "\ncachePolicy");
        let drafts = Drafts::parse(&text).unwrap();
        assert_eq!(
            (drafts.counters.len(), drafts.cache_policy.unwrap().choice.strategy.name()),
            (1, "live")
        );
        let alone = Drafts::parse("cachePolicy: {strategy: none}").unwrap();
        assert!(alone.counters.is_empty() && alone.cache_policy.is_some());
    }

    #[test]
    fn all_problems_are_listed() {
        let text = "- {name: a, template: 'x:{', eventType: t}\n- {name: b, template: y, eventType: t, colour: red}\n";
        let error = Drafts::parse(text).unwrap_err().to_string();
        for part in ["counter 1 (a): template", "counter 2 (b): colour"] {
            assert!(error.contains(part), "{part} is missing from: {error}");
        }

        let twice = format!("{ONE}---\n{ONE}");
        assert!(Drafts::parse(&twice).unwrap_err().to_string().contains("give them ids"));

        let policy =
            "cachePolicy: {strategy: live, rollout: [{strategy: none, modulo: 0, below: 1}]}";
        assert!(Drafts::parse(policy).unwrap_err().to_string().contains("cachePolicy: rollout[0]"));

        for text in ["", "[]", "- [", "{"] {
            assert!(Drafts::parse(text).is_err(), "{text}");
        }
    }
}
