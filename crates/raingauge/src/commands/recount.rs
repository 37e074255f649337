//! `raingauge recount`

use super::table::{Align, render};
use super::{note, print, print_json};
use crate::commands::arguments::{Place, Range};
use anyhow::bail;
use clap::Args;
use raingauge_core::time::format_rfc3339;
use serde_json::Value;

/// Count a key again from the event log, and compare with what is stored
///
/// Prints both counts, and every bucket in which they differ; ends with 1 when there is one.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge recount coffee:beverage:Latte --from 2018-02-27T00:00:00Z --to 2018-03-02T00:00:00Z"
)]
pub struct Recount {
    /// The key, such as coffee:beverage:Latte
    key: String,
    #[command(flatten)]
    range: Range,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Recount {
    pub fn run(self) -> anyhow::Result<()> {
        let (from, to) = (self.range.from.to_string(), self.range.to.to_string());
        let parameters = [("key", self.key.as_str()), ("fromTime", &from), ("toTime", &to)];
        let answer =
            self.place.with(|session| Ok(session.client.get("/v1/recount", &parameters)?))?;

        if self.json {
            print_json(&answer)?;
        } else {
            print_people(&answer)?;
        }

        match answer["equal"].as_bool() {
            Some(true) => Ok(()),
            _ => bail!("the stored counts of {} differ from the event log", self.key),
        }
    }
}

fn print_people(answer: &Value) -> anyhow::Result<()> {
    print(&format!("stored     {}\nrecounted  {}", answer["stored"], answer["recounted"]))?;
    let number = |name: &str| answer[name].as_i64().unwrap_or_default();
    if number("comparedFrom") > number("fromTime") {
        let since = format_rfc3339(number("comparedFrom"));
        note(&format!(
            "compared from {since} on: the log no longer holds all events of earlier buckets"
        ));
    }

    match number("setBuckets") {
        0 => {}
        1 => note(
            "one of the buckets was set, not counted: the log says so, and nothing else about it",
        ),
        set => note(&format!(
            "{set} of the buckets were set, not counted: the log says so, and nothing else about them"
        )),
    }

    let differences = answer["differences"].as_array().map(Vec::as_slice).unwrap_or_default();
    if differences.is_empty() {
        return Ok(print("equal")?);
    }

    let columns = [
        ("bucket", Align::Left),
        ("time", Align::Left),
        ("stored", Align::Right),
        ("recounted", Align::Right),
    ];

    let cell = |value: &Value| {
        if value.is_null() { "none".to_owned() } else { value.to_string() }
    };
    let row = |difference: &Value| {
        let width = difference["granularity"].as_str().unwrap_or_default().to_owned();
        let time = format_rfc3339(difference["time"].as_i64().unwrap_or_default());
        vec![width, time, cell(&difference["stored"]), cell(&difference["recounted"])]
    };
    Ok(print(&render(&columns, &differences.iter().map(row).collect::<Vec<_>>()))?)
}
