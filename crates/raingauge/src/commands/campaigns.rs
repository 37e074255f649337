//! `raingauge campaigns`

mod apply;
mod file;
mod history;
mod replays;
pub mod tables;

pub use apply::{apply, report};
pub use file::{load, load_values, parse, values};

use super::counters::reason;
use super::session::Session;
use super::table::{Align, render};
use super::{note, print, print_json};
use crate::commands::arguments::{Place, time};
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use raingauge_console::{Method, encoded};
use serde_json::Value;
use std::path::PathBuf;

/// Read, change, test and explain campaigns
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: raingauge campaigns apply -f demo/campaigns/07-three-orders.yaml"
)]
pub struct Campaigns {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all campaigns
    #[command(after_help = "Example: raingauge campaigns list --state active")]
    List {
        /// Those in this state alone
        #[arg(long)]
        state: Option<CampaignState>,
        #[command(flatten)]
        place: Place,
    },
    /// Show one campaign, in the form that apply takes
    #[command(after_help = "Example: raingauge campaigns get 7 >orders.yaml")]
    Get {
        /// Id of the campaign
        id: u32,
        #[command(flatten)]
        place: Place,
    },
    /// Create the documents of a file, or replace those that have changed
    ///
    /// The file holds campaigns and what they name: destinations, lookups, tables, segments,
    /// budgets, caps and holdouts, in YAML or JSON, one or a list. Each names its kind, except
    /// campaigns. A campaign without an id is found by its name. What is not in the file stays as
    /// it is.
    #[command(after_help = "Example: raingauge campaigns apply -f demo/campaigns/shared.yaml")]
    Apply {
        /// File of documents; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Say what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Why; the versions of a document keep it
        #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
    /// Show how the documents of a file differ from those of the server
    #[command(after_help = "Example: raingauge campaigns diff -f orders.yaml")]
    Diff {
        /// File of documents; - is standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// End a campaign: it decides nothing more, and what waits is cancelled
    #[command(after_help = "Example: raingauge campaigns archive 7 --reason 'it is over'")]
    Archive {
        #[command(flatten)]
        change: Change,
    },
    /// Delete a campaign that is a draft or archived; its versions and its decisions stay
    #[command(after_help = "Example: raingauge campaigns delete 7 --reason 'never used'")]
    Delete {
        #[command(flatten)]
        change: Change,
    },
    /// Decide nothing and send nothing until it is resumed; counting goes on
    #[command(after_help = "Example: raingauge campaigns pause 7 --reason 'wrong reward'")]
    Pause {
        #[command(flatten)]
        change: Change,
    },
    /// Decide and send again after a pause; what waited is sent
    #[command(after_help = "Example: raingauge campaigns resume 7")]
    Resume {
        #[command(flatten)]
        change: Change,
    },
    /// Decide without sending anything, with budgets and limits of its own
    #[command(after_help = "Example: raingauge campaigns shadow 7")]
    Shadow {
        #[command(flatten)]
        change: Change,
    },
    /// Decide and act
    #[command(after_help = "Example: raingauge campaigns activate 7 --reason 'reviewed by zoe'")]
    Activate {
        #[command(flatten)]
        change: Change,
    },
    /// Show what campaigns would decide on given events; nothing is kept
    #[command(
        after_help = "Example: raingauge campaigns test -f orders.yaml --events events.ndjson"
    )]
    Test(replays::Test),
    /// Show what campaigns would have decided on the events of the log
    #[command(
        after_help = "Example: raingauge campaigns backtest -f orders.yaml --from -30d --to now\nExample: raingauge campaigns backtest -f orders.yaml --events orders.csv --mapping orders.toml"
    )]
    Backtest(replays::Backtest),
    /// Show who would gain and lose by another version of a campaign
    #[command(
        after_help = "Example: raingauge campaigns compare 7 orders.yaml --from -30d --to now"
    )]
    Compare(replays::Compare),
    /// Say why a subject got something, or did not
    #[command(after_help = "Example: raingauge campaigns explain 7 --subject u-7 --event mart o-2")]
    Explain(replays::Explain),
    /// Erase what campaigns remember of a subject: counts, decisions, deliveries, what waits
    ///
    /// Ids of granted actions stay, so that no event acts twice. The log keeps its events for as
    /// long as its retention says.
    #[command(after_help = "Example: raingauge campaigns erase u-7 --reason 'request of 3 May'")]
    Erase {
        /// The subject, such as the id of a user
        subject: String,
        /// Why; the audit log keeps it
        #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
        reason: String,
        #[command(flatten)]
        place: Place,
    },
    /// Read decisions and deliveries that the ledger has forgotten
    ///
    /// Reads the files in a data folder, whether a server runs on it or not, and prints one JSON
    /// object a line: the newest day first, and of a day its decisions before the deliveries that
    /// ended in it. It takes as long as the files are large.
    #[command(
        after_help = "Example: raingauge campaigns history --data-dir /var/lib/raingauge --from -90d --subject u-7"
    )]
    History(history::History),
    /// Show what a campaign granted, refused and spent, by local day
    #[command(after_help = "Example: raingauge campaigns usage 7 --from -7d --to now")]
    Usage {
        /// Id of the campaign
        id: u32,
        /// Start of the time shown
        #[arg(long, value_name = "TIME", value_parser = time, default_value = "-30d",
              allow_hyphen_values = true)]
        from: i64,
        /// End of the time shown; without one, everything up to this moment
        #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
        to: Option<i64>,
        #[command(flatten)]
        place: Place,
    },
}

