//! The systems under test: `scripts/peers` starts one at a time; its processes are monitored by id,
//! and it is stopped at the end.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel reports processor time to programs in hundredths of a second, whatever its internal
/// tick is.
const TICKS_PER_S: f64 = 100.0;
/// The unit of a file's block count, independent of the disk.
const BLOCK_BYTES: u64 = 512;

/// The script that starts and stops systems, and the folder of their data.
#[derive(Debug, Clone)]
pub struct Script {
    pub path: PathBuf,
    pub folder: PathBuf,
    pub core: usize,
}

/// The script's answer about a system: the reason why it is missing, or its details.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ScriptReply {
    missing: Option<String>,
    version: String,
    port: u16,
    pids: Vec<u32>,
    disk: PathBuf,
    user: String,
}

pub enum Started {
    Missing(String),
    Running(Running),
}

/// A running system, which is stopped on drop.
pub struct Running {
    script: Script,
    name: String,
    pub version: String,
    pub port: u16,
    pub pids: Vec<u32>,
    /// The data directory, without write-ahead logs that are deleted later.
    pub disk: PathBuf,
    pub user: String,
}

impl Script {
    pub fn start(&self, name: &str) -> Result<Started> {
        if !self.path.is_file() {
            return Ok(Started::Missing(format!("{} is missing", self.path.display())));
        }

        let said: ScriptReply = serde_json::from_slice(&self.call("start", name)?)
            .with_context(|| format!("{} start did not return JSON", self.path.display()))?;
        if let Some(why) = said.missing {
            return Ok(Started::Missing(why));
        }

        let ScriptReply { version, port, pids, disk, user, .. } = said;
        let script = self.clone();
        let name = name.to_owned();

        Ok(Started::Running(Running { script, name, version, port, pids, disk, user }))
    }

    fn call(&self, command: &str, name: &str) -> Result<Vec<u8>> {
        let output = Command::new(&self.path)
            .arg(command)
            .arg(&self.folder)
            .arg(name)
            .env("SERVER_CORE", self.core.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        ensure!(output.status.success(), "{} {command} {name} failed", self.path.display());
        Ok(output.stdout)
    }
}

impl Running {
    /// Makes the system flush its memory to disk, if that requires its own tool.
    pub fn settle(&self) -> Result<()> {
        self.script.call("settle", &self.name).map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.script.call("stop", &self.name) {
            eprintln!("lab: {} was not stopped: {error:#}", self.name);
        }
    }
}

/// Resource usage of processes and their descendants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    pub cpu_s: f64,
    pub memory_bytes: u64,
}

struct Process {
    parent: u32,
    /// Of the process and of its children that have exited.
    ticks: u64,
}

pub fn usage(roots: &[u32]) -> Result<Usage> {
    let processes = processes()?;
    let all = with_children(roots, &processes);
    let ticks: u64 =
        all.iter().filter_map(|pid| processes.get(pid)).map(|process| process.ticks).sum();
    let memory_bytes = all.iter().map(|&pid| memory_bytes(pid)).sum();
    Ok(Usage { cpu_s: ticks as f64 / TICKS_PER_S, memory_bytes })
}

fn processes() -> Result<BTreeMap<u32, Process>> {
    let entries = std::fs::read_dir("/proc").context("cannot read /proc")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // A process may exit during the scan.
    let read = |pid: u32| {
        Some((pid, process_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
    };
    Ok(pids.filter_map(read).collect())
}

/// Fields are counted after the name, which may contain spaces.
fn process_of(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>())
        .sum::<Result<u64, _>>()
        .ok()?;
    Some(Process { parent, ticks })
}

fn with_children(roots: &[u32], processes: &BTreeMap<u32, Process>) -> BTreeSet<u32> {
    let mut all: BTreeSet<u32> = roots.iter().copied().collect();
    loop {
        let children = processes
            .iter()
            .filter(|(_, process)| all.contains(&process.parent))
            .map(|(&pid, _)| pid);
        let more: Vec<u32> = children.filter(|pid| !all.contains(pid)).collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// Shared memory is counted once: each process is charged its proportional share.
fn memory_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024
}

/// Disk space used by the files below a folder.
pub fn disk_bytes(path: &Path) -> u64 {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    let own = metadata.blocks() * BLOCK_BYTES;
    if !metadata.is_dir() {
        return own;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + entries.map(|entry| disk_bytes(&entry.path())).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(text: &str) -> (tempfile::TempDir, Script) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let script = Script { path, folder: folder.path().to_owned(), core: 0 };
        (folder, script)
    }

    #[test]
    fn a_system_that_is_not_installed_is_named_with_its_reason() {
        let (_folder, script) = script(r#"echo '{"missing":"DuckDB is not installed"}'"#);
        let Started::Missing(why) = script.start("duckdb").unwrap() else { panic!("it runs") };
        assert_eq!(why, "DuckDB is not installed");
        let nowhere = Script { path: "/nowhere/peers".into(), ..script };
        assert!(matches!(nowhere.start("duckdb").unwrap(), Started::Missing(_)));
    }

    #[test]
    fn a_system_is_stopped_by_its_name_when_it_is_dropped() {
        let (folder, script) =
            script(r#"echo "$1 $3 $SERVER_CORE" >>"$2/called"; echo '{"port":5,"pids":[7]}'"#);
        let Started::Running(running) = script.start("redis").unwrap() else {
            panic!("it is missing")
        };
        assert_eq!((running.port, running.pids.as_slice()), (5, &[7][..]));
        drop(running);
        let called = std::fs::read_to_string(folder.path().join("called")).unwrap();
        assert_eq!(called, "start redis 0\nstop redis 0\n");
    }

    #[test]
    fn children_count_with_their_parents() {
        let process = |parent| Process { parent, ticks: 1 };
        let processes =
            BTreeMap::from([(2, process(1)), (3, process(2)), (4, process(3)), (5, process(1))]);
        assert_eq!(with_children(&[2], &processes), BTreeSet::from([2, 3, 4]));
        let stat = "7 (a) b) S 6 7 7 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 100";
        let process = process_of(stat).unwrap();
        assert_eq!((process.parent, process.ticks), (6, 100));
        let own = usage(&[std::process::id()]).unwrap();
        assert!(own.memory_bytes > 0);
    }

    #[test]
    fn files_in_folders_take_room() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), vec![7; 100_000]).unwrap();
        assert!(disk_bytes(folder.path()) >= 100_000);
        assert_eq!(disk_bytes(Path::new("/nowhere")), 0);
    }
}
