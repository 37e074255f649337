//! Opening balances from a file.

use super::super::counters::reason;
use crate::commands::arguments::Place;
use crate::commands::campaigns::text;
use crate::commands::session::Session;
use crate::commands::{note, print, print_json};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;

/// Most rows of a request.
const BATCH_LEN_MAX: usize = 1_000;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// The account that opening balances come from.
const BUDGET: &str = "opening";

#[derive(Debug, Args)]
pub struct Import {
    /// CSV file
    file: PathBuf,
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
        let mark = self.mark()?;
        let mut rows = csv::Reader::from_path(&self.file)
            .with_context(|| format!("{} cannot be read", self.file.display()))?;
        let columns = rows.headers()?.clone();
        for needed in ["programme", "member", "points"] {
            ensure!(columns.iter().any(|column| column == needed), "there is no column {needed}");
        }

        let mut outcome = Outcome::default();
        let mut batch = Vec::new();
        for (place, row) in rows.records().enumerate() {
            batch.push(self.award(&columns, &row?, &mark, place + 1)?);
            if batch.len() == BATCH_LEN_MAX {
                send(session, std::mem::take(&mut batch), &mut outcome)?;
            }
        }
        send(session, batch, &mut outcome)?;
        Ok(outcome)
    }

    /// What keys of rows begin with: the same for the same content.
    fn mark(&self) -> anyhow::Result<String> {
        let mut file = std::fs::File::open(&self.file)
            .with_context(|| format!("{} cannot be read", self.file.display()))?;
        ensure!(file.metadata()?.len() <= FILE_BYTES_MAX, "the file is larger than 4 GiB");
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            match std::io::Read::read(&mut file, &mut chunk)? {
                0 => break,
                len => hash.update(&chunk[..len]),
            }
        }
        Ok(hex::encode(&hash.finalize()[..8]))
    }

    fn award(
        &self,
        columns: &csv::StringRecord,
        row: &csv::StringRecord,
        mark: &str,
        number: usize,
    ) -> anyhow::Result<Value> {
        let mut award = json!({
            "key": format!("import:{mark}:{number}"), "budget": BUDGET, "reason": self.reason,
        });
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

fn send(session: &Session, batch: Vec<Value>, outcome: &mut Outcome) -> anyhow::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let answer = session.client.post("/v1/points/awards", &json!({ "awards": batch }))?;
    let results = answer["results"].as_array().context("the answer has no results")?;
    for (award, result) in batch.iter().zip(results) {
        let error = &result["error"];
        if error.is_object() {
            let [member, code, detail] =
                [&award["member"], &error["code"], &error["detail"]].map(text);
            outcome.refused.push(format!("{member}: {code}: {detail}"));
        } else if result["replayed"] == true {
            outcome.replayed += 1;
        } else {
            outcome.awarded += 1;
        }
    }
    Ok(())
}
