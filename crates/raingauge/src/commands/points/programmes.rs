//! Programmes in files.

use super::{JOBS, reason};
use crate::commands::arguments::{Place, time};
use crate::commands::campaigns::tables::{print_rows, rows_of};
use crate::commands::campaigns::{load_values, result_of, text, values};
use crate::commands::session::Session;
use crate::commands::table::Align;
use crate::commands::{print, print_json};
use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;
use raingauge_console::client::Error;
use raingauge_console::{Client, Method, encoded};
use serde_json::{Value, json};
use std::path::PathBuf;

const PATH: &str = "/v1/points/programmes";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List all programmes
    #[command(after_help = "Example: raingauge points programmes list")]
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Show one programme, in the form that apply takes
    #[command(after_help = "Example: raingauge points programmes get grab-sg >grab-sg.yaml")]
    Get {
        /// Name of the programme
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show what the programmes of a file would have cost over past events
    #[command(
        after_help = "Example: raingauge points programmes preview -f demo/points.yaml --from -28d"
    )]
    Preview {
        /// File of programmes in YAML or JSON; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Start of the events
        #[arg(long, value_name = "TIME", value_parser = time, default_value = "-28d",
              allow_hyphen_values = true)]
        from: i64,
        #[command(flatten)]
        place: Place,
    },
    /// Create the programmes of a file, or replace those that have changed
    #[command(after_help = "Example: raingauge points programmes apply -f demo/points.yaml")]
    Apply {
        /// File of programmes in YAML or JSON; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Check them, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Why; the versions of a programme keep it
        #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
}

impl Command {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        match self {
            Self::List { place } => place.with(|session| list(session, is_json)),
            Self::Get { name, place } => place.with(|session| get(session, &name, is_json)),
            Self::Preview { file, from, place } => {
                let programmes = checked(load_values(&file)?)?;
                place.with(|session| preview(session, &programmes, from, is_json))
            }
            Self::Apply { file, dry_run, reason, place } => {
                let programmes = checked(load_values(&file)?)?;
                let applied =
                    place.with(|session| apply(&session.client, &programmes, dry_run, &reason))?;
                if is_json {
                    return Ok(print_json(&json!({ "dryRun": dry_run, "programmes": applied }))?);
                }
                for outcome in applied {
                    let [name, action] = ["programme", "action"].map(|name| text(&outcome[name]));
                    print(&format!("{action:<9}  {name}"))?;
                }
                Ok(())
            }
        }
    }
}

fn list(session: &Session, is_json: bool) -> anyhow::Result<()> {
    let found = session.client.get(PATH, &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }
    let columns = [
        ("programme", Align::Left),
        ("unit", Align::Left),
        ("timezone", Align::Left),
        ("rules", Align::Right),
        ("version", Align::Right),
        ("changed by", Align::Left),
    ];
    let row = |found: &Value| {
        let rules = found["rules"].as_array().map_or(0, Vec::len).to_string();
        let [name, unit, zone, version, by] =
            ["programme", "unit", "timezone", "version", "changedBy"]
                .map(|name| text(&found[name]));
        vec![name, unit, zone, rules, version, by]
    };
    print_rows(&columns, rows_of(&found["programmes"], row))
}

fn get(session: &Session, name: &str, is_json: bool) -> anyhow::Result<()> {
    let found = session.client.get(&format!("{PATH}/{}", encoded(name)), &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }
    let document = raingauge_http::change::without_version(found.clone());
    let yaml = serde_yaml_ng::to_string(&document)?;
    let [version, by] = ["version", "changedBy"].map(|name| text(&found[name]));
    Ok(print(&format!("# Version {version}, by {by}.\n{}", yaml.trim_end()))?)
}

fn preview(
    session: &Session,
    programmes: &[Value],
    from_s: i64,
    is_json: bool,
) -> anyhow::Result<()> {
    for programme in programmes {
        let name = programme["programme"].as_str().unwrap_or_default();
        let path = format!("{PATH}/{}/preview", encoded(name));
        let request = json!({ "programme": programme, "fromTime": from_s });
        let started = session.client.post(&path, &request)?;
        let forecast = result_of(session, started, JOBS)?;
        if is_json {
            print_json(&forecast)?;
            continue;
        }
        let [events, change] = ["events", "change"].map(|name| text(&forecast[name]));
        let liability = text(&forecast["liabilityChange"]);
        print(&format!("{name}: {events} events, {change} points, liability {liability}"))?;
    }
    Ok(())
}

/// Reads the programmes of a text.
pub fn parse(text: &str) -> anyhow::Result<Vec<Value>> {
    checked(values(text)?)
}

fn checked(documents: Vec<Value>) -> anyhow::Result<Vec<Value>> {
    let listed = documents.into_iter().flat_map(|document| match document {
        Value::Array(listed) => listed,
        Value::Null => Vec::new(),
        document => vec![document],
    });
    let programmes: Vec<Value> = listed.collect();
    ensure!(!programmes.is_empty(), "there are no programmes in it");
    for (place, programme) in programmes.iter().enumerate() {
        if !programme["programme"].is_string() {
            bail!("document {}: a programme has its name in the member programme", place + 1);
        }
    }
    Ok(programmes)
}

/// Creates programmes, or replaces those that differ. With `dry_run`, they are checked alone.
pub fn apply(
    client: &Client,
    programmes: &[Value],
    dry_run: bool,
    reason: &str,
) -> anyhow::Result<Vec<Value>> {
    programmes.iter().map(|programme| apply_one(client, programme, dry_run, reason)).collect()
}

fn apply_one(
    client: &Client,
    programme: &Value,
    dry_run: bool,
    reason: &str,
) -> anyhow::Result<Value> {
    let name = programme["programme"].as_str().unwrap_or_default();
    let body = programme.to_string();
    let media = ("content-type", "application/json");
    if dry_run {
        let path = format!("{PATH}?validate=only");
        client.send(Method::POST, &path, &[media], body.as_bytes())?;
        return Ok(json!({ "programme": name, "action": "sound" }));
    }

    let path = format!("{PATH}/{}", encoded(name));
    let known = match client.get(&path, &[]) {
        Ok(known) => Some(known),
        Err(Error::Refused { status, .. }) if status == 404 => None,
        Err(error) => return Err(error.into()),
    };
    let Some(known) = known else {
        client.send(Method::POST, PATH, &[media, ("x-reason", reason)], body.as_bytes())?;
        return Ok(json!({ "programme": name, "action": "created" }));
    };

    // A concurrent change is not overwritten.
    let before = known["version"].as_u64().context("the answer has no version")?;
    let version = format!("\"{before}\"");
    let headers = [media, ("x-reason", reason), ("if-match", version.as_str())];
    let saved = client.send(Method::PUT, &path, &headers, body.as_bytes())?;
    let action = if saved["version"] == before { "unchanged" } else { "changed" };
    Ok(json!({ "programme": name, "action": action }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_programme_or_several() {
        assert_eq!(parse("programme: a\n---\nprogramme: b\n").unwrap().len(), 2);
        assert_eq!(parse("[{\"programme\": \"a\"}]").unwrap().len(), 1);
        assert!(parse("name: a\n").is_err() && parse("[]").is_err());
    }
}
