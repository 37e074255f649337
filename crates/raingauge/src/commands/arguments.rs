//! Arguments that several commands take.

use clap::Args;
use raingauge_console::Trust;
use raingauge_core::moment::Moment;
use raingauge_ports::clock::{Clock as _, SystemClock};
use std::path::PathBuf;

/// Which raingauge a command works with.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Where")]
pub struct Place {
    /// Address of a running server
    #[arg(
        long,
        env = "RAINGAUGE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    pub server: String,
    /// Token for that server, when it asks for one
    #[arg(long, env = "RAINGAUGE_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    #[command(flatten)]
    pub trust: Trust,
    /// Work on this data folder instead; no server may be running on it
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Configuration file for the work on a data folder
    #[arg(long, value_name = "FILE", requires = "data_dir")]
    pub config: Option<PathBuf>,
}

/// A range of time, `[from, to)`.
#[derive(Clone, Debug, Args)]
pub struct Range {
    /// Start: epoch seconds, RFC 3339, now, today, yesterday, or an age such as -7d, -24h, -15m
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub from: i64,
    /// End, which is not part of the range; written as the start is
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub to: i64,
}

/// Reads a time of the command line, in seconds since 1970.
pub fn time(text: &str) -> Result<i64, String> {
    let now_s = SystemClock.now_s();
    Moment::parse(text).and_then(|moment| moment.at_s(now_s)).ok_or_else(|| {
        "a time is epoch seconds, RFC 3339 such as 2024-09-24T22:03:50Z, now, today, yesterday, \
         or an age such as -7d, -24h or -15m; from 1970 on"
            .to_owned()
    })
}
