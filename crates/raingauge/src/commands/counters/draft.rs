//! Counters in a file: YAML or JSON, one or a list, each checked by itself.

use anyhow::{Context, bail};
use raingauge_core::counter::{Counter, Problem};
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Largest file of counters, in bytes.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The counters of a file, none of which is known to be wrong.
#[derive(Debug)]
pub struct Drafts(pub Vec<Counter>);

impl Drafts {
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let mut text = String::new();
        let read = match path.to_str() {
            Some("-") => std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text),
            _ => std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)),
        };
        read.with_context(|| format!("{} cannot be read", path.display()))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            bail!("{} is longer than {FILE_BYTES_MAX} bytes", path.display());
        }
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Reads counters; the error lists every problem of every counter.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let (mut drafts, mut problems) = (Vec::new(), Vec::new());
        for (index, mut json) in counters_of(documents(text)?).into_iter().enumerate() {
            remove_version(&mut json);
            match Counter::from_json(&json) {
                Ok(counter) => drafts.push(counter),
                Err(found) => problems.extend(found.iter().map(|problem| line(index, &json, problem))),
            }
        }
        problems.extend(repetitions(&drafts));
        if !problems.is_empty() {
            bail!("there are {} problem(s):\n{}", problems.len(), problems.join("\n"));
        }
        if drafts.is_empty() {
            bail!("there are no counters in it");
        }
        Ok(Self(drafts))
    }
}

/// Removes what reading a counter added to it, so that it can be sent back.
pub fn remove_version(counter: &mut Value) {
    if let Some(members) = counter.as_object_mut() {
        for name in ["version", "changedBy", "reason", "changedAt"] {
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

/// One counter, a list of them, or what `GET /v1/counters` answers.
fn counters_of(documents: Vec<Value>) -> Vec<Value> {
    let flatten = |document| match document {
        Value::Array(counters) => counters,
        Value::Object(mut members) if members.len() == 1 && members.contains_key("counters") => {
            match members.remove("counters") {
                Some(Value::Array(counters)) => counters,
                other => other.into_iter().collect(),
            }
        }
        Value::Null => Vec::new(),
        counter => vec![counter],
    };
    documents.into_iter().flat_map(flatten).collect()
}

fn line(index: usize, json: &Value, problem: &Problem) -> String {
    let name = json["name"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("  counter {}{name}: {}: {}", index + 1, problem.field, problem.detail)
}

/// Two counters of a file that mean the same one.
fn repetitions(drafts: &[Counter]) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        for before in &drafts[..index] {
            if draft.id != 0 && draft.id == before.id {
                problems.push(format!("  {} and {} have the same id {}", before.name, draft.name, draft.id));
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
            let drafts = Drafts::parse(&text).unwrap().0;
            assert_eq!(drafts.len(), count, "{text}");
            assert_eq!(drafts[0].template, "rain:{city}");
        }
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
        for text in ["", "[]", "- [", "{"] {
            assert!(Drafts::parse(text).is_err(), "{text}");
        }
    }
}
