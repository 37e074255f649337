//! Sweeps, seals, audits and the check of a data folder.

use super::JOBS;
use crate::commands::campaigns::tables::{print_rows, rows_of};
use crate::commands::campaigns::{POLL_INTERVAL, result_of, text};
use crate::commands::session::Session;
use crate::commands::table::Align;
use crate::commands::{note, print, print_json};
use crate::services;
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::path::Path;

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
        ("book", Align::Right),
        ("sequence", Align::Right),
        ("recorded at", Align::Left),
        ("hash", Align::Left),
    ];
    let names = ["book", "sequence", "recordedAt", "hash"];
    let row = |seal: &Value| names.map(|name| text(&seal[name])).to_vec();
    print_rows(&columns, rows_of(&answer["seals"], row))
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

/// Recomputes what the journal says, and compares. An error is the first difference.
pub fn verify(data_dir: &Path, rebuilds: bool, is_json: bool) -> anyhow::Result<()> {
    if rebuilds {
        services::rebuild_points(data_dir)?;
    }
    let summary = services::verify_points(data_dir)?;
    if is_json {
        return Ok(print_json(&summary)?);
    }
    let [entries, records, hash] = ["entries", "records", "hash"].map(|name| text(&summary[name]));
    Ok(print(&format!(
        "The journal is sound: {records} records follow from its {entries} entries, as they are \
         stored.\nThe hash over all entries is {hash}."
    ))?)
}
