//! This program, and the processor time and memory of processes, from `/proc` (see proc(5)).

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The kernel reports processor time to programs in hundredths of a second, whatever its internal
/// tick is.
const TICKS_PER_S: f64 = 100.0;
const PAGE_BYTES: u64 = 4_096;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub cpu_s: f64,
    pub memory_bytes: u64,
}

struct Process {
    parent: u32,
    /// Of the process itself, and of its children that have exited.
    own_ticks: u64,
    child_ticks: u64,
}

/// The path of the running program, which is also the program under test unless another is given.
pub fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "raingauge".into())
}

/// Usage of one process, with its resident memory.
pub fn usage(process: u32) -> Result<Usage> {
    let read = |name: &str| {
        let path = format!("/proc/{process}/{name}");
        std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {path}: has the process ended?"))
    };
    parse_usage(&read("stat")?, &read("statm")?).context("the shape of /proc has changed")
}

fn parse_usage(stat: &str, statm: &str) -> Option<Usage> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    let cpu_s = parse(stat)?.own_ticks as f64 / TICKS_PER_S;
    Some(Usage { cpu_s, memory_bytes: pages * PAGE_BYTES })
}

/// Processor time of this process, in the kernel's ticks.
pub fn own_ticks() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    Ok(parse(&text).context("/proc/self/stat has an unexpected format")?.own_ticks)
}

/// Usage of processes with all their descendants. Memory that several of them share is counted
/// once.
pub fn usage_of_trees(roots: &[u32]) -> Result<Usage> {
    let entries = std::fs::read_dir("/proc").context("cannot read /proc")?;
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // A process may exit during the scan.
    let read = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        Some((id, parse(&stat)?))
    };
    let processes: BTreeMap<u32, Process> = ids.filter_map(read).collect();

    let all = with_children(roots, &processes);
    let known = all.iter().filter_map(|id| processes.get(id));
    let ticks: u64 = known.map(|process| process.own_ticks + process.child_ticks).sum();
    let memory_bytes = all.iter().map(|id| proportional_bytes(*id)).sum();
    Ok(Usage { cpu_s: ticks as f64 / TICKS_PER_S, memory_bytes })
}

/// Fields are counted after the name in parentheses, which may contain any characters.
fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        own_ticks: number(11)? + number(12)?,
        child_ticks: number(13)? + number(14)?,
    })
}

fn with_children(roots: &[u32], processes: &BTreeMap<u32, Process>) -> BTreeSet<u32> {
    let mut all: BTreeSet<u32> = roots.iter().copied().collect();
    loop {
        let children = processes
            .iter()
            .filter(|(_, process)| all.contains(&process.parent))
            .map(|(id, _)| *id);
        let more: Vec<u32> = children.filter(|id| !all.contains(id)).collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// The process's share of its memory: what it shares with others is divided among them.
fn proportional_bytes(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a (strange) name) S 6 42 42 0 -1 4194560 1 0 0 0 250 50 30 40 20 0 4 0 100 1000 25 18446744073709551615";

    #[test]
    fn a_process_has_its_time_and_memory() {
        let parsed = parse_usage(STAT, "1000 25 10 1 0 20 0").unwrap();
        assert_eq!((parsed.cpu_s, parsed.memory_bytes), (3.0, 25 * 4_096));
        assert!(usage(std::process::id()).unwrap().memory_bytes > 1_000_000);
        assert!(own_ticks().is_ok());
    }

    #[test]
    fn children_count_with_their_parents() {
        let process = |parent| Process { parent, own_ticks: 1, child_ticks: 0 };
        let processes =
            BTreeMap::from([(2, process(1)), (3, process(2)), (4, process(3)), (5, process(1))]);
        assert_eq!(with_children(&[2], &processes), BTreeSet::from([2, 3, 4]));

        let parsed = parse(STAT).unwrap();
        assert_eq!((parsed.parent, parsed.own_ticks, parsed.child_ticks), (6, 300, 70));
        assert!(usage_of_trees(&[std::process::id()]).unwrap().memory_bytes > 0);
    }
}
