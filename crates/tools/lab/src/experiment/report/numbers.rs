//! The numbers of each phase, and the values that figures show for each bin.

mod bin;

pub use bin::BinNumbers;

use super::analysis::Analysis;
use super::bins::{Bin, Bins, Tally, percentile_ms, ratio};
use super::fold::{Fold, Measure, Spike};
use super::phase::Phase;
use super::usage::{Counter, breakers, cpu_of, machine_s, memory_of, own_hits, own_misses};
use crate::experiment::record::{LAB, StoreCounters};
use bin::Counters;
use serde::Serialize;
use std::collections::BTreeMap;

/// All numbers of the report.
#[derive(Debug, Serialize)]
pub struct Numbers {
    pub bin_width_ms: i64,
    pub phases: Vec<PhaseNumbers>,
    /// Load and latency after the start of a quarter hour, one entry per phase.
    pub folds: Vec<FoldNumbers>,
    /// Two hours before any step and two after the last, at the same time of day, minute by minute.
    pub windows: Option<[Vec<MinuteNumbers>; 2]>,
    pub bins: Vec<BinNumbers>,
}

/// Relative to the mean of the phase, in slots of half a minute.
#[derive(Debug, Clone, Serialize)]
pub struct FoldNumbers {
    pub load_full_hours: Vec<Option<f64>>,
    pub load_others: Vec<Option<f64>>,
    pub latency_full_hours: Vec<Option<f64>>,
    pub latency_others: Vec<Option<f64>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct MinuteNumbers {
    pub from_ms: i64,
    pub store_per_s: Option<f64>,
    pub mean_ms: Option<f64>,
}

/// Rates are per second of the machine's clock; shares are fractions of 1.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PhaseNumbers {
    /// Share of the counters that use the new strategy.
    pub share: f64,
    pub from_ms: i64,
    pub to_ms: i64,
    pub machine_s: f64,
    pub batches: u64,
    pub counts: u64,
    pub counts_per_s: Option<f64>,
    pub store_per_s: Option<f64>,
    /// Shares of the answered counts: by the store, and by the reader's memory or the result cache.
    pub store_share: Option<f64>,
    pub hit_share: Option<f64>,
    /// Share of the requested counts.
    pub failed_share: Option<f64>,
    pub failed: u64,
    pub mean_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub quarters_full_hour: usize,
    pub quarters_other: usize,
    pub load_full_hours: Spike,
    pub load_others: Spike,
    pub latency_full_hours: Spike,
    pub latency_others: Spike,
    pub own_hits_per_s: Option<f64>,
    pub own_misses_per_s: Option<f64>,
    pub own_hit_share: Option<f64>,
    /// Cores used by the store, on average and in the busiest bin.
    pub store_cores: Option<f64>,
    pub store_cores_peak: Option<f64>,
    pub store_memory_bytes_peak: Option<f64>,
    pub breakers: Option<f64>,
    pub per_million: PerMillion,
}

/// The cost of a million answered counts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PerMillion {
    /// Processor time of each part, and of all parts except the lab.
    pub cpu_s: BTreeMap<String, f64>,
    pub cpu_s_all: Option<f64>,
    pub store_requests: Option<f64>,
    pub store_rows: Option<f64>,
    pub breakers: Option<f64>,
}

impl Numbers {
    pub fn new(analysis: &Analysis) -> Self {
        let phases = analysis.phases.iter().zip(&analysis.folds);
        let counters = Counters::new(analysis);
        Self {
            bin_width_ms: analysis.bins.width_ms,
            phases: phases.map(|(phase, fold)| of_phase(analysis, phase, fold)).collect(),
            folds: analysis.folds.iter().map(of_fold).collect(),
            windows: analysis.windows.as_ref().map(|windows| {
                [&windows.before, &windows.after].map(|bins| of_minutes(analysis, bins))
            }),
            bins: analysis.bins.bins.iter().map(|bin| counters.of_bin(analysis, bin)).collect(),
        }
    }
}

fn of_fold(fold: &Fold) -> FoldNumbers {
    FoldNumbers {
        load_full_hours: fold.relative(&fold.full_hours, Measure::StoreLoad),
        load_others: fold.relative(&fold.others, Measure::StoreLoad),
        latency_full_hours: fold.relative(&fold.full_hours, Measure::Latency),
        latency_others: fold.relative(&fold.others, Measure::Latency),
    }
}

fn of_minutes(analysis: &Analysis, bins: &Bins) -> Vec<MinuteNumbers> {
    let minute = |bin: &Bin| MinuteNumbers {
        from_ms: bin.from_ms,
        store_per_s: (bin.tally.batches > 0)
            .then(|| analysis.per_s(bin.tally.store, bins.width_ms)),
        mean_ms: bin.tally.mean_ms(),
    };
    bins.bins.iter().map(minute).collect()
}

