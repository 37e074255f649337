//! Campaigns over events that happened, or that the caller brings: tests, backtests, comparisons
//! and explanations.

use super::file::{Draft, load, load_values};
use super::{result_of, tables};
use crate::commands::arguments::{Place, time};
use crate::commands::{note, print, print_json};
use anyhow::{Context, bail};
use clap::Args;
use raingauge_campaigns::documents::Kind;
use raingauge_console::Method;
use raingauge_import::{EventLines, Mapping, Rows};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The path of the jobs of campaigns.
const JOBS: &str = "/v1/jobs";

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
    span: Span,
    /// Replay the events of this file, and not those of the log: CloudEvents, one a line; or with
    /// --mapping, CSV or NDJSON
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Which column becomes which part of an event (TOML), as for import
    #[arg(long, value_name = "FILE", requires = "events")]
    mapping: Option<PathBuf>,
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
    /// The campaign as it is: its id, or a file of campaigns
    before: String,
    /// The campaign as it might be: its id, or a file
    after: String,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    place: Place,
}

/// Which events decide; all, if neither end is given.
#[derive(Debug, Args)]
struct Span {
    /// Start: epoch seconds, RFC 3339, now, today, yesterday, or an age such as -7d
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    from: Option<i64>,
    /// End, which is not part of it; written as the start is
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    to: Option<i64>,
}

impl Span {
    fn add_to(&self, body: &mut Value) {
        for (name, end) in [("fromTime", self.from), ("toTime", self.to)] {
            if let Some(at_s) = end {
                body[name] = json!(at_s);
            }
        }
    }
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
            result_of(session, started, JOBS)
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

/// Prints what was decided on one event of a test, and why nothing else was.
fn print_event(found: &Value) -> anyhow::Result<()> {
    let event = &found["event"];
    let [source, id] = ["source", "id"].map(|member| super::text(&event[member]));
    print(&format!("{source}/{id}"))?;

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
        self.span.add_to(&mut body);
        if !self.by.is_empty() {
            body["by"] = json!(self.by);
        }
        if self.sample > 1 {
            body["sample"] = json!(self.sample);
        }

        let answer = self.place.with(|session| {
            let path = "/v1/campaigns/backtest";
            let started = match &self.events {
                None => session.client.post(path, &body)?,
                Some(file) => {
                    body["source"] = json!("events");
                    // Files of the past arrive late, by their nature.
                    body["ignoreLateness"] = json!(true);
                    let line = format!("{body}\n");
                    let mut lines =
                        line.as_bytes().chain(events_in(file, self.mapping.as_deref())?);
                    let headers = [("content-type", "application/x-ndjson")];
                    session.client.upload(Method::POST, path, &headers, &mut lines)?
                }
            };
            result_of(session, started, JOBS)
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
        let [before, after] = [side(&self.before)?, side(&self.after)?];
        let mut body = json!({
            "before": before["campaigns"], "after": after["campaigns"],
        });
        self.span.add_to(&mut body);
        // What both share is as the second file has it.
        if after["shared"] != Value::Null {
            body["shared"] = after["shared"].clone();
        }
        let answer = self.place.with(|session| {
            let started = session.client.post("/v1/campaigns/compare", &body)?;
            result_of(session, started, JOBS)
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
            result_of(session, started, JOBS)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }

        if let Some(id) = answer["event"]["id"].as_str() {
            print(&format!("{}/{id}", super::text(&answer["event"]["source"])))?;
        }
        tables::explanation(&answer)?;
        for found in answer["events"].as_array().into_iter().flatten().skip(1) {
            let event = &found["event"];
            let [source, id] = ["source", "id"].map(|member| super::text(&event[member]));
            print(&format!("{source}/{id}: {}", super::text(&found["code"])))?;
        }
        Ok(())
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
        body["shared"] = Value::Array(configurations(others));
    }
    body
}

/// The events of a file as lines of JSON.
fn events_in(file: &Path, mapping: Option<&Path>) -> anyhow::Result<Box<dyn Read>> {
    match mapping {
        Some(mapping) => {
            let mapping = Mapping::load(mapping)?;
            Ok(Box::new(EventLines::new(Rows::open(file, &mapping)?)))
        }
        None => {
            let opened = File::open(file);
            Ok(Box::new(opened.with_context(|| format!("{} cannot be read", file.display()))?))
        }
    }
}

/// One side of a comparison: the campaign of this id in effect, or those of a file.
fn side(text: &str) -> anyhow::Result<Value> {
    match text.parse::<u32>() {
        Ok(id) => Ok(json!({ "campaigns": [id] })),
        Err(_) => Ok(documents_of(load(Path::new(text))?)),
    }
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
