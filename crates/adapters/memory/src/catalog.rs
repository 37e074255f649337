//! The catalog in memory.

use parking_lot::Mutex;
use raingauge_core::counter::Counter;
use raingauge_policy::cache::Policy;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::decide::{self, Decision};
use raingauge_ports::catalog::{self, Change, Error, Policies, Versioned, VersionedPolicy};
use std::collections::BTreeMap;

/// The versions of each counter, oldest first.
type Counters = BTreeMap<u32, Vec<Versioned>>;

#[derive(Debug, Default)]
pub struct Catalog {
    counters: Mutex<Counters>,
    /// Every version, oldest first.
    policies: Mutex<Vec<VersionedPolicy>>,
}

impl Catalog {
    fn newest(&self) -> Vec<Versioned> {
        newest(&self.counters.lock())
    }

    fn change(
        &self,
        decide: impl FnOnce(&[Versioned]) -> Result<Decision, Error>,
    ) -> Result<Versioned, Error> {
        let mut counters = self.counters.lock();
        match decide(&newest(&counters))? {
            Decision::Keep(current) => Ok(current),
            Decision::Add(added) => {
                counters.entry(added.counter.id).or_default().push(added.clone());
                Ok(added)
            }
        }
    }

    fn versions_now(&self, id: u32) -> Result<Vec<Versioned>, Error> {
        let counters = self.counters.lock();
        let versions = counters.get(&id).ok_or(Error::NotFound(id))?;
        Ok(versions.iter().rev().cloned().collect())
    }
}

fn newest(counters: &Counters) -> Vec<Versioned> {
    counters.values().filter_map(|versions| versions.last()).cloned().collect()
}

impl catalog::Catalog for Catalog {
    fn list(&self) -> BoxFuture<'_, Result<Vec<Versioned>, Error>> {
        let newest = self.newest();
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
        let created = self.change(|newest| decide::create(newest, counter, change));
        Box::pin(async move { created })
    }

    fn replace(
        &self,
        counter: Counter,
        expected: Option<u32>,
        change: Change,
    ) -> BoxFuture<'_, Result<Versioned, Error>> {
        let replaced = self.change(|newest| decide::replace(newest, counter, expected, change));
        Box::pin(async move { replaced })
    }

    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>> {
        let of_counters = self.counters.lock().values().map(Vec::len).sum::<usize>();
        let of_policies = self.policies.lock().len();
        Box::pin(async move { Ok((of_counters + of_policies) as i64) })
    }
}

impl Policies for Catalog {
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
    #[tokio::test]
    async fn it_keeps_the_contract() {
        raingauge_ports::contract::catalog::suite(async || super::Catalog::default()).await;
    }
}
