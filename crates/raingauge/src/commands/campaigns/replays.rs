//! Campaigns over events that happened, or that the caller brings: tests, backtests, comparisons
//! and explanations.

use super::file::{Draft, Kind, load, load_values};
use super::{result_of, tables};
use crate::commands::arguments::{Place, Range};
use crate::commands::{note, print, print_json};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Test {
    /// File of campaigns and what they name; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// File of CloudEvents: JSON, a line each or an array
    #[arg(long, value_name = "FILE")]
    events: PathBuf,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub struct Backtest {
    /// File of campaigns and what they name; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    range: Range,
    /// Divide the triggers by this field or column, such as var.country; may be given several times
    #[arg(long, value_name = "FIELD")]
    by: Vec<String>,
    /// Replay one in this many subjects, and scale what is found
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    sample: u64,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// File of the campaigns as they are
    before: PathBuf,
    /// File of the campaigns as they might be
    after: PathBuf,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// Id of the campaign
    id: u32,
    /// Whom the events are about
    #[arg(long, value_name = "SUBJECT")]
    subject: String,
    /// Source and id of one event; without it, the newest events of the subject are explained
    #[arg(long, value_names = ["SOURCE", "ID"], num_args = 2)]
    event: Vec<String>,
    #[command(flatten)]
    place: Place,
}

impl Test {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let mut body = documents_of(load(&self.file)?);
        body["events"] = Value::Array(events_of(&self.events)?);
        let answer = self.place.with(|session| {
            let started = session.client.post("/v1/campaigns/test", &body)?;
            result_of(session, started)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }

        for found in answer["events"].as_array().into_iter().flatten() {
            print_event(found)?;
        }
        Ok(())
    }
}

/// Prints what was decided on one event of a test.
fn print_event(found: &Value) -> anyhow::Result<()> {
    let event = &found["event"];
    print(&format!("{}/{}", super::text(&event["source"]), super::text(&event["id"])))?;
    for decision in found["decisions"].as_array().into_iter().flatten() {
        let [step, name, outcome, action] =
            ["step", "name", "outcome", "action"].map(|member| super::text(&decision[member]));
        print(&format!("  {step}/{name}: {outcome} {action}"))?;
    }
    for explanation in found["explanations"].as_array().into_iter().flatten() {
        tables::explanation(explanation)?;
    }
    Ok(())
}

impl Backtest {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let mut body = documents_of(load(&self.file)?);
        body["from"] = json!(self.range.from);
        body["to"] = json!(self.range.to);
        if !self.by.is_empty() {
            body["by"] = json!(self.by);
        }
        if self.sample > 1 {
            body["sample"] = json!(self.sample);
        }

        let answer = self.place.with(|session| {
            let started = session.client.post("/v1/campaigns/backtest", &body)?;
            result_of(session, started)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }
        tables::steps(&answer)?;
        note_covered(&answer);
        Ok(())
    }
}

impl Compare {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let [before, after] = [&self.before, &self.after].map(|path| load(path).map(documents_of));
        let body = json!({
            "before": before?, "after": after?, "from": self.range.from, "to": self.range.to,
        });
        let answer = self.place.with(|session| {
            let started = session.client.post("/v1/campaigns/compare", &body)?;
            result_of(session, started)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }
        print(&serde_yaml_ng::to_string(&answer)?)?;
        note_covered(&answer);
        Ok(())
    }
}

impl Explain {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let mut body = json!({ "subject": self.subject });
        if let [source, id] = &self.event[..] {
            body["event"] = json!({ "source": source, "id": id });
        }
        let path = format!("/v1/campaigns/{}/explain", self.id);
        let answer = self.place.with(|session| {
            let started = session.client.post(&path, &body)?;
            result_of(session, started)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }

        match answer["events"].as_array() {
            Some(events) => events.iter().try_for_each(|found| {
                let event = &found["event"];
                let [source, id] = ["source", "id"].map(|member| super::text(&event[member]));
                print(&format!("{source}/{id}"))?;
                tables::explanation(found)
            }),
            None => tables::explanation(&answer),
        }
    }
}

/// Says which part of the range the log still has.
fn note_covered(answer: &Value) {
    if let Some([from, to]) = answer["covered"].as_array().map(Vec::as_slice) {
        note(&format!("of the events from {} to {}", super::text(from), super::text(to)));
    }
}

/// The campaigns of a file, and the documents that they name.
fn documents_of(drafts: Vec<Draft>) -> Value {
    let (campaigns, others): (Vec<_>, Vec<_>) =
        drafts.into_iter().partition(|draft| draft.kind == Kind::Campaign);
    let configurations = |drafts: Vec<Draft>| -> Vec<Value> {
        drafts.into_iter().map(|draft| draft.configuration).collect()
    };
    let mut body = json!({ "campaigns": configurations(campaigns) });
    if !others.is_empty() {
        body["documents"] = Value::Array(configurations(others));
    }
    body
}

/// Reads events: an array, one, or one a line.
fn events_of(path: &Path) -> anyhow::Result<Vec<Value>> {
    let values = load_values(path)?;
    let flat = values.into_iter().flat_map(|value| match value {
        Value::Array(events) => events,
        event => vec![event],
    });
    let events: Vec<Value> = flat.collect();
    if events.is_empty() {
        bail!("there are no events in {}", path.display());
    }
    events.first().filter(|event| event.is_object()).context("events are objects")?;
    Ok(events)
}
