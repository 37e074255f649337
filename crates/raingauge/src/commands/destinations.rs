//! `raingauge destinations`

use super::campaigns::tables::{number, print_rows, rows_of};
use super::campaigns::{apply, load, report, text};
use super::counters::reason;
use super::table::Align;
use super::{print, print_json};
use crate::commands::arguments::Place;
use anyhow::bail;
use clap::{Args, Subcommand};
use raingauge_console::{Method, encoded};
use serde_json::Value;
use std::path::PathBuf;

/// See, change and probe the destinations that campaigns send to
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: raingauge destinations probe rewards"
)]
pub struct Destinations {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List destinations, with their rates and what waits for them
    #[command(after_help = "Example: raingauge destinations list")]
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Create the destinations of a file, or replace those that have changed
    #[command(after_help = "Example: raingauge destinations apply -f destinations.yaml")]
    Apply {
        /// File of destinations; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Say what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Why; the versions of a destination keep it
        #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
    /// Send nothing to a destination until it is enabled; its deliveries wait
    #[command(after_help = "Example: raingauge destinations disable rewards --reason 'it moves'")]
    Disable(Switch),
    /// Send what waits for a destination that was disabled, or that said that it is gone
    #[command(after_help = "Example: raingauge destinations enable rewards")]
    Enable(Switch),
    /// Send a request to a destination that is marked as a probe, and show the answer
    #[command(after_help = "Example: raingauge destinations probe rewards")]
    Probe {
        /// Name of the destination
        name: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
struct Switch {
    /// Name of the destination
    name: String,
    /// Why; the versions of a destination keep it
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

impl Switch {
    fn send(self, what: &str, is_json: bool) -> anyhow::Result<()> {
        let Self { name, reason, place } = self;
        let path = format!("/v1/destinations/{}/{what}", encoded(&name));
        let headers = [("x-reason", reason.as_str())];
        let answer =
            place.with(|session| Ok(session.client.send(Method::POST, &path, &headers, b"")?))?;
        if is_json {
            return Ok(print_json(&answer)?);
        }
        Ok(print(&format!("{name} is {what}d"))?)
    }
}

impl Destinations {
    pub fn run(self) -> anyhow::Result<()> {
        let is_json = self.json;
        match self.command {
            Command::List { place } => {
                let answer =
                    place.with(|session| Ok(session.client.get("/v1/destinations", &[])?))?;
                list(&answer, is_json)
            }
            Command::Apply { file, dry_run, reason, place } => {
                let drafts = load(&file)?;
                let outcomes =
                    place.with(|session| apply(&session.client, drafts, dry_run, &reason))?;
                report(&outcomes, dry_run, is_json)
            }
            Command::Disable(switch) => switch.send("disable", is_json),
            Command::Enable(switch) => switch.send("enable", is_json),
            Command::Probe { name, place } => {
                let path = format!("/v1/destinations/{}/probe", encoded(&name));
                let answer = place
                    .with(|session| Ok(session.client.send(Method::POST, &path, &[], b"")?))?;
                probed(&name, &answer, is_json)
            }
        }
    }
}

fn list(answer: &Value, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return Ok(print_json(answer)?);
    }
    let columns = [
        ("name", Align::Left),
        ("url", Align::Left),
        ("rate", Align::Right),
        ("breaker", Align::Left),
        ("pending", Align::Right),
        ("stopped", Align::Left),
    ];
    let row = |found: &Value| {
        let status = &found["status"];
        let [name, url] = ["name", "url"].map(|member| text(&found[member]));
        let [rate, pending] = ["perSecond", "pending"].map(|member| number(&status[member]));
        let obstacle = text(&status["obstacle"]);
        vec![name, url, rate, text(&status["breaker"]), pending, obstacle]
    };
    print_rows(&columns, rows_of(&answer["destinations"], row))
}

fn probed(name: &str, answer: &Value, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        print_json(answer)?;
    } else {
        let detail = text(&answer["detail"]);
        print(&format!("{name}: {detail}, {} ms", number(&answer["milliseconds"])))?;
    }
    if answer["accepted"] == true { Ok(()) } else { bail!("{name} did not accept the probe") }
}
