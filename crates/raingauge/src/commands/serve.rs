//! `raingauge serve`

use crate::serve;
use anyhow::bail;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Run the server until it is told to end
///
/// Prints one line with its address to standard output when it is ready, and logs to standard error. SIGTERM or an interrupt ends it in order: running
/// requests may finish, and what was accepted is counted.
#[derive(Debug, Args)]
#[command(after_help = "Example: raingauge serve --data-dir /var/lib/raingauge --listen 127.0.0.1:8080\n\
                        Example: raingauge serve --config config/standalone.toml")]
pub struct Serve {
    /// Configuration file (TOML); docs/configuration.md lists its keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of the counts, the event log and the counters
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Roles to run in this process; over the embedded engines that is all of them
    #[arg(long, value_name = "ROLES", value_delimiter = ',')]
    role: Vec<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Reader,
    Writer,
    Portal,
}

impl Serve {
    pub fn run(self) -> anyhow::Result<()> {
        check_roles(&self.role)?;
        let settings = serve::load_settings(self.config.as_deref(), self.data_dir.as_deref(), self.listen.as_deref())?;
        serve::run(&settings)
    }
}

/// The embedded engines belong to one process, so the roles cannot part.
fn check_roles(asked: &[Role]) -> anyhow::Result<()> {
    let all = Role::value_variants();
    if !asked.is_empty() && !all.iter().all(|role| asked.contains(role)) {
        bail!(
            "--role must name reader,writer,portal together, or be left out: over the embedded engines one process \
             runs every role; roles run apart only on the cluster engines, which this version does not have"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Portal, Reader, Writer};

    #[test]
    fn roles_come_together_or_not_at_all() {
        for good in [&[][..], &[Reader, Writer, Portal], &[Portal, Reader, Writer, Reader]] {
            assert!(check_roles(good).is_ok(), "{good:?}");
        }
        for bad in [&[Reader][..], &[Writer, Portal], &[Reader, Reader, Reader]] {
            assert!(check_roles(bad).unwrap_err().to_string().contains("cluster engines"), "{bad:?}");
        }
    }
}
