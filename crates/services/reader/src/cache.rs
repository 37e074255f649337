//! The result cache: sums under the key and the range, kept for some minutes.

mod policy;
pub mod windows;

pub use policy::CachePolicies;

use crate::breaker::EngineBreaker;
use raingauge_policy::breaker;
use raingauge_policy::cache::Strategy;
use raingauge_ports::buckets::{GENERATIONS_PER_COUNTER, Generation};
use raingauge_ports::cache::ResultCache;
use raingauge_ports::clock::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use windows::{Window, Windows};

/// How long a sum is kept: the published five minutes.
const RESULT_TTL: Duration = Duration::from_secs(300);

/// Under `phased`, a key moves on to the next quarter hour within this time after it began. It is
/// as long as a sum is kept, and a third of a quarter hour: a key that callers always ask for is
/// read at its phase, 300 s and 600 s later, and over all keys storage is read evenly at any time.
const PHASE_BOUND_S: i64 = 300;

/// Most rounds of sums that are on their way into the cache. Beyond it, sums are not kept.
const PUTS_IN_FLIGHT_MAX: usize = 256;

/// The name of a sum in its published form, `id:34:rain_drops:city:111222:1727215200:1727399700`.
/// When a backfill or an erasure has replaced the counts, the number of the generation follows the
/// id, `id:34.2:…`, so that older sums answer nothing.
fn name(counter: u32, generation: Generation, key: &str, (from_s, to_s): Window) -> String {
    match generation % GENERATIONS_PER_COUNTER {
        0 => format!("id:{counter}:{key}:{from_s}:{to_s}"),
        number => format!("id:{counter}.{number}:{key}:{from_s}:{to_s}"),
    }
}

/// Counts the outcomes of lookups under one strategy.
struct Outcomes {
    hits: metrics::Counter,
    misses: metrics::Counter,
    errors: metrics::Counter,
    skipped: metrics::Counter,
}

impl Outcomes {
    fn new(strategy: Strategy) -> Self {
        let strategy = strategy.name();
        Self {
            hits: metrics::counter!("raingauge_cache_hits_total", "strategy" => strategy),
            misses: metrics::counter!("raingauge_cache_misses_total", "strategy" => strategy),
            errors: metrics::counter!("raingauge_cache_errors_total", "strategy" => strategy),
            skipped: metrics::counter!("raingauge_cache_skipped_total", "strategy" => strategy),
        }
    }
}

/// One range to be looked up.
pub struct Lookup {
    strategy: Strategy,
    /// The names that its answer may have, the best one first.
    pub names: Vec<String>,
}

impl Lookup {
    pub fn new(
        strategy: Strategy,
        counter: u32,
        generation: Generation,
        key: &str,
        windows: &Windows,
    ) -> Self {
        let name = |window: &Window| name(counter, generation, key, *window);
        Self { strategy, names: windows.lookups.iter().map(name).collect() }
    }
}

/// The cache, behind a breaker. When it fails, callers lose time and nothing else.
pub struct Results {
    cache: Arc<dyn ResultCache>,
    breaker: Arc<EngineBreaker>,
    clock: Arc<dyn Clock>,
    result: Outcomes,
    phased: Outcomes,
    puts: Arc<Semaphore>,
    puts_dropped: metrics::Counter,
}

impl Results {
    pub fn new(
        cache: Arc<dyn ResultCache>,
        clock: Arc<dyn Clock>,
        options: breaker::Options,
    ) -> Self {
        Self {
            cache,
            breaker: EngineBreaker::new("result_cache", options),
            clock,
            result: Outcomes::new(Strategy::Result),
            phased: Outcomes::new(Strategy::Phased),
            puts: Arc::new(Semaphore::new(PUTS_IN_FLIGHT_MAX)),
            puts_dropped: metrics::counter!("raingauge_cache_puts_dropped_total"),
        }
    }

    fn outcomes(&self, strategy: Strategy) -> &Outcomes {
        if strategy == Strategy::Phased { &self.phased } else { &self.result }
    }

    /// For each lookup, which of its names has a sum, and the sum. Waits at most `timeout`.
    pub async fn get(&self, lookups: &[&Lookup], timeout: Duration) -> Vec<Option<(usize, i64)>> {
        let Ok(pass) = self.breaker.admit(self.clock.machine_ms()) else {
            lookups.iter().for_each(|lookup| self.outcomes(lookup.strategy).skipped.increment(1));
            return vec![None; lookups.len()];
        };

        let names: Vec<String> =
            lookups.iter().flat_map(|lookup| lookup.names.iter().cloned()).collect();
        let len = names.len();
        let found = tokio::time::timeout(timeout, self.cache.get(names)).await;
        let values = match found {
            Ok(Ok(values)) if values.len() == len => values,
            found => {
                if let Ok(Err(error)) = found {
                    tracing::debug!(%error, "the result cache was passed over");
                }
                self.breaker.record(self.clock.machine_ms(), pass, 0, 1);
                lookups
                    .iter()
                    .for_each(|lookup| self.outcomes(lookup.strategy).errors.increment(1));
                return vec![None; lookups.len()];
            }
        };

        self.breaker.record(self.clock.machine_ms(), pass, 1, 0);

        let mut values = values.into_iter();
        let pick = |lookup: &&Lookup| {
            let mut own = values.by_ref().take(lookup.names.len()).enumerate();
            let best = own.find_map(|(index, value)| Some((index, value?)));
            own.for_each(drop);

            let outcomes = self.outcomes(lookup.strategy);
            if best.is_some() { &outcomes.hits } else { &outcomes.misses }.increment(1);
            best
        };
        lookups.iter().map(pick).collect()
    }

    /// Puts sums into the cache in the background: no caller waits for it.
    pub fn put(&self, sums: Vec<(String, i64)>) {
        let Ok(permit) = Arc::clone(&self.puts).try_acquire_owned() else {
            self.puts_dropped.increment(sums.len() as u64);
            return;
        };
        let Ok(pass) = self.breaker.admit(self.clock.machine_ms()) else {
            return;
        };

        let cache = Arc::clone(&self.cache);
        let breaker = Arc::clone(&self.breaker);
        let clock = Arc::clone(&self.clock);

        tokio::spawn(async move {
            let put = cache.put(sums, RESULT_TTL).await;
            let succeeded = u64::from(put.is_ok());
            breaker.record(clock.machine_ms(), pass, succeeded, 1 - succeeded);
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use raingauge_ports::buckets::generation_of;

    #[test]
    fn a_name_is_the_published_one_and_another_one_for_other_counts() {
        let name = |number| {
            let generation = generation_of(34, number);
            super::name(34, generation, "rain_drops:city:111222", (1_727_215_200, 1_727_399_700))
        };
        assert_eq!(name(0), "id:34:rain_drops:city:111222:1727215200:1727399700");
        assert_eq!(name(2), "id:34.2:rain_drops:city:111222:1727215200:1727399700");
    }
}
