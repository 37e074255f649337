//! Resource usage of the parts, from samples of monotonic counters.

use crate::experiment::record::{Record, Sample};

/// Two samples that are further apart than this multiple of the usual distance have a gap between
/// them.
const GAP_DISTANCES: i64 = 4;

pub struct Usages<'a> {
    samples: Vec<&'a Sample>,
    factor: f64,
    /// The median distance between samples.
    pub distance_ms: i64,
}

/// One monotonic counter with its sampling times.
pub struct Counter {
    points: Vec<(i64, f64)>,
    factor: f64,
    gap_ms: i64,
}

/// The growth of a counter, and the interval in which it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    pub amount: f64,
    pub from_ms: i64,
    pub to_ms: i64,
}

impl<'a> Usages<'a> {
    pub fn new(record: &'a Record) -> Self {
        let mut samples: Vec<&Sample> = record.samples.iter().collect();
        samples.sort_by_key(|sample| sample.at_ms);
        let mut distances: Vec<i64> =
            samples.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).collect();
        distances.sort_unstable();
        let distance_ms = distances.get(distances.len() / 2).copied().unwrap_or(0);
        Self { samples, factor: record.factor, distance_ms }
    }

    /// Extracts a counter from the samples that have it.
    pub fn counter(&self, value: impl Fn(&Sample) -> Option<f64>) -> Counter {
        let points =
            self.samples.iter().filter_map(|sample| Some((sample.at_ms, value(sample)?))).collect();
        Counter {
            points,
            factor: self.factor,
            gap_ms: self.distance_ms.saturating_mul(GAP_DISTANCES),
        }
    }

    /// The maximum of the samples within this time.
    pub fn greatest(
        &self,
        from_ms: i64,
        to_ms: i64,
        value: impl Fn(&Sample) -> Option<f64>,
    ) -> Option<f64> {
        let within = self.samples.iter().filter(|sample| (from_ms..to_ms).contains(&sample.at_ms));
        within.filter_map(|sample| value(sample)).reduce(f64::max)
    }
}

impl Counter {
    /// The growth between two times, as far as samples cover them.
    pub fn growth(&self, from_ms: i64, to_ms: i64) -> Option<Growth> {
        let first = self.points.first()?;
        let last = self.points.last()?;
        let (from_ms, to_ms) = (from_ms.max(first.0), to_ms.min(last.0));
        if from_ms >= to_ms {
            return None;
        }
        let amount = self.value(to_ms)? - self.value(from_ms)?;
        (amount >= 0.0).then_some(Growth { amount, from_ms, to_ms })
    }

    /// Growth per second of the machine's clock.
    pub fn rate(&self, from_ms: i64, to_ms: i64) -> Option<f64> {
        let growth = self.growth(from_ms, to_ms)?;
        Some(growth.amount / machine_s(growth.to_ms - growth.from_ms, self.factor))
    }

    /// Counts discrete events, each at the time of the first sample that includes it, so that
    /// adjacent intervals add up.
    pub fn events(&self, from_ms: i64, to_ms: i64) -> Option<f64> {
        let first = self.points.first()?;
        let last = self.points.last()?;
        if to_ms <= first.0 || from_ms > last.0 {
            return None;
        }
        let until = |at_ms: i64| {
            let len = self.points.partition_point(|point| point.0 < at_ms);
            self.points[len.saturating_sub(1)].1
        };
        Some((until(to_ms) - until(from_ms)).max(0.0))
    }

    /// The value at a point in time, interpolated linearly between the surrounding samples.
    fn value(&self, at_ms: i64) -> Option<f64> {
        let after = self.points.partition_point(|point| point.0 < at_ms);
        let right = self.points.get(after)?;
        if right.0 == at_ms {
            return Some(right.1);
        }
        let left = self.points.get(after.checked_sub(1)?)?;
        let distance_ms = right.0 - left.0;
        let share = (at_ms - left.0) as f64 / distance_ms as f64;
        (distance_ms <= self.gap_ms).then_some(left.1 + (right.1 - left.1) * share)
    }
}

/// Converts a length of the service's time to seconds of the machine's clock.
pub fn machine_s(length_ms: i64, factor: f64) -> f64 {
    length_ms as f64 / 1_000.0 / factor
}

/// The processor time of one part.
pub fn cpu_of(part: &str) -> impl Fn(&Sample) -> Option<f64> + '_ {
    move |sample| sample.parts.get(part).map(|usage| usage.cpu_s)
}

pub fn memory_of(part: &str) -> impl Fn(&Sample) -> Option<f64> + '_ {
    move |sample| sample.parts.get(part).map(|usage| usage.memory_bytes as f64)
}

pub fn own_hits(sample: &Sample) -> Option<f64> {
    Some(sample.store.own_hits as f64)
}

pub fn own_misses(sample: &Sample) -> Option<f64> {
    Some(sample.store.own_misses as f64)
}

pub fn breakers(sample: &Sample) -> Option<f64> {
    Some(sample.breakers_opened as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::report::tests::sample_run;
    use std::collections::BTreeMap;

    fn record(samples: &[(i64, u64)]) -> Record {
        let sample = |(at_ms, breakers_opened): &(i64, u64)| Sample {
            at_ms: *at_ms,
            parts: BTreeMap::new(),
            store: Default::default(),
            breakers_opened: *breakers_opened,
            events: 0,
        };
        Record {
            factor: 10.0,
            samples: samples.iter().map(sample).collect(),
            ..sample_run::empty()
        }
    }

    #[test]
    fn rates_are_per_second_of_the_machine() {
        let record = record(&[(0, 0), (1_000, 10), (2_000, 30)]);
        let usages = Usages::new(&record);
        // A second of the service is a tenth of a second of the machine.
        assert_eq!(usages.counter(breakers).rate(0, 1_000), Some(100.0));
        assert_eq!(usages.counter(breakers).rate(500, 1_500), Some(150.0));
    }

    #[test]
    fn growth_reaches_as_far_as_samples_do() {
        let record = record(&[(0, 0), (1_000, 10)]);
        let growth = Usages::new(&record).counter(breakers).growth(-5_000, 5_000);
        assert_eq!(growth, Some(Growth { amount: 10.0, from_ms: 0, to_ms: 1_000 }));
        assert_eq!(Usages::new(&record).counter(breakers).growth(2_000, 5_000), None);
    }

    #[test]
    fn whole_events_add_up() {
        let record = record(&[(0, 3), (10, 4), (20, 4), (30, 9)]);
        let counter = Usages::new(&record).counter(breakers);
        let bins = [(0, 15), (15, 30), (30, 45), (45, 60)]
            .map(|(from_ms, to_ms)| counter.events(from_ms, to_ms));
        assert_eq!(bins, [Some(1.0), Some(0.0), Some(5.0), None]);
    }

    #[test]
    fn nothing_is_known_within_a_gap_or_of_a_part_that_is_not_there() {
        let record = record(&[(0, 0), (10, 1), (20, 2), (1_000, 3), (1_010, 4)]);
        let usages = Usages::new(&record);
        assert_eq!(usages.counter(breakers).rate(10, 500), None);
        assert!(usages.counter(breakers).rate(1_000, 1_010).is_some());
        assert_eq!(usages.counter(cpu_of("store")).rate(0, 20), None);
        assert_eq!(usages.greatest(0, 15, breakers), Some(1.0));
    }
}
