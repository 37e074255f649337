//! Opening balances from a file.

use super::super::counters::reason;
use crate::commands::arguments::Place;
use crate::commands::campaigns::text;
use crate::commands::session::Session;
use crate::commands::{note, print, print_json};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use raingauge_core::code::Code;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;

/// Most rows of a request.
const BATCH_LEN_MAX: usize = 1_000;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// Why a row is refused whose key has awarded something else.
const CHANGED: &str = "a row of this member was loaded before with other content: adjust the \
                       points, or give another load a --name of its own";
/// The account that opening balances come from.
const BUDGET: &str = "opening";

#[derive(Debug, Args)]
pub struct Import {
    /// CSV file
    file: PathBuf,
    /// Name of the load. The rows of a member are awarded once under it, in whatever file: so a
    /// file can be corrected and loaded again
    #[arg(long, default_value = "opening")]
    name: String,
    /// Why; the entries keep it
    #[arg(long, default_value = "opening balance", value_parser = reason)]
    reason: String,
    #[command(flatten)]
    place: Place,
}

/// What became of the rows.
#[derive(Default)]
struct Outcome {
    awarded: u64,
    replayed: u64,
    refused: Vec<String>,
}

impl Import {
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let outcome = self.place.with(|session| self.load(session))?;
        let Outcome { awarded, replayed, refused } = outcome;
        for line in &refused {
            note(line);
        }
        if is_json {
            let counts = json!({
                "awarded": awarded, "replayed": replayed, "refused": refused.len(),
            });
            print_json(&counts)?;
        } else {
            print(&format!("{awarded} awarded, {replayed} known, {} refused", refused.len()))?;
        }
        ensure!(refused.is_empty(), "{} rows were refused", refused.len());
        Ok(())
    }

    fn load(&self, session: &Session) -> anyhow::Result<Outcome> {
        let unread = || format!("{} cannot be read", self.file.display());
        let file = std::fs::File::open(&self.file).with_context(unread)?;
        ensure!(file.metadata()?.len() <= FILE_BYTES_MAX, "the file is larger than 4 GiB");
        // Without returns, a row ends with its line.
        let mut rows = csv::Reader::from_reader(WithoutReturns(file).chain(&b"\n"[..]));
        let columns = rows.headers()?.clone();
        for needed in ["programme", "member", "points"] {
            ensure!(columns.iter().any(|column| column == needed), "there is no column {needed}");
        }

        let mut outcome = Outcome::default();
        let mut batch = Vec::new();
        let mut rows_of_members = HashMap::new();
        let mut row = csv::StringRecord::new();
        while rows.read_record(&mut row).with_context(unread)? {
            let within: usize = row.iter().map(|cell| cell.matches('\n').count()).sum();
            let line = rows.position().line() - 1 - within as u64;
            batch.push((line, self.award(&columns, &row, &mut rows_of_members)?));
            if batch.len() == BATCH_LEN_MAX {
                send(session, std::mem::take(&mut batch), &mut outcome)?;
            }
        }
        send(session, batch, &mut outcome)?;
        Ok(outcome)
    }

    /// The award of a row. Its key depends on its member and on how many rows of that came before,
    /// and not on what it awards: a row that was loaded and then changed is refused.
    fn award(
        &self,
        columns: &csv::StringRecord,
        row: &csv::StringRecord,
        rows_of_members: &mut HashMap<[u8; 16], u32>,
    ) -> anyhow::Result<Value> {
        let cell = |name: &str| {
            columns.iter().zip(row).find(|(column, _)| *column == name).map_or("", |(_, cell)| cell)
        };
        let member = hash_of(&json!([self.name, cell("programme"), cell("member")]));
        let number = rows_of_members.entry(member).or_default();
        *number += 1;
        let key = format!("import:{}:{number}", hex::encode(member));
        // What was owed before is not pending.
        let mut award =
            json!({"key": key, "budget": BUDGET, "reason": self.reason, "pendingDays": 0});
        for (column, cell) in columns.iter().zip(row) {
            match column {
                "programme" | "member" | "points" | "expiresOn" | "key" | "reason" => {
                    if !cell.is_empty() {
                        award[column] = json!(cell);
                    }
                }
                other => bail!("there is a column {other}, which opening balances do not have"),
            }
        }
        Ok(award)
    }
}

/// A file of any system with the ends of lines that Unix has.
struct WithoutReturns<R>(R);

impl<R: Read> Read for WithoutReturns<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(buffer)?;
            let mut kept = 0;
            for at in 0..read {
                if buffer[at] != b'\r' {
                    buffer[kept] = buffer[at];
                    kept += 1;
                }
            }
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}

fn hash_of(value: &Value) -> [u8; 16] {
    let hash = Sha256::digest(value.to_string());
    std::array::from_fn(|at| hash[at])
}

/// Sends rows with their lines in the file.
fn send(session: &Session, batch: Vec<(u64, Value)>, outcome: &mut Outcome) -> anyhow::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let (lines, awards): (Vec<u64>, Vec<Value>) = batch.into_iter().unzip();
    let answer = session.client.post("/v1/points/awards", &json!({ "awards": awards }))?;
    let results = answer["results"].as_array().context("the answer has no results")?;
    for ((line, award), result) in lines.iter().zip(&awards).zip(results) {
        let error = &result["error"];
        if error.is_object() {
            let [member, code, detail] =
                [&award["member"], &error["code"], &error["detail"]].map(text);
            let is_changed = code == Code::KeyReused.as_str();
            let detail = if is_changed { CHANGED } else { &detail };
            outcome.refused.push(format!("line {line}, {member}: {code}: {detail}"));
        } else if result["replayed"] == true {
            outcome.replayed += 1;
        } else {
            outcome.awarded += 1;
        }
    }
    Ok(())
}
