//! `raingauge check-config`

use super::{print, print_json};
use crate::settings::{self, Origin, Problem, Settings};
use anyhow::anyhow;
use clap::Args;
use raingauge_http::connections;
use serde_json::json;
use std::path::PathBuf;

/// Check the configuration, as a whole, and start nothing
///
/// Reads the file, and the variables that override it, and reports every problem at once.
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge check-config --config config/standalone.toml")]
pub struct CheckConfig {
    /// Configuration file (TOML); without one, the defaults and the environment are checked
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CheckConfig {
    pub fn run(self) -> anyhow::Result<()> {
        let checked = Settings::load(self.config.as_deref(), settings::environment(), [])
            .and_then(with_files);
        let warnings = checked.as_ref().map(Settings::warnings).unwrap_or_default();
        if self.json {
            let problems: Vec<_> =
                checked.as_ref().err().into_iter().flatten().map(json_of).collect();
            print_json(
                &json!({ "valid": checked.is_ok(), "problems": problems, "warnings": warnings }),
            )?;
        }

        match checked {
            Ok(settings) if !self.json => {
                warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
                let listen = settings.server.listen;
                let folder = settings.storage.data_dir.display();

                Ok(print(&format!(
                    "the configuration is good: it listens on {listen} and keeps its data in {folder}"
                ))?)
            }
            Ok(_) => Ok(()),
            Err(problems) if self.json => {
                Err(anyhow!("the configuration has {} problem(s)", problems.len()))
            }
            Err(problems) => Err(crate::serve::refused(&problems)),
        }
    }
}

/// Checks the files of TLS, without which no door opens.
fn with_files(settings: Settings) -> Result<Settings, Vec<Problem>> {
    let loaded = settings.server.tls.as_ref().map(connections::tls::load).transpose();
    loaded.map(|_| ()).map_err(|error| {
        vec![Problem {
            key: "server.tls_certificate".to_owned(),
            origin: Origin::Default,
            message: error.to_string(),
            advice: "docs/operations/README.md tells how certificates are made and renewed"
                .to_owned(),
        }]
    })?;
    Ok(settings)
}

fn json_of(problem: &Problem) -> serde_json::Value {
    json!({
        "key": problem.key,
        "origin": problem.origin.to_string(),
        "message": problem.message,
        "advice": problem.advice,
    })
}
