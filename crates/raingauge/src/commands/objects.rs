//! `raingauge objects`

use super::table::grouped;
use super::{note, print, print_json};
use crate::services;
use clap::{Args, Subcommand};
use raingauge_resp_client::copy::{self, Options, Totals};
use raingauge_resp_client::{Address, Error};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Objects of Redis clients
#[derive(Debug, Args)]
pub struct Objects {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Copy(Copy),
    /// Compare the records of all objects in a data folder with each other
    ///
    /// Ends with 0 and a summary, or with 1 and the first difference: a head that cannot be
    /// decoded, a collection with other entries than it counts, an expiry or a removed object that
    /// its index does not have. No server may be running on the folder. Only what a start does is
    /// changed.
    #[command(after_help = "Example: raingauge objects verify --data-dir /var/lib/raingauge")]
    Verify {
        /// Data folder
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Copy every object from one server to another, with its expiry
///
/// Both servers speak the Redis protocol: one of them is usually a Redis, the other one raingauge.
/// An object replaces what the other server has under its name, so a copy that was interrupted is
/// started again. Objects that change during the copy are copied as they were read: stop their
/// writers, or copy again. Streams and modules are left out and counted. Of a cluster, copy each
/// master.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge objects copy --from redis://127.0.0.1:6379 --to redis://127.0.0.1:6380"
)]
struct Copy {
    /// Server to copy from, as redis://[user:password@]host:port
    #[arg(long, value_name = "URL")]
    from: Address,
    /// Server to copy to; a token is a password
    #[arg(long, value_name = "URL")]
    to: Address,
    /// Copy only this database; may be repeated
    #[arg(long, value_name = "NUMBER")]
    database: Vec<u32>,
    /// Copy only keys that match this pattern, as in session:*
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Objects {
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Copy(copy) => copy.run(),
            Command::Verify { data_dir, json } => verify(&data_dir, json),
        }
    }
}

/// Compares all records. An error is the first difference.
fn verify(data_dir: &Path, is_json: bool) -> anyhow::Result<()> {
    let summary = services::verify_store(data_dir)?;
    if is_json {
        return Ok(print_json(&summary)?);
    }

    let [keys, expiring, wide, entries, dead] =
        ["keys", "expiring", "wide", "entries", "dead"].map(|name| summary[name].to_string());
    Ok(print(&format!(
        "The store is sound: {keys} keys, of which {expiring} expire, and {entries} entries of \
         {wide} collections. {dead} removed collections still take room."
    ))?)
}

impl Copy {
    fn run(self) -> anyhow::Result<()> {
        let options = Options {
            from: self.from,
            to: self.to,
            databases: self.database,
            pattern: self.pattern,
        };
        let began = Instant::now();
        let mut last = Totals::default();
        let copied = copy::run(&options, &mut |totals| {
            last = totals.clone();
            note(&progress(totals, began.elapsed().as_secs_f64()));
        });

        let totals = copied.map_err(|error| stopped(error, &last))?;
        if self.json {
            let Totals { keys, bytes, vanished, left_out, expected } = &totals;
            print_json(&json!({
                "keys": keys, "bytes": bytes, "expected": expected,
                "vanished": vanished, "leftOut": left_out,
            }))?;
        } else {
            print(&summary(&totals))?;
        }
        Ok(())
    }
}

/// An error, with what was copied before.
fn stopped(error: Error, totals: &Totals) -> anyhow::Error {
    let keys = grouped(totals.keys as i64);
    let advice = "start the copy again: it replaces what is there";
    anyhow::Error::from(error).context(format!("the copy stopped after {keys} objects; {advice}"))
}

fn progress(totals: &Totals, elapsed_s: f64) -> String {
    let share = totals.keys as f64 / totals.expected.max(1) as f64 * 100.0;
    let rate = totals.keys as f64 / elapsed_s.max(0.001);
    format!(
        "{} of about {} objects ({:.1} %), {} MB, {} objects/s",
        grouped(totals.keys as i64),
        grouped(totals.expected as i64),
        share.min(100.0),
        grouped((totals.bytes / 1_000_000) as i64),
        grouped(rate as i64),
    )
}

fn summary(totals: &Totals) -> String {
    let mut lines = vec![format!("copied: {} objects", grouped(totals.keys as i64))];
    if totals.vanished > 0 {
        let vanished = grouped(totals.vanished as i64);
        lines.push(format!("expired or removed during the copy: {vanished}"));
    }
    for (kind, count) in &totals.left_out {
        let count = grouped(*count as i64);
        lines.push(format!("left out: {count} objects of the type {kind}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn totals_are_shown_with_what_was_left_out() {
        let totals = Totals {
            expected: 2_000,
            keys: 1_000,
            bytes: 3_000_000,
            vanished: 2,
            left_out: BTreeMap::from([("stream".to_owned(), 3)]),
        };
        let text = summary(&totals);
        assert!(text.contains("1,000") && text.contains("stream") && text.contains("removed"));
        let text = progress(&totals, 2.0);
        assert!(text.contains("50.0 %") && text.contains("500 objects/s"), "{text}");
    }
}
