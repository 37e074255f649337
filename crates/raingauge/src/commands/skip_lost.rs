//! `raingauge skip-lost`

use crate::{serve, services};
use clap::Args;
use raingauge_ports::consumers::Name;
use raingauge_ports::log::Partition;
use serde_json::json;
use std::path::PathBuf;

/// Let a consumer of the event log go on behind what the log dropped before it was read
///
/// Such a consumer stands still until this skips what is lost, so that nothing is lost silently.
/// Without --yes it says what is lost, and changes nothing. Kafka may drop entries before they are
/// counted; writers may run then, and the one that counts the partition goes on within ten seconds.
/// The log of a data folder drops entries only before other consumers have read them; its server
/// has to be stopped.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge skip-lost --config config/cluster.toml --partition 3 --yes"
)]
pub struct SkipLost {
    /// Configuration file (TOML); docs/configuration.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder, instead of the configured one
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Consumer that goes on, as the metrics and logs name it
    #[arg(long, value_name = "NAME", default_value = "counting", value_parser = consumer)]
    consumer: Name,
    /// Partition of the log, as /readyz and the logs of the writers name it; 0 in a data folder
    #[arg(long, value_name = "NUMBER")]
    partition: Partition,
    /// Do it: what is lost stays unread, and is not counted
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SkipLost {
    pub fn run(self) -> anyhow::Result<()> {
        let settings =
            serve::load_settings(self.config.as_deref(), self.data_dir.as_deref(), None)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let lost = services::skip_lost(&settings, &self.consumer, self.partition, self.yes);
        let lost = runtime.block_on(lost);

        runtime.shutdown_background();
        let Some(lost) = lost? else {
            anyhow::bail!(
                "partition {} has lost nothing: everything that {} has not read is in the log",
                self.partition,
                self.consumer
            );
        };

        if self.json {
            let document = json!({
                "consumer": lost.consumer.as_str(),
                "partition": lost.partition,
                "position": lost.position,
                "start": lost.start,
                "entries": lost.entries(),
                "skipped": self.yes,
            });
            return Ok(super::print_json(&document)?);
        }

        let then = if self.yes {
            format!("{} goes on behind it", self.consumer)
        } else {
            format!("Nothing was changed; with --yes {} goes on behind it", self.consumer)
        };
        Ok(super::print(&format!("{lost} ({} entries). {then}", lost.entries()))?)
    }
}

fn consumer(text: &str) -> Result<Name, String> {
    Name::new(text).ok_or_else(|| "a consumer has a name of letters, digits and hyphens".to_owned())
}
