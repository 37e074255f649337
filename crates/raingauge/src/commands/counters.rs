//! `raingauge counters`

mod apply;
mod draft;

pub use apply::{Action, Outcome, apply};
pub use draft::{Drafts, remove_version};

use super::cache_policy::policy_of;
use super::session::Session;
use super::table::{Align, render};
use super::{note, print, print_json};
use crate::commands::arguments::Place;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use raingauge_console::{Method, encoded};
use raingauge_counters::export::{Settings, counter_to_yaml};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Interval between polls of a backfill's progress.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Read and change the counters
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: raingauge counters apply -f demo/coffee.counters.yaml"
)]
pub struct Counters {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all counters
    #[command(after_help = "Example: raingauge counters list")]
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Show one counter, in the form that apply takes
    #[command(after_help = "Example: raingauge counters get 34 >rain.yaml")]
    Get {
        /// Id of the counter
        id: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Write all counters and the cache policy, in the form that apply takes
    #[command(after_help = "Example: raingauge counters export >raingauge.yaml")]
    Export {
        /// Archived counters too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Create the counters of a file, or replace those that have changed
    ///
    /// The file holds one counter, a list, or what export wrote, in YAML or JSON. A counter without
    /// an id is found by its name. What is not in the file stays as it is. Nothing is changed while
    /// anything in the file is wrong. With --dry-run, each field that would change is shown.
    #[command(
        after_help = "Example: raingauge counters apply -f demo/taxi.counters.yaml --dry-run"
    )]
    Apply {
        /// File of counters; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Say what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Why; the versions of a counter keep it
        #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
    /// Archive a counter: it neither counts nor answers any more; its versions and its counts stay
    /// until it is purged
    #[command(after_help = "Example: raingauge counters delete 34 --reason 'the campaign is over'")]
    Delete {
        /// Id of the counter
        id: u32,
        /// Why; the versions of a counter keep it
        #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
    /// Erase the counts of a key
    ///
    /// They are gone for good, from memory and disk, and no backfill brings them back. The event
    /// log keeps the events themselves until its retention ends; the answer says when.
    #[command(after_help = "Example: raingauge counters erase-key 34 rain_drops:city:111222")]
    EraseKey {
        /// Id of the counter
        id: u32,
        /// The key
        key: String,
        #[command(flatten)]
        place: Place,
    },
    /// Erase everything that a counter has counted, of all keys
    ///
    /// The counts are gone for good, and no backfill brings them back; the counter goes on and
    /// counts from nothing. A backfill that runs is cancelled. The space is freed in the
    /// background, by a server, from about two minutes later on.
    #[command(after_help = "Example: raingauge counters erase 34 --yes")]
    Erase {
        /// Id of the counter
        id: u32,
        /// Confirm that the counts of all keys are to go
        #[arg(long, required = true)]
        yes: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Erase what an archived counter keeps, and free the space
    ///
    /// Its versions stay. When it is brought back, it counts from nothing. The space is freed in
    /// the background, by a server, from about two minutes later on.
    #[command(after_help = "Example: raingauge counters purge 34")]
    Purge {
        /// Id of the counter
        id: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Show what the counters of a file would have counted of the newest events, and change nothing
    #[command(after_help = "Example: raingauge counters preview -f draft.yaml")]
    Preview {
        /// File of counters; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Make the counts of a counter again from the event log
    #[command(after_help = "Example: raingauge counters backfill 34 --wait")]
    Backfill {
        /// Id of the counter
        id: u32,
        /// Return when it has finished; on a data folder that is always so
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        place: Place,
    },
}

impl Counters {
    pub fn run(self) -> anyhow::Result<()> {
        let json = self.json;
        match self.command {
            Command::List { place } => place.with(|session| list(session, json)),
            Command::Get { id, place } => place.with(|session| get(session, id, json)),
            Command::Export { all, place } => place.with(|session| export(session, all, json)),
            Command::Apply { file, dry_run, reason, place } => {
                let drafts = Drafts::load(&file)?;
                let outcomes =
                    place.with(|session| apply(&session.client, drafts, dry_run, &reason))?;
                report(&outcomes, dry_run, json)
            }
            Command::Delete { id, reason, place } => {
                place.with(|session| delete(session, id, &reason, json))
            }
            Command::EraseKey { id, key, place } => {
                place.with(|session| erase_key(session, id, &key, json))
            }
            Command::Erase { id, place, .. } => place.with(|session| {
                let path = format!("/v1/counters/{id}/keys");
                erase(
                    session,
                    (Method::DELETE, &path),
                    &format!("counter {id}: every count is erased"),
                    json,
                )
            }),
            Command::Purge { id, place } => place.with(|session| {
                let path = format!("/v1/counters/{id}/purge");
                erase(
                    session,
                    (Method::POST, &path),
                    &format!("counter {id}: what it kept is erased"),
                    json,
                )
            }),
            Command::Preview { file, place } => {
                let drafts = Drafts::load(&file)?;
                place.with(|session| preview(session, drafts, json))
            }
            Command::Backfill { id, wait, place } => {
                place.with(|session| backfill(session, id, wait, json))
            }
        }
    }
}

/// Checks a reason, which travels in a header of limited length.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let printable = text.chars().all(|character| character == ' ' || character.is_ascii_graphic());
    if printable {
        Ok(text.to_owned())
    } else {
        Err("a reason is printable ASCII on one line".to_owned())
    }
}

fn list(session: &Session, json: bool) -> anyhow::Result<()> {
    let answer = session.client.get("/v1/counters", &[])?;
    if json {
        return Ok(print_json(&answer)?);
    }

    let counters =
        answer["counters"].as_array().context("the server's list of counters cannot be read")?;
    let columns = [
        ("id", Align::Right),
        ("name", Align::Left),
        ("state", Align::Left),
        ("event type", Align::Left),
        ("template", Align::Left),
    ];

    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let row = |found: &Value| {
        ["id", "name", "state", "eventType", "template"].map(|name| text(&found[name])).to_vec()
    };
    Ok(print(&render(&columns, &counters.iter().map(row).collect::<Vec<_>>()))?)
}

fn get(session: &Session, id: u32, json: bool) -> anyhow::Result<()> {
    let found = session.client.get(&format!("/v1/counters/{id}"), &[])?;
    if json {
        return Ok(print_json(&found)?);
    }
    let version = found["version"].as_u64();
    let changed_at = found["changedAt"].as_i64();
    let version = version.unwrap_or_default();
    let changed_at = changed_at.unwrap_or_default();
    let by = found["changedBy"].as_str().unwrap_or_default();
    let yaml = counter_to_yaml(&apply::read(&found)?, version, changed_at, by)?;
    Ok(print(yaml.trim_end())?)
}

fn export(session: &Session, all: bool, json: bool) -> anyhow::Result<()> {
    let answer = session.client.get("/v1/counters", &[])?;
    let found =
        answer["counters"].as_array().context("the server's list of counters cannot be read")?;
    let counters: Vec<_> = found.iter().map(apply::read).collect::<Result<_, _>>()?;
    let policy = policy_of(&session.client.get("/v1/cache-policy", &[])?)?;
    let settings = Settings::new(counters, policy, all);
    if json {
        return Ok(print_json(&json!(settings))?);
    }
    Ok(print(settings.to_yaml()?.trim_end())?)
}

fn report(outcomes: &[Outcome], dry_run: bool, json: bool) -> anyhow::Result<()> {
    let failed = outcomes.iter().filter(|outcome| !outcome.problems.is_empty()).count();
    if json {
        print_json(&json!({ "dryRun": dry_run, "counters": outcomes }))?;
    } else {
        for outcome in outcomes {
            print(&outcome.line(dry_run))?;
        }
        if outcomes.iter().all(|outcome| outcome.action == Action::Unchanged) {
            print("no changes")?;
        }
    }

    if failed > 0 {
        bail!("{failed} of {} counters could not be applied", outcomes.len());
    }
    Ok(())
}

fn erase_key(session: &Session, id: u32, key: &str, json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/counters/{id}/keys/{}", encoded(key));
    erase(session, (Method::DELETE, &path), &format!("{key} of counter {id}: erased"), json)
}

/// Erases by a request, and prints the outcome and by when the log drops the events.
fn erase(
    session: &Session,
    (method, path): (Method, &str),
    done: &str,
    json: bool,
) -> anyhow::Result<()> {
    let answer = session.client.send(method, path, &[], b"")?;
    if json {
        return Ok(print_json(&answer)?);
    }
    print(done)?;

    match answer["logForgetsAt"].as_i64() {
        Some(at_s) => note(&format!(
            "the log forgets the events by {}",
            raingauge_core::time::format_rfc3339(at_s)
        )),
        None => note("the log forgets the events when the retention of its topic ends"),
    }

    Ok(())
}

fn delete(session: &Session, id: u32, reason: &str, json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/counters/{id}");
    let answer = session.client.send(Method::DELETE, &path, &[("x-reason", reason)], &[])?;
    if json {
        return Ok(print_json(&answer)?);
    }
    print(&format!("counter {id} ({}) is archived", answer["name"].as_str().unwrap_or_default()))?;
    note(&format!(
        "it keeps its counts, so that it can be brought back: `raingauge counters purge {id}` frees them"
    ));
    Ok(())
}

fn preview(session: &Session, drafts: Drafts, json: bool) -> anyhow::Result<()> {
    let mut answers = Vec::new();
    for (counter, _) in apply::resolve(&session.client, drafts)? {
        let answer = session.client.post("/v1/counters/preview", &json!(counter))?;
        if !json {
            print_preview(&counter.name, &answer)?;
        }
        answers.push(json!({ "name": counter.name, "preview": answer }));
    }
    if json {
        print_json(&json!({ "previews": answers }))?;
    }
    Ok(())
}

fn print_preview(name: &str, answer: &Value) -> anyhow::Result<()> {
    let number = |name: &str| answer[name].to_string();
    let cells = answer["cellsPerDay"].as_f64().unwrap_or_default();
    print(&format!(
        "{name}: of the newest {} events, {} are of its type; it would count {} in {} keys, about {cells:.0} cells a day",
        number("events"),
        number("eventsOfType"),
        number("counted"),
        number("keys"),
    ))?;

    for (reason, events) in answer["skipped"].as_object().into_iter().flatten() {
        print(&format!("  passes over {events}: {reason}"))?;
    }

    for problem in answer["conflicts"].as_array().into_iter().flatten() {
        print(&format!("  conflict: {}", problem["detail"].as_str().unwrap_or_default()))?;
    }
    let columns =
        [("hottest keys", Align::Left), ("events", Align::Right), ("count", Align::Right)];
    let row = |hot: &Value| {
        vec![
            hot["key"].as_str().unwrap_or_default().to_owned(),
            hot["events"].to_string(),
            hot["count"].to_string(),
        ]
    };

    let rows: Vec<_> = answer["hottest"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    Ok(print(&render(&columns, &rows))?)
}

fn backfill(session: &Session, id: u32, wait: bool, json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/counters/{id}/backfill");
    let mut answer = session.client.send(Method::POST, &path, &[], &[])?;
    let mut said = u64::MAX;

    while (wait || session.own().is_some()) && answer["status"] == "running" {
        let percent = (answer["progress"].as_f64().unwrap_or_default() * 100.0) as u64;
        if percent != said {
            note(&format!("backfill of counter {id}: {percent} %"));
            said = percent;
        }

        std::thread::sleep(POLL_INTERVAL);
        answer = session.client.get(&path, &[])?;
    }

    if json {
        print_json(&answer)?;
    } else {
        let status = answer["status"].as_str().unwrap_or_default();
        print(&format!(
            "backfill of counter {id} is {status}; {} events counted so far",
            answer["counted"]
        ))?;
    }

    match answer["status"].as_str() {
        Some("cancelled") => {
            let reason = answer["reason"].as_str().unwrap_or("the counter was changed");
            bail!("the backfill of counter {id} was cancelled: {reason}. Start it again")
        }
        _ => Ok(()),
    }
}
