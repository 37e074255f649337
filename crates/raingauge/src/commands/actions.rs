//! `raingauge actions`

use super::campaigns::tables::{print_rows, rows_of};
use super::campaigns::text;
use super::counters::reason;
use super::table::Align;
use super::{note, print, print_json};
use crate::commands::arguments::Place;
use anyhow::bail;
use clap::{Args, Subcommand};
use raingauge_console::{Method, encoded};
use serde_json::{Value, json};

/// See what campaigns send, and send again what failed
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: raingauge actions list --status dead"
)]
pub struct Actions {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List actions of one status
    #[command(after_help = "Example: raingauge actions list --status dead --destination rewards")]
    List {
        /// pending, held, delivered, refused, dead or cancelled
        #[arg(long, default_value = "dead")]
        status: String,
        /// Those to this destination alone
        #[arg(long, value_name = "NAME")]
        destination: Option<String>,
        /// Those of this campaign alone
        #[arg(long, value_name = "ID")]
        campaign: Option<u32>,
        #[command(flatten)]
        place: Place,
    },
    /// Send a dead action again, under the same id; or all that a destination or campaign has
    ///
    /// With --outcome budget_exhausted, decides again what budgets refused, the oldest first.
    #[command(
        after_help = "Example: raingauge actions redrive --destination rewards\nExample: raingauge actions redrive --outcome budget_exhausted --campaign 7"
    )]
    Redrive {
        /// Decide again what was refused: budget_exhausted
        #[arg(long, value_name = "CODE", conflicts_with_all = ["action", "destination"])]
        outcome: Option<String>,
        #[command(flatten)]
        selection: Selection,
    },
    /// Cancel actions that wait or are dead, and return what they reserved
    #[command(
        after_help = "Example: raingauge actions cancel act_3607a20a5c6e936874c9ec850d9ffaac"
    )]
    Cancel {
        #[command(flatten)]
        selection: Selection,
    },
}

/// Which actions are changed.
#[derive(Debug, Args)]
struct Selection {
    /// Id of the action
    #[arg(conflicts_with_all = ["destination", "campaign"])]
    action: Option<String>,
    /// All to this destination
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// All of this campaign
    #[arg(long, value_name = "ID")]
    campaign: Option<u32>,
    /// Why; the audit log keeps it
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

impl Actions {
    pub fn run(self) -> anyhow::Result<()> {
        let is_json = self.json;
        match self.command {
            Command::List { status, destination, campaign, place } => {
                let campaign = campaign.map(|id| id.to_string());
                let given = [
                    ("status", Some(status.as_str())),
                    ("destination", destination.as_deref()),
                    ("campaign", campaign.as_deref()),
                ];
                let parameters: Vec<(&str, &str)> =
                    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                let answer =
                    place.with(|session| Ok(session.client.get("/v1/actions", &parameters)?))?;
                list(&answer, is_json)
            }
            Command::Redrive { outcome: Some(outcome), selection } => {
                selection.decide_again(&outcome, is_json)
            }
            Command::Redrive { outcome: None, selection } => {
                selection.send("redrive", "is sent again", is_json)
            }
            Command::Cancel { selection } => selection.send("cancel", "is cancelled", is_json),
        }
    }
}

fn list(answer: &Value, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return Ok(print_json(answer)?);
    }
    let columns = [
        ("id", Align::Left),
        ("campaign", Align::Right),
        ("subject", Align::Left),
        ("destination", Align::Left),
        ("tries", Align::Right),
        ("at", Align::Left),
        ("note", Align::Left),
    ];
    let names = ["action", "campaign", "subject", "destination", "tries", "at", "note"];
    let row = |found: &Value| names.map(|name| text(&found[name])).to_vec();
    print_rows(&columns, rows_of(&answer["actions"], row))?;
    if answer["next"] != Value::Null {
        note("there are more");
    }
    Ok(())
}

impl Selection {
    fn decide_again(self, outcome: &str, is_json: bool) -> anyhow::Result<()> {
        let Self { campaign, reason, place, .. } = self;
        let headers = [("content-type", "application/json"), ("x-reason", reason.as_str())];
        let body = json!({ "campaign": campaign, "outcome": outcome }).to_string();
        let answer = place.with(|session| {
            let path = "/v1/actions/redrive";
            Ok(session.client.send(Method::POST, path, &headers, body.as_bytes())?)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }
        Ok(print(&format!("{} actions were granted", answer["changed"]))?)
    }

    fn send(self, what: &str, done: &str, is_json: bool) -> anyhow::Result<()> {
        let Self { action, destination, campaign, reason, place } = self;
        let headers = [("content-type", "application/json"), ("x-reason", reason.as_str())];
        let answer = place.with(|session| {
            let (path, body) = match &action {
                Some(action) => (format!("/v1/actions/{}/{what}", encoded(action)), String::new()),
                None if destination.is_none() && campaign.is_none() => {
                    bail!("name an action, a --destination or a --campaign")
                }
                None => {
                    let body = json!({ "destination": destination, "campaign": campaign });
                    (format!("/v1/actions/{what}"), body.to_string())
                }
            };
            Ok(session.client.send(Method::POST, &path, &headers, body.as_bytes())?)
        })?;

        if is_json {
            return Ok(print_json(&answer)?);
        }
        match &action {
            Some(action) => Ok(print(&format!("{action} {done}"))?),
            None => Ok(print(&format!("{} actions: each {done}", answer["changed"]))?),
        }
    }
}
