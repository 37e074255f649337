//! How many nodes a cache needs by memory, by disk and by cores, and what they cost, at the prices
//! of a file that says when and where each was read.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const PRICES: &str = include_str!("../../../scenarios/redis-prices.toml");
const GIB: f64 = (1_u64 << 30) as f64;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Objects
    #[arg(long, default_value_t = 1e9)]
    pub objects: f64,
    /// Bytes of an object, with its key
    #[arg(long, default_value_t = 1_000.0)]
    pub bytes: f64,
    /// Copies of each object, in different zones
    #[arg(long, default_value_t = 2)]
    pub copies: u32,
    /// Operations per second
    #[arg(long, default_value_t = 100_000.0)]
    pub rate: f64,
    /// Operations per second of one core of raingauge, as measured; default: that of the file
    #[arg(long)]
    pub rate_per_core: Option<f64>,
    /// Prices of nodes; default: dated ones of this program
    #[arg(long)]
    pub prices: Option<PathBuf>,
}

/// A price list. `scenarios/redis-prices.toml` explains each field.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Where and when the prices were read.
    pub source: String,
    pub date: String,
    pub currency: String,
    pub systems: Vec<System>,
}

/// A way to keep the objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    pub name: String,
    pub node: String,
    pub node_hour: f64,
    pub node_cores: f64,
    pub node_memory_gib: f64,
    #[serde(default)]
    pub node_disk_gib: f64,
    /// Memory that a byte of objects takes; 0 if they lie on disk.
    #[serde(default)]
    pub memory_per_byte: f64,
    /// Memory that an object takes beside its bytes, such as its place in an index.
    #[serde(default)]
    pub memory_per_object: f64,
    /// Disk that a byte of objects takes.
    #[serde(default)]
    pub disk_per_byte: f64,
    /// Operations per second of a core.
    pub rate_per_core: f64,
}

/// The nodes of a system, and their cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    pub system: String,
    pub node: String,
    /// Nodes of one copy, by what they are needed for.
    pub by_memory: u32,
    pub by_disk: u32,
    pub by_cores: u32,
    /// Nodes of all copies.
    pub nodes: u32,
    pub per_hour: f64,
}

impl Prices {
    pub fn usual() -> Result<Self> {
        toml::from_str(PRICES).context("scenarios/redis-prices.toml")
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("{} is not a valid price list", path.display()))
    }
}

/// The nodes that each system of the list needs.
pub fn run(options: &Options) -> Result<(Prices, Vec<Answer>)> {
    let list = options.prices.as_deref().map_or_else(Prices::usual, Prices::read)?;
    ensure!(options.objects > 0.0 && options.bytes > 0.0, "there are no objects");
    ensure!(options.copies > 0, "there is at least one copy");
    let answers = list.systems.iter().map(|system| answer(system, options)).collect();
    Ok((list, answers))
}

fn answer(system: &System, options: &Options) -> Answer {
    let bytes = options.objects * options.bytes;
    let nodes = |needed: f64, of_node: f64| {
        if needed > 0.0 { (needed / of_node).ceil() as u32 } else { 0 }
    };

    let memory = bytes * system.memory_per_byte + options.objects * system.memory_per_object;
    let is_own = system.name.starts_with(crate::report::RAINGAUGE);
    let measured = options.rate_per_core.filter(|_| is_own);
    // Every copy answers its share of the operations.
    let cores = options.rate / measured.unwrap_or(system.rate_per_core) / f64::from(options.copies);

    let by_memory = nodes(memory, system.node_memory_gib * GIB);
    let by_disk = nodes(bytes * system.disk_per_byte, system.node_disk_gib * GIB);
    let by_cores = nodes(cores, system.node_cores);
    let each = by_memory.max(by_disk).max(by_cores).max(1);
    Answer {
        system: system.name.clone(),
        node: system.node.clone(),
        by_memory,
        by_disk,
        by_cores,
        nodes: each * options.copies,
        per_hour: f64::from(each * options.copies) * system.node_hour,
    }
}

/// A table, with the cost of each system as a share of the dearest one's.
pub fn markdown(list: &Prices, answers: &[Answer]) -> String {
    let dearest = answers.iter().map(|answer| answer.per_hour).fold(0.0, f64::max);
    let mut text = format!(
        "Prices of {}, {}, in {} per hour.\n\n\
         | system | node | by memory | by disk | by cores | nodes | per hour | times lower |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
        list.source, list.date, list.currency
    );
    for answer in answers {
        let Answer { system, node, by_memory, by_disk, by_cores, nodes, per_hour } = answer;
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "| {system} | {node} | {by_memory} | {by_disk} | {by_cores} | {nodes} | {per_hour:.2} | {:.1} |",
            dearest / per_hour
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Options {
        Options {
            objects: 1e9,
            bytes: 1_000.0,
            copies: 2,
            rate: 100_000.0,
            rate_per_core: None,
            prices: None,
        }
    }

    #[test]
    fn the_published_comparison_is_16_against_2_nodes_and_12_times_lower() {
        let (list, answers) = run(&published()).unwrap();
        let of = |name: &str| answers.iter().find(|answer| answer.system == name).unwrap();
        let memory = of("ElastiCache");
        let disk = of("ScyllaDB");
        assert_eq!((memory.nodes, disk.nodes), (16, 2));
        let times = memory.per_hour / disk.per_hour;
        assert!((11.5..13.0).contains(&times), "{times}");
        assert!(markdown(&list, &answers).contains("ElastiCache"));
    }

    #[test]
    fn nodes_follow_what_is_scarce() {
        let (_, before) = run(&published()).unwrap();
        let more = Options { rate: 100e6, rate_per_core: Some(10_000.0), ..published() };
        let (_, after) = run(&more).unwrap();
        let own = |answers: &[Answer]| {
            answers.iter().find(|answer| answer.system.starts_with("raingauge")).unwrap().clone()
        };
        assert!(own(&before).by_cores <= own(&before).by_disk, "{before:?}");
        assert!(own(&after).by_cores > own(&after).by_disk);
        assert_eq!(own(&after).nodes, own(&after).by_cores * 2);
        assert!(run(&Options { copies: 0, ..published() }).is_err());
    }
}