/// A change of one campaign.
#[derive(Debug, Args)]
struct Change {
    /// Id of the campaign
    id: u32,
    /// Why; the versions of a campaign keep it
    #[arg(long, default_value = "", hide_default_value = true, value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CampaignState {
    Draft,
    Shadow,
    Active,
    Paused,
    Archived,
}

impl Campaigns {
    pub fn run(self) -> anyhow::Result<()> {
        let json = self.json;
        match self.command {
            Command::List { state, place } => place.with(|session| list(session, state, json)),
            Command::Get { id, place } => place.with(|session| get(session, id, json)),
            Command::Apply { file, dry_run, reason, place } => {
                let drafts = load(&file)?;
                let outcomes =
                    place.with(|session| apply(&session.client, drafts, dry_run, &reason))?;
                report(&outcomes, dry_run, json)
            }
            Command::Diff { file, place } => {
                let drafts = load(&file)?;
                let outcomes = place.with(|session| apply(&session.client, drafts, true, ""))?;
                report(&outcomes, true, json)
            }
            Command::Delete { change } => change.send(Method::DELETE, "", "is deleted", json),
            Command::Archive { change } => {
                change.send(Method::POST, "/archive", "is archived", json)
            }
            Command::Pause { change } => change.send(Method::POST, "/pause", "is paused", json),
            Command::Resume { change } => change.send(Method::POST, "/resume", "goes on", json),
            Command::Shadow { change } => {
                change.send(Method::POST, "/shadow", "decides without acting", json)
            }
            Command::Activate { change } => {
                change.send(Method::POST, "/activate", "is active", json)
            }
            Command::Test(test) => test.run(json),
            Command::Backtest(backtest) => backtest.run(json),
            Command::Compare(compare) => compare.run(json),
            Command::Explain(explain) => explain.run(json),
            Command::Erase { subject, reason, place } => {
                place.with(|session| erase(session, &subject, &reason, json))
            }
            Command::History(history) => history.run(),
            Command::Usage { id, from, to, place } => {
                place.with(|session| usage(session, id, (from, to), json))
            }
        }
    }
}

impl Change {
    fn send(self, method: Method, end: &str, done: &str, json: bool) -> anyhow::Result<()> {
        let Self { id, reason, place } = self;
        place.with(|session| {
            let path = format!("/v1/campaigns/{id}{end}");
            let headers = [("x-reason", reason.as_str())];
            let answer = session.client.send(method, &path, &headers, b"")?;
            if json {
                return Ok(print_json(&answer)?);
            }
            Ok(print(&format!("campaign {id} ({}) {done}", text(&answer["name"])))?)
        })
    }
}