fn of_phase(analysis: &Analysis, phase: &Phase, fold: &Fold) -> PhaseNumbers {
    let (tally, mut latencies_us) = answers_of(analysis, phase.from_ms, phase.to_ms);
    let machine_s = machine_s(phase.length_ms(), analysis.record.factor);
    let has_answers = tally.batches > 0;
    let answered = PhaseNumbers {
        share: phase.share,
        from_ms: phase.from_ms,
        to_ms: phase.to_ms,
        machine_s,
        batches: tally.batches,
        counts: tally.answered(),
        counts_per_s: ratio(tally.answered() as f64, machine_s).filter(|_| has_answers),
        store_per_s: ratio(tally.store as f64, machine_s).filter(|_| has_answers),
        store_share: tally.share(tally.store),
        hit_share: tally.share(tally.memory + tally.cache),
        failed_share: ratio(tally.failed as f64, tally.asked() as f64),
        failed: tally.failed,
        mean_ms: tally.mean_ms(),
        p50_ms: percentile_ms(&mut latencies_us, 0.5),
        p99_ms: percentile_ms(&mut latencies_us, 0.99),
        ..PhaseNumbers::default()
    };

    with_usage(analysis, phase, with_spikes(fold, answered))
}

fn answers_of(analysis: &Analysis, from_ms: i64, to_ms: i64) -> (Tally, Vec<u32>) {
    let mut tally = Tally::default();
    let mut latencies_us = Vec::new();
    for answer in
        analysis.record.answers.iter().filter(|answer| (from_ms..to_ms).contains(&answer.due_ms))
    {
        tally.add(answer);
        latencies_us.push(answer.latency_us);
    }
    (tally, latencies_us)
}

fn with_spikes(fold: &Fold, numbers: PhaseNumbers) -> PhaseNumbers {
    PhaseNumbers {
        quarters_full_hour: fold.full_hours.quarters,
        quarters_other: fold.others.quarters,
        load_full_hours: fold.spike(&fold.full_hours, Measure::StoreLoad),
        load_others: fold.spike(&fold.others, Measure::StoreLoad),
        latency_full_hours: fold.spike(&fold.full_hours, Measure::Latency),
        latency_others: fold.spike(&fold.others, Measure::Latency),
        ..numbers
    }
}

fn with_usage(analysis: &Analysis, phase: &Phase, numbers: PhaseNumbers) -> PhaseNumbers {
    let usages = &analysis.usages;
    let (from_ms, to_ms) = (phase.from_ms, phase.to_ms);
    let hits = usages.counter(own_hits).rate(from_ms, to_ms);
    let misses = usages.counter(own_misses).rate(from_ms, to_ms);
    let store = analysis.store().unwrap_or_default();

    PhaseNumbers {
        own_hits_per_s: hits,
        own_misses_per_s: misses,
        own_hit_share: hits.zip(misses).and_then(|(hits, misses)| ratio(hits, hits + misses)),
        store_cores: usages.counter(cpu_of(store)).rate(from_ms, to_ms),
        store_cores_peak: peak_cores(analysis, phase, store),
        store_memory_bytes_peak: usages.greatest(from_ms, to_ms, memory_of(store)),
        breakers: usages.counter(breakers).events(from_ms, to_ms),
        per_million: per_million(analysis, phase),
        ..numbers
    }
}

/// In the busiest bin within the phase.
fn peak_cores(analysis: &Analysis, phase: &Phase, part: &str) -> Option<f64> {
    let counter = analysis.usages.counter(cpu_of(part));
    let within =
        analysis.bins.bins.iter().map(|bin| (bin.from_ms, analysis.bin_end_ms(bin.from_ms)));
    let within =
        within.filter(|(from_ms, to_ms)| phase.from_ms <= *from_ms && *to_ms <= phase.to_ms);
    within.filter_map(|(from_ms, to_ms)| counter.rate(from_ms, to_ms)).reduce(f64::max)
}

fn per_million(analysis: &Analysis, phase: &Phase) -> PerMillion {
    let grown = |counter: Counter| {
        let growth = counter.growth(phase.from_ms, phase.to_ms)?;
        // Samples may not cover the whole phase: the divisor is the number of counts in the same
        // time.
        ratio(growth.amount * 1e6, counts_between(analysis, growth.from_ms, growth.to_ms) as f64)
    };

    let of_part =
        |part: &&str| Some(((*part).to_owned(), grown(analysis.usages.counter(cpu_of(part)))?));
    let cpu_s: BTreeMap<String, f64> = analysis.parts.iter().filter_map(of_part).collect();
    let service = || cpu_s.iter().filter(|(part, _)| *part != LAB);
    let store = |value: fn(&StoreCounters) -> u64| {
        grown(analysis.usages.counter(|sample| Some(value(&sample.store) as f64)))
    };

    PerMillion {
        cpu_s_all: (service().count() > 0).then(|| service().map(|(_, cpu_s)| cpu_s).sum()),
        store_requests: store(|store| store.requests),
        store_rows: store(|store| store.rows),
        breakers: grown(analysis.usages.counter(breakers)),
        cpu_s,
    }
}

fn counts_between(analysis: &Analysis, from_ms: i64, to_ms: i64) -> u64 {
    let answers =
        analysis.record.answers.iter().filter(|answer| (from_ms..to_ms).contains(&answer.due_ms));
    answers.map(|answer| u64::from(answer.ranges()) - u64::from(answer.failed)).sum()
}
