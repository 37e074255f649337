//! The catalog in memory.

use parking_lot::Mutex;
use raingauge_core::counter::{Counter, Problem, State};
use raingauge_core::limits::{COUNTER_ID_MAX, COUNTERS_MAX};
use raingauge_core::ruleset::conflicts;
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::{Catalog, Change, Error, Versioned, VersionedPolicy};
use std::collections::BTreeMap;

/// The versions of each counter, oldest first.
type Counters = BTreeMap<u32, Vec<Versioned>>;

#[derive(Debug, Default)]
pub struct MemoryCatalog {
    counters: Mutex<Counters>,
    /// Every version, oldest first.
    policies: Mutex<Vec<VersionedPolicy>>,
}

impl MemoryCatalog {
    fn create_now(&self, mut counter: Counter, change: Change) -> Result<Versioned, Error> {
        let mut counters = self.counters.lock();
        if counter.id == 0 {
            let largest = counters.last_key_value().map_or(0, |(id, _)| *id);
            if largest >= COUNTER_ID_MAX {
                let detail = format!(
                    "the largest id, {COUNTER_ID_MAX}, is in use: choose a smaller one that is free"
                );
                return Err(Error::Invalid(vec![Problem::new("id", detail)]));
            }
            counter.id = largest + 1;
        } else if counters.contains_key(&counter.id) {
            return Err(Error::IdTaken(counter.id));
        }
        check(&counters, &counter)?;
        Ok(push(&mut counters, counter, change))
    }

    fn replace_now(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> Result<Versioned, Error> {
        let mut counters = self.counters.lock();
        let id = counter.id;
        let current =
            counters.get(&id).and_then(|versions| versions.last()).ok_or(Error::NotFound(id))?;
        if expected.is_some_and(|expected| expected != current.version) {
            return Err(Error::VersionMismatch { id, current: current.version });
        }
        if current.counter == counter {
            return Ok(current.clone());
        }
        check(&counters, &counter)?;
        Ok(push(&mut counters, counter, change))
    }

    fn versions_now(&self, id: u32) -> Result<Vec<Versioned>, Error> {
        let counters = self.counters.lock();
        let versions = counters.get(&id).ok_or(Error::NotFound(id))?;
        Ok(versions.iter().rev().cloned().collect())
    }
}

fn check(counters: &Counters, counter: &Counter) -> Result<(), Error> {
    let newest = counters
        .values()
        .filter_map(|versions| versions.last())
        .map(|versioned| &versioned.counter);
    let others: Vec<&Counter> = newest.filter(|other| other.id != counter.id).collect();
    let mut problems = counter.problems();
    let in_use = others.iter().filter(|other| other.state != State::Archived).count();
    if counter.state != State::Archived && in_use >= COUNTERS_MAX {
        let detail = format!(
            "{COUNTERS_MAX} counters are in use, which is the most there may be: archive one first"
        );
        problems.push(Problem::new("state", detail));
    }
    problems.extend(conflicts(counter, others));
    if problems.is_empty() { Ok(()) } else { Err(Error::Invalid(problems)) }
}

fn push(counters: &mut Counters, counter: Counter, change: Change) -> Versioned {
    let versions = counters.entry(counter.id).or_default();
    let version = versions.len() as u32 + 1;
    let Change { by, reason, at_s } = change;
    let versioned = Versioned { counter, version, changed_by: by, reason, changed_at: at_s };
    versions.push(versioned.clone());
    versioned
}

impl Catalog for MemoryCatalog {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        let newest =
            self.counters.lock().values().filter_map(|versions| versions.last()).cloned().collect();
        Box::pin(async move { Ok(newest) })
    }

    fn get(&self, id: u32) -> BoxFuture<'_, Result<Versioned, Error>> {
        let newest = self.versions_now(id).map(|mut versions| versions.swap_remove(0));
        Box::pin(async move { newest })
    }

    fn versions(&self, id: u32) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        let versions = self.versions_now(id);
        Box::pin(async move { versions })
    }

    fn create(&self, counter: Counter, change: Change) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(async move { self.create_now(counter, change) })
    }

    fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>> {
        Box::pin(async move { self.replace_now(counter, expected, change) })
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        let of_counters = self.counters.lock().values().map(Vec::len).sum::<usize>();
        let of_policies = self.policies.lock().len();
        Box::pin(async move { Ok((of_counters + of_policies) as i64) })
    }

    fn cache_policy(&self) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(async { Ok(self.policies.lock().last().cloned().unwrap_or_default()) })
    }

    fn cache_policies(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<VersionedPolicy>, Error>> {
        let newest = self.policies.lock().iter().rev().take(len_max).cloned().collect();
        Box::pin(async move { Ok(newest) })
    }

    fn set_cache_policy(
        &self,
        policy: Policy,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<VersionedPolicy, Error>> {
        Box::pin(async move {
            let mut versions = self.policies.lock();
            let current = versions.last().cloned().unwrap_or_default();
            let Some(next) = current.next(policy, expected, change)? else {
                return Ok(current);
            };
            versions.push(next.clone());
            Ok(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::contract::catalog::{change, counter, suite};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// The twin never waits, so one poll is enough.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("the twin waited"),
        }
    }

    #[test]
    fn the_twin_keeps_the_contract() {
        now(suite(async || MemoryCatalog::default()));
    }

    #[test]
    fn the_twin_keeps_the_limits() {
        let catalog = MemoryCatalog::default();
        for id in 1..=COUNTERS_MAX as u32 {
            push(
                &mut catalog.counters.lock(),
                Counter { id, ..counter(&format!("t{id}")) },
                change(""),
            );
        }
        let refused = now(catalog.create(counter("t"), change("")));
        assert!(
            matches!(&refused, Err(Error::Invalid(problems)) if problems[0].field == "state"),
            "{refused:?}"
        );
        let last = Counter { id: COUNTER_ID_MAX, state: State::Archived, ..counter("t") };
        now(catalog.create(last.clone(), change(""))).unwrap();
        let refused = now(catalog.create(Counter { id: 0, ..last }, change("")));
        assert!(
            matches!(&refused, Err(Error::Invalid(problems)) if problems[0].field == "id"),
            "{refused:?}"
        );
    }
}