fn list(session: &Session, state: Option<CampaignState>, json: bool) -> anyhow::Result<()> {
    let state = state.and_then(|state| Some(state.to_possible_value()?.get_name().to_owned()));
    let parameters: Vec<_> = state.iter().map(|state| ("state", state.as_str())).collect();
    let answer = session.client.get("/v1/campaigns", &parameters)?;
    if json {
        return Ok(print_json(&answer)?);
    }

    let columns = [
        ("id", Align::Right),
        ("name", Align::Left),
        ("state", Align::Left),
        ("status", Align::Left),
        ("event types", Align::Left),
        ("owner", Align::Left),
    ];
    let row = |found: &Value| {
        ["id", "name", "state", "status", "eventTypes", "owner"]
            .map(|name| text(&found[name]))
            .to_vec()
    };
    let campaigns = answer["campaigns"].as_array();
    let rows: Vec<_> = campaigns.context("the list cannot be read")?.iter().map(row).collect();
    Ok(print(&render(&columns, &rows))?)
}

fn get(session: &Session, id: u32, json: bool) -> anyhow::Result<()> {
    let found = session.client.get(&format!("/v1/campaigns/{id}"), &[])?;
    if json {
        return Ok(print_json(&found)?);
    }
    let mut document = found.clone();
    file::remove_version(&mut document);
    let version = &found["version"];
    let by = text(&found["changedBy"]);
    let yaml = serde_yaml_ng::to_string(&document)?;
    Ok(print(&format!("# Version {version}, by {by}.\n{}", yaml.trim_end()))?)
}

fn erase(session: &Session, subject: &str, reason: &str, json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/subjects/{}", encoded(subject));
    let answer = session.client.send(Method::DELETE, &path, &[("x-reason", reason)], b"")?;
    if json {
        return Ok(print_json(&answer)?);
    }
    Ok(print(&format!("{subject} is erased"))?)
}

fn usage(
    session: &Session,
    id: u32,
    (from, to): (i64, Option<i64>),
    json: bool,
) -> anyhow::Result<()> {
    // Without an end, since this moment in whole seconds would leave out the second under way.
    let mut ends = vec![("from", from.to_string())];
    ends.extend(to.map(|to| ("to", to.to_string())));
    let parameters: Vec<_> = ends.iter().map(|(name, end)| (*name, end.as_str())).collect();
    let path = format!("/v1/campaigns/{id}/usage");
    let answer = session.client.get(&path, &parameters)?;
    if json {
        return Ok(print_json(&answer)?);
    }

    tables::usage(&answer)?;
    if answer["complete"] == false {
        note("there were more decisions than are read at once: ask for a shorter range");
    }
    Ok(())
}

/// Waits until a job has ended, and returns its result. `jobs` is the path of all jobs.
pub(super) fn result_of(session: &Session, started: Value, jobs: &str) -> anyhow::Result<Value> {
    let is_job = started["id"].as_str().is_some() && started["status"].as_str().is_some();
    let Some(id) = started["id"].as_str().filter(|_| is_job).map(str::to_owned) else {
        return Ok(started);
    };
    let path = format!("{jobs}/{id}");
    let mut said = u64::MAX;

    loop {
        let mut job = session.client.get(&path, &[])?;
        match job["status"].as_str() {
            Some("finished") => return Ok(job["result"].take()),
            Some("waiting" | "running") => {}
            status => {
                let why = text(&job["error"]);
                bail!("job {id} is {}: {why}", status.unwrap_or("in no known state"))
            }
        }

        let percent = (job["progress"].as_f64().unwrap_or_default() * 100.0) as u64;
        if percent != said {
            note(&format!("job {id}: {percent} %"));
            said = percent;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Interval between polls of a job's progress.
pub(super) const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(200);

/// A value as people read it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}
