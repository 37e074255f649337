//! The values that figures show for each bin.

use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::bins::Bin;
use crate::experiment::report::usage::{
    Counter, breakers, cpu_of, memory_of, own_hits, own_misses,
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Serialize)]
pub struct BinNumbers {
    pub from_ms: i64,
    pub local: String,
    pub batches: u64,
    pub store_per_s: Option<f64>,
    pub cache_per_s: Option<f64>,
    pub memory_per_s: Option<f64>,
    pub failed_per_s: Option<f64>,
    pub mean_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub own_hits_per_s: Option<f64>,
    pub own_misses_per_s: Option<f64>,
    pub breakers: Option<f64>,
    pub cores: BTreeMap<String, f64>,
    pub memory_bytes: BTreeMap<String, f64>,
}

/// The counters whose growth the bins show.
pub(super) struct Counters<'a> {
    own_hits: Counter,
    own_misses: Counter,
    breakers: Counter,
    cpu: Vec<(&'a str, Counter)>,
}

impl<'a> Counters<'a> {
    pub fn new(analysis: &Analysis<'a>) -> Self {
        let usages = &analysis.usages;
        Self {
            own_hits: usages.counter(own_hits),
            own_misses: usages.counter(own_misses),
            breakers: usages.counter(breakers),
            cpu: analysis.parts.iter().map(|part| (*part, usages.counter(cpu_of(part)))).collect(),
        }
    }

    pub fn of_bin(&self, analysis: &Analysis, bin: &Bin) -> BinNumbers {
        let (from_ms, to_ms) = (bin.from_ms, analysis.bin_end_ms(bin.from_ms));
        let per_s = |amount: u64| {
            Some(analysis.per_s(amount, to_ms - from_ms)).filter(|_| bin.tally.batches > 0)
        };
        let cores = self
            .cpu
            .iter()
            .filter_map(|(part, cpu)| Some(((*part).to_owned(), cpu.rate(from_ms, to_ms)?)));
        let memory = |part: &&str| {
            Some(((*part).to_owned(), analysis.usages.greatest(from_ms, to_ms, memory_of(part))?))
        };

        BinNumbers {
            from_ms,
            local: analysis.zone.words(from_ms, "%Y-%m-%dT%H:%M:%S%:z"),
            batches: bin.tally.batches,
            store_per_s: per_s(bin.tally.store),
            cache_per_s: per_s(bin.tally.cache),
            memory_per_s: per_s(bin.tally.memory),
            failed_per_s: per_s(bin.tally.failed),
            mean_ms: bin.tally.mean_ms(),
            p50_ms: bin.p50_ms,
            p99_ms: bin.p99_ms,
            own_hits_per_s: self.own_hits.rate(from_ms, to_ms),
            own_misses_per_s: self.own_misses.rate(from_ms, to_ms),
            breakers: self.breakers.events(from_ms, to_ms),
            cores: cores.collect(),
            memory_bytes: analysis.parts.iter().filter_map(memory).collect(),
        }
    }
}
