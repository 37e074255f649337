//! A cluster under test: the engines, and the raingauge processes that use them.

pub mod roles;
pub mod servers;

use anyhow::{Context, Result};
use servers::Servers;
use std::path::{Path, PathBuf, absolute};

/// Command-line options of a run on a cluster.
#[derive(Debug, Clone, clap::Args)]
pub struct ClusterOptions {
    /// Folder of running servers, as created by `scripts/services start`
    #[arg(long)]
    pub services: PathBuf,
    /// The script that started them
    #[arg(long, default_value = "scripts/services")]
    pub script: PathBuf,
    /// The raingauge program; default: this one
    #[arg(long, default_value_os_t = crate::process::this_program())]
    pub binary: PathBuf,
}

impl ClusterOptions {
    pub fn servers(&self) -> Result<Servers> {
        Servers::new(&self.script, &self.services)
    }

    /// The folder for the logs of a run: `wanted`, or one below the servers' folder.
    pub fn logs(&self, wanted: Option<&Path>, run: &str) -> Result<PathBuf> {
        create_folder(&wanted.map_or_else(|| self.services.join("logs").join(run), Path::to_owned))
    }
}

/// Creates a folder, and returns its absolute path.
pub fn create_folder(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(absolute(folder)?)
}
