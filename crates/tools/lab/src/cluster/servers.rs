//! The engines of the cluster, which `scripts/services` starts, breaks and repairs.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest duration of one call of the script.
const CALL_MAX_S: u64 = 600;
/// Longest time until the nodes see each other again.
const UP_MAX: Duration = Duration::from_secs(300);

/// The addresses of the engines, read from `DIR/env`.
#[derive(Debug)]
pub struct Servers {
    script: PathBuf,
    folder: PathBuf,
    variables: HashMap<String, String>,
}

impl Servers {
    pub fn new(script: &Path, folder: &Path) -> Result<Self> {
        let path = folder.join("env");
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}: start servers with {} start", path.display(), script.display())
        })?;
        let unquoted = |value: &str| value.trim_matches('\'').to_owned();
        let variables = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), unquoted(value)))
            .collect();
        Ok(Self { script: script.to_owned(), folder: folder.to_owned(), variables })
    }

    pub fn address(&self, engine: &str) -> Option<&str> {
        self.variables.get(&format!("RAINGAUGE_TEST_{engine}")).map(String::as_str)
    }

    pub fn needed(&self, engine: &str) -> Result<&str> {
        self.address(engine).with_context(|| format!("{} has no {engine}", self.folder.display()))
    }

    /// The process id of a server.
    pub fn process(&self, name: &str) -> Result<u32> {
        let path = self.folder.join("pids").join(name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        text.split_whitespace()
            .next()
            .and_then(|id| id.parse().ok())
            .with_context(|| format!("{} contains no process id", path.display()))
    }

    /// The command line of a node's nodetool, to which its arguments are appended.
    pub fn nodetool_command(&self, number: usize) -> Result<String> {
        let path = |path: &Path| std::path::absolute(path).map(|path| path.display().to_string());
        Ok(format!("{} nodetool {} {number}", path(&self.script)?, path(&self.folder)?))
    }

    pub fn nodetool(&self, number: usize, command: &[&str]) -> Result<String> {
        self.call("nodetool", &[&[number.to_string().as_str()], command].concat())
    }

    pub fn nodes(&self) -> usize {
        self.address("CQL").map_or(0, |addresses| addresses.split(',').count())
    }

    pub fn node(number: usize) -> String {
        format!("cassandra-{}", number + 1)
    }

    fn brokers(&self) -> usize {
        self.address("KAFKA").map_or(0, |addresses| addresses.split(',').count())
    }

    /// One of the brokers; `which` is taken modulo their number.
    pub fn broker(&self, which: usize) -> String {
        match self.brokers() {
            0 | 1 => "kafka".to_owned(),
            several => format!("kafka-{}", which % several + 1),
        }
    }

    /// Replication factor that the brokers allow, at most three.
    pub fn broker_copies(&self) -> usize {
        self.brokers().clamp(1, 3)
    }

    /// Kills a server. The only node of a Cassandra is shut down cleanly instead: it acknowledges
    /// writes up to 0.1 s before they are durable in its commit log, and no other node has a copy.
    pub fn kill(&self, name: &str) -> Result<()> {
        let is_only_node = self.nodes() == 1 && name == Self::node(0);
        let command = if is_only_node { "stop" } else { "kill" };
        self.call(command, &[name]).map(drop)
    }

    pub fn stop(&self, name: &str) -> Result<()> {
        self.call("stop", &[name]).map(drop)
    }

    pub fn pause(&self, name: &str) -> Result<()> {
        self.call("pause", &[name]).map(drop)
    }

    pub fn resume(&self, name: &str) -> Result<()> {
        self.call("resume", &[name]).map(drop)
    }

    /// Restarts a server that was killed, and waits until it responds.
    pub fn restart(&self, name: &str) -> Result<()> {
        self.call("restart", &[name]).map(drop)
    }

    /// Lists all servers by name, with their state: running, paused or stopped.
    pub fn states(&self) -> Result<Vec<(String, String)>> {
        let lines = self.call("status", &[])?;
        let parse = |line: &str| -> Result<(String, String)> {
            let status: Value = serde_json::from_str(line)?;
            let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
            Ok((text("name"), text("state")))
        };
        lines.lines().map(parse).collect()
    }

    /// Restores every server that is not running, and waits until it responds.
    pub fn restore_all(&self) -> Result<()> {
        for (name, state) in self.states()? {
            match state.as_str() {
                "running" => {}
                "paused" => self.resume(&name)?,
                _ => self.restart(&name)?,
            }
        }
        self.wait_for_nodes()
    }

    /// Waits until every node sees all nodes up.
    pub fn wait_for_nodes(&self) -> Result<()> {
        let nodes = self.nodes();
        if nodes < 2 {
            return Ok(());
        }

        let deadline = Instant::now() + UP_MAX;
        for number in 1..=nodes {
            loop {
                let seen = self.nodetool(number, &["status"]);
                let up = seen
                    .as_deref()
                    .map_or(0, |text| text.lines().filter(|line| line.starts_with("UN ")).count());
                if up == nodes {
                    break;
                }
                ensure!(
                    Instant::now() < deadline,
                    "waited {UP_MAX:?} until cassandra-{number} saw {nodes} nodes up; it sees {up}"
                );
                std::thread::sleep(Duration::from_millis(500));
            }
        }

        Ok(())
    }

    fn call(&self, command: &str, arguments: &[&str]) -> Result<String> {
        let what = || format!("{} {command} {}", self.script.display(), arguments.join(" "));
        let output = Command::new("timeout")
            .arg(CALL_MAX_S.to_string())
            .arg(&self.script)
            .arg(command)
            .arg(&self.folder)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .with_context(what)?;

        if !output.status.success() {
            bail!(
                "{} failed ({}): {}",
                what(),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }

        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
