//! `raingauge maintenance`

use super::session::Session;
use super::table::{Align, render};
use super::{note, print, print_json};
use crate::commands::arguments::Place;
use anyhow::bail;
use clap::{Args, Subcommand};
use raingauge_console::{Client, Method};
use raingauge_core::time::format_rfc3339;
use serde_json::{Value, json};
use std::time::Duration;

/// Interval between checks whether a compaction has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Most ended compactions in the output for people.
const SHOWN_MAX: usize = 10;

const PATH: &str = "/v1/maintenance";
const COMPACTION_PATH: &str = "/v1/maintenance/compaction";

/// Look at the compaction of the nodes, begin one, stop it
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = "Example: raingauge maintenance status")]
pub struct Maintenance {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show when compaction is due, what is compacted now, and the last results
    #[command(after_help = "Example: raingauge maintenance status --json")]
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// Compact all nodes now, one after the other
    ///
    /// With --wait, or on a data folder, ends when that is done, and with 1 when not every node was
    /// compacted.
    #[command(after_help = "Example: raingauge maintenance compact --wait")]
    Compact {
        /// Wait until all nodes are compacted
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Stop the compaction that is running
    #[command(after_help = "Example: raingauge maintenance stop")]
    Stop {
        #[command(flatten)]
        place: Place,
    },
}

impl Maintenance {
    pub fn run(self) -> anyhow::Result<()> {
        let json = self.json;
        match self.command {
            Command::Status { place } => {
                place.with(|session| show(&session.client.get(PATH, &[])?, json))
            }
            Command::Compact { wait, place } => place.with(|session| compact(session, wait, json)),
            Command::Stop { place } => place.with(|session| {
                let status = session.client.send(Method::DELETE, COMPACTION_PATH, &[], &[])?;
                note("the compaction was asked to stop");
                show(&status, json)
            }),
        }
    }
}

fn compact(session: &Session, wait: bool, json: bool) -> anyhow::Result<()> {
    let mut status = session.client.post(COMPACTION_PATH, &json!({}))?;

    // The command's own server ends with it.
    let waits = wait || session.own().is_some();
    if waits {
        status = ended(&session.client)?;
    }
    show(&status, json)?;

    match status["last"][0]["result"].as_str() {
        Some(result) if waits && result != "finished" => {
            bail!("the compaction ended with the result {result}")
        }
        _ => Ok(()),
    }
}

/// Returns the status when no compaction is running.
fn ended(client: &Client) -> anyhow::Result<Value> {
    loop {
        let status = client.get(PATH, &[])?;
        if status["running"].is_null() {
            return Ok(status);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn show(status: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(print_json(status)?);
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for upcoming in list(&status["schedules"]) {
        let expression = text(&upcoming["expression"]);
        let next = time(&upcoming["next"]);
        print(&format!("due next  {next}  {expression}  ({})", text(&status["timezone"])))?;
    }

    match &status["running"] {
        Value::Null => print("running   nothing")?,
        running => {
            print(&format!(
                "running   since {}, by {}",
                time(&running["startedAt"]),
                trigger(running)
            ))?;
            print(&nodes(&list(&running["nodes"])))?;
        }
    }

    let last = list(&status["last"]);
    if !last.is_empty() {
        let columns =
            ["started", "ended", "by", "nodes", "result", "detail"].map(|name| (name, Align::Left));
        print(&render(&columns, &last.iter().take(SHOWN_MAX).map(row).collect::<Vec<_>>()))?;
    }

    Ok(())
}

/// A run that has ended.
fn row(run: &Value) -> Vec<String> {
    let nodes = run["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let compacted = nodes.iter().filter(|node| node["state"] == "compacted").count();
    vec![
        time(&run["startedAt"]),
        time(&run["endedAt"]),
        trigger(run),
        format!("{compacted} of {}", nodes.len()),
        text(&run["result"]),
        text(&run["detail"]),
    ]
}

fn nodes(nodes: &[Value]) -> String {
    let columns = [
        ("rack", Align::Left),
        ("node", Align::Left),
        ("state", Align::Left),
        ("seconds", Align::Right),
        ("progress", Align::Left),
    ];

    let row = |node: &Value| {
        let progress = &node["progress"];
        let progress = if progress.is_null() {
            text(&node["error"])
        } else {
            format!("{} of {} {}", progress["done"], progress["total"], text(&progress["unit"]))
        };

        let seconds =
            node["seconds"].as_f64().map(|seconds| format!("{seconds:.1}")).unwrap_or_default();
        vec![text(&node["rack"]), text(&node["node"]), text(&node["state"]), seconds, progress]
    };
    render(&columns, &nodes.iter().map(row).collect::<Vec<_>>())
}

fn trigger(run: &Value) -> String {
    let trigger = &run["trigger"];
    trigger["schedule"].as_str().or(trigger["request"].as_str()).unwrap_or_default().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> String {
    value.as_i64().map(format_rfc3339).unwrap_or_default()
}
