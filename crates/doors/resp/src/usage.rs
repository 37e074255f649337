//! How often each command ran, how long it took, and how it failed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use raingauge_resp::{Spec, all};

/// Buckets of durations: each twice as long as the one before, from 1 µs on.
const BUCKETS: usize = 32;
/// Code words of failures that are counted apart; others are counted together.
const CODES_MAX: usize = 128;

/// Numbers of all commands since the start, or since `CONFIG RESETSTAT`.
pub(crate) struct Usage {
    /// By the number of the command.
    commands: Vec<Numbers>,
    total: AtomicU64,
    failures: AtomicU64,
    codes: Mutex<BTreeMap<String, u64>>,
}

#[derive(Default)]
struct Numbers {
    calls: AtomicU64,
    duration_us: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    durations: [AtomicU64; BUCKETS],
}

/// Numbers of one command.
pub(crate) struct CommandUsage {
    pub(crate) spec: &'static Spec,
    pub(crate) calls: u64,
    pub(crate) duration_us: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// Calls by duration: the upper bound of a bucket in µs, and how many took no longer.
    pub(crate) durations: Vec<(u64, u64)>,
}

impl Default for Usage {
    fn default() -> Usage {
        let len = all().map(|spec| spec.id as usize + 1).max().unwrap_or(0);

        Usage {
            commands: (0..len).map(|_| Numbers::default()).collect(),
            total: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            codes: Mutex::default(),
        }
    }
}

impl Usage {
    /// Notes that a command ran.
    pub(crate) fn ran(&self, spec: &Spec, duration_us: u64, failed: bool) {
        let numbers = &self.commands[spec.id as usize];
        let bucket = (64 - duration_us.leading_zeros() as usize).min(BUCKETS - 1);

        self.total.fetch_add(1, Ordering::Relaxed);
        numbers.calls.fetch_add(1, Ordering::Relaxed);
        numbers.duration_us.fetch_add(duration_us, Ordering::Relaxed);
        numbers.durations[bucket].fetch_add(1, Ordering::Relaxed);

        if failed {
            numbers.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a command was refused before it ran.
    pub(crate) fn rejected(&self, spec: &Spec) {
        self.commands[spec.id as usize].rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a reply that was an error, by its code word.
    pub(crate) fn failure(&self, code: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);

        let mut codes = self.codes.lock();
        if codes.len() < CODES_MAX || codes.contains_key(code) {
            *codes.entry(code.to_owned()).or_default() += 1;
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn codes(&self) -> BTreeMap<String, u64> {
        self.codes.lock().clone()
    }

    /// The commands that were called, or refused.
    pub(crate) fn commands(&self) -> Vec<CommandUsage> {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);

        all()
            .map(|spec| {
                let numbers = &self.commands[spec.id as usize];
                let mut sum = 0;
                let durations = numbers.durations.iter().enumerate().filter_map(|(at, count)| {
                    let count = read(count);
                    sum += count;
                    (count > 0).then_some((1 << at, sum))
                });

                CommandUsage {
                    spec,
                    calls: read(&numbers.calls),
                    duration_us: read(&numbers.duration_us),
                    rejected: read(&numbers.rejected),
                    failed: read(&numbers.failed),
                    durations: durations.collect(),
                }
            })
            .filter(|usage| usage.calls + usage.rejected > 0)
            .collect()
    }

    pub(crate) fn reset(&self) {
        self.total.store(0, Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
        self.codes.lock().clear();
        self.reset_commands(|_| true);
    }

    /// Forgets the durations of some commands; returns of how many.
    pub(crate) fn reset_commands(&self, is_asked: impl Fn(&Spec) -> bool) -> usize {
        let mut reset = 0;

        for spec in all().filter(|spec| is_asked(spec)) {
            let numbers = &self.commands[spec.id as usize];
            reset += usize::from(numbers.calls.swap(0, Ordering::Relaxed) > 0);

            numbers.duration_us.store(0, Ordering::Relaxed);
            numbers.rejected.store(0, Ordering::Relaxed);
            numbers.failed.store(0, Ordering::Relaxed);
            for bucket in &numbers.durations {
                bucket.store(0, Ordering::Relaxed);
            }
        }

        reset
    }
}

impl CommandUsage {
    /// The duration in µs that this part of the calls did not exceed.
    pub(crate) fn percentile_us(&self, part: f64) -> u64 {
        let wanted = (self.calls as f64 * part).ceil() as u64;

        self.durations.iter().find(|(_, sum)| *sum >= wanted).map_or(0, |(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_in_buckets() {
        let usage = Usage::default();
        let spec = raingauge_resp::find(b"get").expect("a command");

        for duration_us in [0, 1, 3, 100] {
            usage.ran(spec, duration_us, duration_us == 3);
        }

        let commands = usage.commands();
        let get = &commands[0];
        assert_eq!((commands.len(), get.calls, get.duration_us, get.failed), (1, 4, 104, 1));
        assert_eq!(get.durations, [(1, 1), (2, 2), (4, 3), (128, 4)]);
        assert_eq!((get.percentile_us(0.5), get.percentile_us(0.99)), (2, 128));

        assert_eq!(usage.reset_commands(|_| true), 1);
        assert!(usage.commands().is_empty());
    }
}
