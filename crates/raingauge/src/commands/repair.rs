//! `raingauge repair`

use crate::{serve, services};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Say what is wrong with the event log of a data folder, and go on without what is lost
///
/// Without --accept-loss and --restamp it changes nothing. No server may be running on the folder;
/// make a copy of the folder first. Restoring a backup loses less in most cases.
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge repair --data-dir /var/lib/raingauge --accept-loss")]
pub struct Repair {
    /// Data folder
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration file (TOML) that names the data folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Go on without the entries that are lost; damaged files are kept under another name
    #[arg(long)]
    accept_loss: bool,
    /// Give entries whose time lies in the future the time of now; this machine's clock must be
    /// right
    #[arg(long)]
    restamp: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Repair {
    pub fn run(self) -> anyhow::Result<()> {
        let settings =
            serve::load_settings(self.config.as_deref(), self.data_dir.as_deref(), None)?;
        let report = services::repair(&settings, self.accept_loss, self.restamp)?;
        if self.json {
            let document = json!({ "appliedTo": report.applied_to, "faults": report.faults, "repaired": !report.is_left });
            return Ok(super::print_json(&document)?);
        }

        if report.faults.is_empty() {
            return Ok(super::print("The event log is sound: there is nothing to repair")?);
        }
        let counted =
            format!("The bucket store includes the log up to offset {}.", report.applied_to);
        let then = if report.is_left {
            "Nothing was changed that needs --accept-loss, or --restamp for times, and was not given it."
        } else {
            "It is repaired. Where times were changed, run a backfill of each counter."
        };

        Ok(super::print(&format!("{}\n{counted} {then}", report.faults.join("\n")))?)
    }
}
