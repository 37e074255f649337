//! Compaction on Cassandra by `nodetool`: one table after the other, so that stopping ends it.

use super::options::HOST;
use super::progress::together;
use raingauge_ports::maintenance::{Error, Progress};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// Pause before a node is asked again whether it compacts the keyspace.
const STOP_INTERVAL: Duration = Duration::from_millis(500);
/// Consecutive checks that must find nothing, since a compaction may be about to start.
const STOP_LOOKS: usize = 2;
/// Longest part of a command's output that is repeated in a message.
const SAID_CHARS_MAX: usize = 300;

pub struct Nodetool {
    command: Vec<String>,
    keyspace: String,
}

/// A line of `compactionstats`.
#[derive(Debug, PartialEq, Eq)]
struct Running {
    id: String,
    keyspace: String,
    progress: Progress,
}

impl Nodetool {
    pub fn new(command: &[String], keyspace: String) -> Result<Self, Error> {
        if command.first().is_some_and(|program| !program.is_empty()) {
            Ok(Self { command: command.to_vec(), keyspace })
        } else {
            Err(Error("maintenance.compaction_command names no program".to_owned()))
        }
    }

    pub async fn compact(&self, host: &str, table: &str) -> Result<(), Error> {
        self.run(host, &["compact", &self.keyspace, table]).await.map(drop)
    }

    pub async fn progress(&self, host: &str) -> Result<Option<Progress>, Error> {
        Ok(together(self.running(host).await?.into_iter().map(|running| running.progress)))
    }

    /// Stops the compactions of this keyspace only.
    pub async fn stop(&self, host: &str) -> Result<(), Error> {
        let mut looks = 0;
        while looks < STOP_LOOKS {
            let running = self.running(host).await?;
            looks = if running.is_empty() { looks + 1 } else { 0 };
            for Running { id, .. } in running {
                self.run(host, &["stop", "-id", &id]).await?;
            }
            tokio::time::sleep(STOP_INTERVAL).await;
        }
        Ok(())
    }

    async fn running(&self, host: &str) -> Result<Vec<Running>, Error> {
        let table = self.run(host, &["compactionstats"]).await?;
        Ok(table
            .lines()
            .filter_map(running)
            .filter(|running| running.keyspace == self.keyspace)
            .collect())
    }

    /// Runs the command and returns its output. Dropping the future kills it and its child
    /// processes.
    async fn run(&self, host: &str, arguments: &[&str]) -> Result<String, Error> {
        let mut words = self.command.iter().map(|word| word.replace(HOST, host));
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command
            .args(words)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());

        let child = command.process_group(0).kill_on_drop(true).spawn().map_err(|error| {
            Error(format!(
                "{program} cannot be run: {error}: install it on this machine, or name its path in \
                 maintenance.compaction_command"
            ))
        })?;

        // nodetool is a script, and the processes it starts would outlive it.
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
        let output = child.wait_with_output().await;
        group.0 = None;

        let output =
            output.map_err(|error| Error(format!("{program} cannot be waited for: {error}")))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(Error(format!("{program} {} failed: {}", arguments.join(" "), said(&output))))
        }
    }
}

/// A process group, killed when it goes out of scope unless it has been waited for.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Processes that have ended already need no signal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Parses `id, compaction type, keyspace, table, completed, total, unit, progress`, where the type
/// may have several words.
fn running(line: &str) -> Option<Running> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [id, .., keyspace, _table, done, total, unit, progress] = words[..] else {
        return None;
    };
    progress.strip_suffix('%').or((progress == "n/a").then_some(progress))?;
    let progress =
        Progress { done: done.parse().ok()?, total: total.parse().ok()?, unit: unit.to_owned() };
    Some(Running { id: id.to_owned(), keyspace: keyspace.to_owned(), progress })
}

/// The output line that names the error.
fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines =
        || errors.lines().chain(text.lines()).map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.starts_with("nodetool:") || line.starts_with("error:"));
    match line.or_else(|| lines().next()) {
        Some(line) => line.chars().take(SAID_CHARS_MAX).collect(),
        None => format!("it ended with {} without a message", output.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_read_from_the_table() {
        let table = "concurrent compactors   2\npending tasks   1\n- ks.tile_table: 1\n\ncompaction throughput (MiB/s)   1.0\n\
            id                                   compaction type  keyspace table      completed total   unit  progress\n\
            f8d0b1a0-c6d4-11f1-9a3f-0f0b5f1a2b3c Major compaction ks       tile_table 4194304   9437184 bytes 44.44%\n\
            active compaction remaining time        0h00m05s\n";
        let found: Vec<Running> = table.lines().filter_map(running).collect();
        let progress = Progress { done: 4_194_304, total: 9_437_184, unit: "bytes".to_owned() };
        let id = "f8d0b1a0-c6d4-11f1-9a3f-0f0b5f1a2b3c".to_owned();
        assert_eq!(found, [Running { id, keyspace: "ks".to_owned(), progress }]);
    }

    #[test]
    fn progress_is_added_up_in_one_unit() {
        let of = |done, total, unit: &str| Progress { done, total, unit: unit.to_owned() };
        assert_eq!(together([]), None);
        let sum = together([of(1, 2, "bytes"), of(10, 20, "bytes"), of(100, 200, "keys")]);
        assert_eq!(sum, Some(of(11, 22, "bytes")));
    }
}
