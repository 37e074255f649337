//! `raingauge skip-lost`

use crate::{serve, services};
use clap::Args;
use raingauge_ports::log::Partition;
use serde_json::json;
use std::path::PathBuf;

/// Let counting go on behind what Kafka dropped before it was counted
///
/// Such a partition stands still until this is told to skip it, so that nothing is lost silently. Without --yes it says what
/// is lost, and changes nothing. Writers may run: the one that counts the partition goes on within ten seconds.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge skip-lost --config config/cluster.toml --partition 3 --yes"
)]
pub struct SkipLost {
    /// Configuration file (TOML); docs/configuration.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Partition of the log, as /readyz and the logs of the writers name it
    #[arg(long, value_name = "NUMBER")]
    partition: Partition,
    /// Do it: what is lost stays uncounted
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SkipLost {
    pub fn run(self) -> anyhow::Result<()> {
        let settings = serve::load_settings(self.config.as_deref(), None, None)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let lost = runtime.block_on(services::skip_lost(&settings, self.partition, self.yes));
        runtime.shutdown_background();
        let Some(lost) = lost? else {
            anyhow::bail!(
                "partition {} has lost nothing: everything that is not counted is in the log",
                self.partition
            );
        };
        if self.json {
            let document = json!({
                "partition": lost.partition,
                "position": lost.position,
                "start": lost.start,
                "entries": lost.entries(),
                "skipped": self.yes,
            });
            return Ok(super::print_json(&document)?);
        }
        let then = match self.yes {
            true => "Counting goes on behind it",
            false => "Nothing was changed; with --yes counting goes on behind it",
        };
        Ok(super::print(&format!("{lost} ({} entries). {then}", lost.entries()))?)
    }
}
