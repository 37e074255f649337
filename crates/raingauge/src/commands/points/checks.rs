//! Sweeps, seals, audits and the verification of a ledger.

use super::JOBS;
use crate::commands::campaigns::tables::print_list;
use crate::commands::campaigns::{POLL_INTERVAL, result_of, text};
use crate::commands::session::Session;
use crate::commands::table::Align;
use crate::commands::{note, print, print_json};
use crate::{serve, services};
use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use raingauge_ports::points::{Verified, VerifiedBooks};
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn sweep(session: &Session, is_json: bool) -> anyhow::Result<()> {
    let started = session.client.post("/v1/points/sweeps", &json!({}))?;
    let sweep = finished(session, started)?;
    if is_json {
        return Ok(print_json(&sweep)?);
    }
    let [wallets, entries] = ["wallets", "entries"].map(|name| text(&sweep[name]));
    Ok(print(&format!("{wallets} wallets are settled by {entries} entries"))?)
}

/// Waits for the end of a sweep, and says how far it is.
fn finished(session: &Session, started: Value) -> anyhow::Result<Value> {
    let mut sweep = started;
    let mut noted = Value::Null;
    while sweep["state"] != "finished" {
        if noted != sweep["wallets"] {
            noted = sweep["wallets"].clone();
            note(&format!("{} wallets are settled", text(&noted)));
        }
        std::thread::sleep(POLL_INTERVAL);
        let listed = session.client.get("/v1/points/sweeps", &[])?;
        let mut found = listed["sweeps"].as_array().into_iter().flatten();
        let found = found.find(|known| known["id"] == sweep["id"]).cloned();
        sweep = found.context("the server has begun again, and sweeps by itself what is left")?;
    }

    let error = text(&sweep["error"]);
    ensure!(error.is_empty(), "the sweep ended early, and is continued by the next one: {error}");
    Ok(sweep)
}

pub fn seal(session: &Session, is_json: bool) -> anyhow::Result<()> {
    let answer = session.client.get("/v1/points/seals", &[])?;
    if is_json {
        return Ok(print_json(&answer)?);
    }
    let columns = [
        ("book", Align::Right, "book"),
        ("sequence", Align::Right, "sequence"),
        ("recorded at", Align::Left, "recordedAt"),
        ("hash", Align::Left, "hash"),
    ];
    print_list(&answer["seals"], &columns)
}

/// Fails if something is not as it should be.
pub fn audit(
    session: &Session,
    programme: Option<&str>,
    resend: bool,
    is_json: bool,
) -> anyhow::Result<()> {
    let request = json!({ "programme": programme, "resend": resend });
    let started = session.client.post("/v1/points/audits", &request)?;
    let found = result_of(session, started, JOBS)?;
    if is_json {
        print_json(&found)?;
    } else {
        for name in
            ["awards", "equal", "refused", "unpriced", "waiting", "dead", "missing", "different"]
        {
            print(&format!("{name:<10} {}", text(&found[name])))?;
        }
        for difference in found["differences"].as_array().into_iter().flatten() {
            let [member, key, detail] =
                ["member", "key", "detail"].map(|name| text(&difference[name]));
            note(&format!("{member} {key}: {detail}"));
        }
    }

    let is_sound = found["different"] == 0 && found["missing"] == found["resent"];
    ensure!(is_sound, "some awards are not what the programmes of their time say");
    Ok(())
}

#[derive(Debug, Args)]
pub struct Verify {
    /// Configuration file (TOML); that of a cluster names the database of its ledger
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder, instead of the configured one
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data_dir: Option<PathBuf>,
    /// Make all that follows from the journal of a data folder again, before it is compared
    #[arg(long)]
    rebuild: bool,
}

impl Verify {
    /// Recomputes what the journal says, and compares. An error is the first difference.
    pub fn run(self, is_json: bool) -> anyhow::Result<()> {
        let verified = self.verified()?.map_err(|difference| anyhow!("{difference}"))?;
        let hash = verified.chain.to_string();
        let VerifiedBooks { entries, records, behind, position, recorded_ms, .. } = verified;
        if is_json {
            return Ok(print_json(&json!({
                "entries": entries,
                "records": records,
                "behind": behind,
                "position": position,
                "recordedMs": recorded_ms,
                "hash": hash,
            }))?);
        }
        Ok(print(&format!(
            "The journal is sound: {records} records follow from its {entries} entries, as they \
             are stored.\nThe hash over all entries is {hash}."
        ))?)
    }

    fn verified(self) -> anyhow::Result<Verified> {
        let folder = match self.data_dir {
            Some(folder) => folder,
            None => {
                let settings = serve::load_settings(self.config.as_deref(), None, None)?;
                if settings.cluster.is_cluster() {
                    ensure!(!self.rebuild, "--rebuild is for data folders, and not for a cluster");
                    let runtime = tokio::runtime::Runtime::new()?;
                    return runtime.block_on(services::verify_shared_points(&settings));
                }
                settings.storage.data_dir
            }
        };
        if self.rebuild {
            services::rebuild_points(&folder)?;
        }
        services::verify_points(&folder)
    }
}
