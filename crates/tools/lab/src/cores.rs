//! Pins processes to cores and measures how busy each core was. A server measured below a full core
//! was limited by something else (its disk, or a client at a full core), and the report should show
//! that.

use crate::process::own_ticks;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Cores {
    /// The core that servers run on
    #[arg(long, default_value_t = 0)]
    pub server_core: usize,
    /// The core that this program runs on
    #[arg(long, default_value_t = 1)]
    pub client_core: usize,
}

/// Pins this process, with all its current and future threads, to one core.
pub fn pin_self(core: usize) -> Result<()> {
    let status = Command::new("taskset")
        .args(["-acp", &core.to_string(), &std::process::id().to_string()])
        .stdout(Stdio::null())
        .status()
        .context("cannot run taskset")?;
    ensure!(status.success(), "cannot pin this process to core {core}");
    Ok(())
}

/// Gives all threads of a process real-time priority (round robin), so that they run before those
/// of other processes.
pub fn prefer_process(process: u32) -> Result<()> {
    prefer(&["--all-tasks", "--rr", "--pid", "1", &process.to_string()])
}

/// Does the same for the calling thread.
pub fn prefer_self() -> Result<()> {
    let own = std::fs::read_link("/proc/thread-self").context("/proc does not name this thread")?;
    let id = own
        .file_name()
        .and_then(|name| name.to_str())
        .context("/proc/thread-self has an unexpected format")?;
    prefer(&["--rr", "--pid", "1", id])
}

fn prefer(arguments: &[&str]) -> Result<()> {
    let output = Command::new("chrt").args(arguments).output().context("cannot run chrt")?;
    let text = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(
        output.status.success(),
        "cannot set real-time priority, which requires root: {}",
        text()
    );
    Ok(())
}

/// Shares of time, from 0 to 1.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Busy {
    /// The server's core, including every process that ran on it.
    pub server_core: f64,
    /// The same for the client's core.
    pub client_core: f64,
    /// This program alone: a value near 1 means that the client was the bottleneck.
    pub client: f64,
}

pub struct Watch {
    cores: Cores,
    start: (Ticks, Ticks),
    own_start: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Ticks {
    busy: u64,
    total: u64,
}

impl Watch {
    pub fn start(cores: Cores) -> Result<Self> {
        Ok(Self { cores, start: sample(cores)?, own_start: own_ticks()? })
    }

    pub fn busy(&self) -> Result<Busy> {
        let (server, client) = sample(self.cores)?;
        let total = (client.total - self.start.1.total).max(1) as f64;
        let share = |from: Ticks, to: Ticks| {
            (to.busy - from.busy) as f64 / (to.total - from.total).max(1) as f64
        };
        Ok(Busy {
            server_core: share(self.start.0, server),
            client_core: share(self.start.1, client),
            client: (own_ticks()? - self.own_start) as f64 / total,
        })
    }
}

fn sample(cores: Cores) -> Result<(Ticks, Ticks)> {
    let text = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let of = |core: usize| {
        ticks(&text, core).with_context(|| format!("/proc/stat does not list core {core}"))
    };
    Ok((of(cores.server_core)?, of(cores.client_core)?))
}

/// The line is `cpuN user nice system idle iowait irq softirq steal …`; idle and iowait are not
/// work.
fn ticks(text: &str, core: usize) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} ")))?;
    let fields: Vec<u64> =
        line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let total: u64 = fields.iter().sum();
    let idle = fields.get(3)? + fields.get(4)?;
    Some(Ticks { busy: total - idle, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_the_disk_are_not_work() {
        let text =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 5 100 20 2 3 4 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(ticks(text, 0), Some(Ticks { busy: 25, total: 145 }));
        assert_eq!(ticks(text, 7), None);
    }
}
