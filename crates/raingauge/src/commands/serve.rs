//! `raingauge serve`

use crate::serve;
use clap::Args;
use clap::builder::PossibleValuesParser;
use raingauge_app::Role;
use std::path::PathBuf;

/// Run the server until SIGTERM or an interrupt
///
/// Prints one line with its address to standard output when it is ready, and logs to standard
/// error. SIGTERM or an interrupt ends it in order: running requests may finish, and what was
/// accepted is counted.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge serve --data-dir /var/lib/raingauge --listen 127.0.0.1:8080\n\
                        Example: raingauge serve --config config/standalone.toml\n\
                        Example: raingauge serve --config config/cluster.toml --role reader"
)]
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
    /// Roles to run in this process, with commas; over the embedded engines that is all of them
    #[arg(
        long,
        value_name = "ROLES",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Role::ALL.map(Role::name))
    )]
    role: Vec<String>,
}

impl Serve {
    pub fn run(self) -> anyhow::Result<()> {
        let mut options = serve::options(self.data_dir.as_deref(), self.listen.as_deref());
        if !self.role.is_empty() {
            options.push(("cluster.roles", "--role", self.role.join(",")));
        }
        serve::run(serve::settings(self.config.as_deref(), options)?)
    }
}
