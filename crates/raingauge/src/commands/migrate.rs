//! `raingauge migrate`

use crate::{serve, services};
use clap::Args;
use std::path::PathBuf;

/// Make the tables, the topics and the catalog of the cluster engines, or bring them up to date
///
/// Running it again changes nothing. Run it before you start a newer raingauge; older
/// ones may keep running.
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge migrate --config config/cluster.toml")]
pub struct Migrate {
    /// Configuration file (TOML); docs/configuration.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Migrate {
    pub fn run(self) -> anyhow::Result<()> {
        let settings = serve::load_settings(self.config.as_deref(), None, None)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let done = runtime.block_on(services::migrate(&settings))?;
        if self.json {
            return Ok(super::print_json(&serde_json::json!({ "done": done }))?);
        }
        if done.is_empty() {
            let nothing = "the embedded engines need no migration: they bring their data folder up to date themselves";
            return Ok(super::print(nothing)?);
        }
        Ok(super::print(&done.join("\n"))?)
    }
}
