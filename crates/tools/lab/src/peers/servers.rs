//! The systems under test: `scripts/peers` starts one at a time; its processes are monitored by id,
//! and it is stopped at the end.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

pub enum Launch {
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
    pub fn start(&self, name: &str) -> Result<Launch> {
        if !self.path.is_file() {
            return Ok(Launch::Missing(format!("{} is missing", self.path.display())));
        }

        let said: ScriptReply = serde_json::from_slice(&self.call("start", name)?)
            .with_context(|| format!("{} start did not return JSON", self.path.display()))?;
        if let Some(why) = said.missing {
            return Ok(Launch::Missing(why));
        }

        let ScriptReply { version, port, pids, disk, user, .. } = said;
        let script = self.clone();
        let name = name.to_owned();

        Ok(Launch::Running(Running { script, name, version, port, pids, disk, user }))
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
        let Launch::Missing(why) = script.start("duckdb").unwrap() else { panic!("it runs") };
        assert_eq!(why, "DuckDB is not installed");
        let nowhere = Script { path: "/nowhere/peers".into(), ..script };
        assert!(matches!(nowhere.start("duckdb").unwrap(), Launch::Missing(_)));
    }

    #[test]
    fn a_system_is_stopped_by_its_name_when_it_is_dropped() {
        let (folder, script) =
            script(r#"echo "$1 $3 $SERVER_CORE" >>"$2/called"; echo '{"port":5,"pids":[7]}'"#);
        let Launch::Running(running) = script.start("redis").unwrap() else {
            panic!("it is missing")
        };
        assert_eq!((running.port, running.pids.as_slice()), (5, &[7][..]));
        drop(running);
        let called = std::fs::read_to_string(folder.path().join("called")).unwrap();
        assert_eq!(called, "start redis 0\nstop redis 0\n");
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
