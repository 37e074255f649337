//! What happened lately: samples of numbers that only grow, and the rates between them.

use raingauge_objects::Stats;
use std::collections::VecDeque;

/// Samples that are kept: an hour of one every five seconds.
const SAMPLES_MAX: usize = 720;
/// The time over which the present is measured.
const PRESENT_MS: i64 = 60_000;

/// The numbers at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// By a clock that never goes back.
    pub at_ms: i64,
    pub at_s: i64,
    pub stats: Stats,
    pub syncs: u64,
}

/// Rates over a span of time, in 1/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub seconds: f64,
    pub commands: f64,
    pub hits: f64,
    pub misses: f64,
    pub loads: f64,
    pub groups: f64,
    pub syncs: f64,
    pub expired: f64,
    pub evicted: f64,
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub struct History(VecDeque<Sample>);

impl History {
    pub fn note(&mut self, sample: Sample) {
        self.0.push_back(sample);
        if self.0.len() > SAMPLES_MAX {
            self.0.pop_front();
        }
    }

    /// The newest sample; one of zeros before the first.
    pub fn last(&self) -> Sample {
        self.0.back().copied().unwrap_or_default()
    }

    /// The rates of the last minute; `None` before there are two samples.
    pub fn present(&self) -> Option<Rates> {
        let last = self.0.back()?;
        let first = self.0.iter().find(|sample| last.at_ms - sample.at_ms <= PRESENT_MS)?;
        rates(first, last)
    }

    /// For each sample but the first, its time and the commands per second up to it.
    pub fn commands(&self) -> Vec<(i64, f64)> {
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        pairs.filter_map(|(one, next)| Some((next.at_s, rates(one, next)?.commands))).collect()
    }
}

/// How much a number grew that may have been set to 0 in between.
pub const fn grown(from: u64, to: u64) -> u64 {
    match to.checked_sub(from) {
        Some(grown) => grown,
        None => to,
    }
}

fn rates(from: &Sample, to: &Sample) -> Option<Rates> {
    let seconds = (to.at_ms - from.at_ms) as f64 / 1_000.0;
    if seconds <= 0.0 {
        return None;
    }

    let rate = |from: u64, to: u64| grown(from, to) as f64 / seconds;
    let rate_of = |of: fn(&Stats) -> u64| rate(of(&from.stats), of(&to.stats));
    Some(Rates {
        seconds,
        commands: rate_of(|stats| stats.commands),
        hits: rate_of(|stats| stats.hits),
        misses: rate_of(|stats| stats.misses),
        loads: rate_of(|stats| stats.loads),
        groups: rate_of(|stats| stats.groups),
        syncs: rate(from.syncs, to.syncs),
        expired: rate_of(|stats| stats.expired),
        evicted: rate_of(|stats| stats.evicted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: i64, commands: u64, syncs: u64) -> Sample {
        let stats = Stats { commands, ..Stats::default() };
        Sample { at_ms: at_s * 1_000, at_s, stats, syncs }
    }

    #[test]
    fn rates_are_those_of_the_last_minute() {
        let mut history = History::default();
        assert_eq!(history.present(), None);
        history.note(sample(0, 0, 0));
        assert_eq!(history.present(), None);
        (1..=20).for_each(|tick| history.note(sample(tick * 5, tick as u64 * 500, tick as u64)));

        let present = history.present().unwrap();
        assert_eq!((present.seconds, present.commands, present.syncs), (60.0, 100.0, 0.2));
        assert_eq!(history.commands()[0], (5, 100.0));
        assert_eq!(history.commands().len(), 20);
    }

    #[test]
    fn a_counter_that_was_reset_counts_from_zero() {
        let mut history = History::default();
        history.note(sample(0, 10_000, 0));
        history.note(sample(5, 50, 0));
        assert_eq!(history.present().unwrap().commands, 10.0);
    }

    #[test]
    fn an_hour_is_kept() {
        let mut history = History::default();
        (0..2_000).for_each(|tick| history.note(sample(tick * 5, 0, 0)));
        assert_eq!(history.commands().len(), SAMPLES_MAX - 1);
    }
}
