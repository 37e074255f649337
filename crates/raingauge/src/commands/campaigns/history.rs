//! `raingauge campaigns history`

use crate::commands::arguments::time;
use crate::products::HISTORY;
use anyhow::Context as _;
use clap::Args;
use raingauge_campaign_doors::history;
use serde_json::Value;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct History {
    /// Data folder
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Start of the time shown
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    from: i64,
    /// End of the time shown
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "now",
          allow_hyphen_values = true)]
    to: i64,
    /// Those of this campaign alone
    #[arg(long, value_name = "ID")]
    campaign: Option<u32>,
    /// Those about this subject alone
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
}

impl History {
    pub fn run(self) -> anyhow::Result<()> {
        let is_asked = |line: &Value| {
            self.campaign.is_none_or(|campaign| line["campaign"] == campaign)
                && self.subject.as_ref().is_none_or(|subject| line["subject"] == **subject)
        };
        let folder = self.data_dir.join(HISTORY);
        std::fs::read_dir(&folder)
            .with_context(|| format!("there is no history in {}", folder.display()))?;

        let mut lines = BufWriter::new(io::stdout().lock());
        history::read(&folder, self.from..self.to, |line| {
            if is_asked(line) { writeln!(lines, "{line}") } else { Ok(()) }
        })?;
        Ok(lines.flush()?)
    }
}
