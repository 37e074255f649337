//! A cluster to work on: the engines, and the processes of raingauge over them.

pub mod roles;
pub mod servers;

use anyhow::{Context, Result};
use servers::Servers;
use std::path::{Path, PathBuf, absolute};

/// What a run on a cluster is given.
#[derive(Debug, Clone, clap::Args)]
pub struct Given {
    /// Folder of running servers, as `scripts/services start` made it
    #[arg(long)]
    pub services: PathBuf,
    /// The script that started them
    #[arg(long, default_value = "scripts/services")]
    pub script: PathBuf,
    /// The raingauge program; default: this one
    #[arg(long, default_value_os_t = crate::cli::this_program())]
    pub binary: PathBuf,
}

impl Given {
    pub fn servers(&self) -> Result<Servers> {
        Servers::new(&self.script, &self.services)
    }

    /// The folder for the logs of a run: the one that is wanted, or one below the servers'.
    pub fn logs(&self, wanted: Option<&Path>, run: &str) -> Result<PathBuf> {
        made(&wanted.map_or_else(|| self.services.join("logs").join(run), Path::to_owned))
    }
}

/// A folder that is there, by its whole path.
pub fn made(folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(absolute(folder)?)
}
