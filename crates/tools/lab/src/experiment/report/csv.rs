//! The bins as comma-separated values. No field needs quotes.

use super::numbers::{BinNumbers, Numbers};
use std::collections::BTreeSet;

const COLUMNS: &str = "local,from_ms,batches,store_per_s,cache_per_s,memory_per_s,failed_per_s,mean_ms,p50_ms,p99_ms,\
                       own_hits_per_s,own_misses_per_s,breakers";

/// One line per bin; missing values are empty.
pub fn text(numbers: &Numbers) -> String {
    let parts: BTreeSet<&str> =
        numbers.bins.iter().flat_map(|bin| bin.cores.keys()).map(String::as_str).collect();
    let mut text = COLUMNS.to_owned();
    for part in &parts {
        text.push_str(&format!(",{0}_cores,{0}_memory_bytes", column(part)));
    }
    text.push('\n');
    for bin in &numbers.bins {
        text.push_str(&line(bin, &parts));
    }
    text
}

fn line(bin: &BinNumbers, parts: &BTreeSet<&str>) -> String {
    let mut fields = vec![bin.local.clone(), bin.from_ms.to_string(), bin.batches.to_string()];
    let values = [
        bin.store_per_s,
        bin.cache_per_s,
        bin.memory_per_s,
        bin.failed_per_s,
        bin.mean_ms,
        bin.p50_ms,
        bin.p99_ms,
        bin.own_hits_per_s,
        bin.own_misses_per_s,
        bin.breakers,
    ];

    fields.extend(values.map(field));

    for part in parts {
        fields.push(field(bin.cores.get(*part).copied()));
        fields.push(field(bin.memory_bytes.get(*part).copied()));
    }

    fields.join(",") + "\n"
}

fn field(value: Option<f64>) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Replaces the characters of a part's name that would break the columns.
fn column(part: &str) -> String {
    part.replace([',', '"', '\n'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::analysis::Analysis;
    use crate::experiment::report::tests::sample_run;

    #[test]
    fn every_line_has_all_columns_and_gaps_are_empty() {
        let record = sample_run::small();
        let text = text(&Numbers::new(&Analysis::new(&record)));
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().all(|line| line.split(',').count() == columns));
        assert!(text.lines().next().unwrap().contains(",cassandra_cores,cassandra_memory_bytes"));
        assert_eq!(field(None), "");
        assert_eq!([0.0, 2.5, 100.0].map(|value| field(Some(value))), ["0", "2.5", "100"]);
    }
}
