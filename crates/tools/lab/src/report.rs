//! Formatting of figures, and a description of the machine that they were measured on.

use serde::{Deserialize, Serialize};

pub const RAINGAUGE: &str = "raingauge";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
    /// The load average of the minute before the run: other work on the machine.
    pub load_before: String,
}

impl Machine {
    pub fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model =
            cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            processor: model.map(|(_, name)| name.to_owned()).unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

pub fn milliseconds(microseconds: f64) -> String {
    match microseconds {
        ..1_000.0 => format!("{:.3}", microseconds / 1_000.0),
        ..100_000.0 => format!("{:.2}", microseconds / 1_000.0),
        _ => format!("{:.0}", microseconds / 1_000.0),
    }
}

/// Formats a whole number with thousands separators.
pub fn grouped(value: f64) -> String {
    raingauge_core::number::grouped(value.round() as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_latencies_keep_three_digits() {
        let numbers: Vec<_> = [0.0, 999.4, 1_000.0, 1_234_567.0].into_iter().map(grouped).collect();
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
        let latencies: Vec<_> = [87.4, 1_234.0, 250_000.0].into_iter().map(milliseconds).collect();
        assert_eq!(latencies, ["0.087", "1.23", "250"]);
    }
}
