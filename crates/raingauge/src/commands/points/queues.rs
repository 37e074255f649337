//! The queues of points.

use super::reason;
use crate::commands::arguments::Place;
use crate::commands::campaigns::tables::{print_rows, rows_of};
use crate::commands::campaigns::text;
use crate::commands::table::Align;
use crate::commands::{print, print_json};
use clap::{Args, Subcommand};
use raingauge_console::{Method, encoded};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what waits in each queue, and how many dead letters it has
    #[command(after_help = "Example: raingauge points queues list")]
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Show the first messages of a queue, or of its dead letters
    #[command(after_help = "Example: raingauge points queues messages retry.dead")]
    Messages {
        /// Name of the queue
        queue: String,
        #[command(flatten)]
        place: Place,
    },
    /// Send dead letters to their queue again
    #[command(after_help = "Example: raingauge points queues redrive retry --reason 'row added'")]
    Redrive(Selection),
    /// Forget dead letters
    #[command(after_help = "Example: raingauge points queues discard notify --reason 'too old'")]
    Discard(Selection),
}

/// Which dead letters are changed.
#[derive(Debug, Args)]
pub struct Selection {
    /// Name of the queue
    queue: String,
    /// Ids of letters; all, without any
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Why; the audit log keeps it
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

impl Command {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        match self {
            Self::List { place } => {
                let found =
                    place.with(|session| Ok(session.client.get("/v1/points/queues", &[])?))?;
                list(&found, is_json)
            }
            Self::Messages { queue, place } => {
                let path = format!("/v1/points/queues/{}/messages", encoded(&queue));
                let found = place.with(|session| Ok(session.client.get(&path, &[])?))?;
                messages(&found, is_json)
            }
            Self::Redrive(selection) => selection.send("redrive", "sent again", is_json),
            Self::Discard(selection) => selection.send("discard", "discarded", is_json),
        }
    }
}

fn list(found: &Value, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return Ok(print_json(found)?);
    }
    let columns = [
        ("queue", Align::Left),
        ("waiting", Align::Right),
        ("in flight", Align::Right),
        ("dead", Align::Right),
        ("oldest", Align::Left),
    ];
    let names = ["name", "waiting", "inFlight", "dead", "oldest"];
    let row = |queue: &Value| names.map(|name| text(&queue[name])).to_vec();
    print_rows(&columns, rows_of(&found["queues"], row))
}

fn messages(found: &Value, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return Ok(print_json(found)?);
    }
    let columns = [
        ("id", Align::Left),
        ("attempts", Align::Right),
        ("sent at", Align::Left),
        ("first error", Align::Left),
        ("died of", Align::Left),
    ];
    let row = |message: &Value| {
        let of_message = ["id", "attempts", "sentAt", "firstError"];
        let mut cells = of_message.map(|name| text(&message[name])).to_vec();
        cells.push(text(&message["death"]["reason"]));
        cells
    };
    print_rows(&columns, rows_of(&found["messages"], row))
}

impl Selection {
    fn send(self, what: &str, done: &str, is_json: bool) -> anyhow::Result<()> {
        let Self { queue, ids, reason, place } = self;
        let path = format!("/v1/points/queues/{}/{what}", encoded(&queue));
        let body = if ids.is_empty() { json!({}) } else { json!({ "ids": ids }) };
        let headers = [("content-type", "application/json"), ("x-reason", reason.as_str())];
        let answer = place.with(|session| {
            Ok(session.client.send(Method::POST, &path, &headers, body.to_string().as_bytes())?)
        })?;
        if is_json {
            return Ok(print_json(&answer)?);
        }
        Ok(print(&format!("{} letters {done}", answer["changed"]))?)
    }
}
