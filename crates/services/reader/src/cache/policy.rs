//! The cache policy as one instance follows it.

use arc_swap::{ArcSwap, Guard};
use raingauge_policy::cache::{Choice, Policy};
use raingauge_ports::catalog::VersionedPolicy;
use std::sync::Arc;

/// How this instance caches each counter. The follower of the catalog sets it, and every request
/// reads it once.
pub struct CachePolicies {
    instance: String,
    choice: ArcSwap<Choice>,
    version: metrics::Gauge,
}

impl CachePolicies {
    /// The policy of a deployment that has none yet, for the instance with this name.
    pub fn new(instance: impl Into<String>) -> Self {
        let version = metrics::gauge!("raingauge_cache_policy_version");
        Self { instance: instance.into(), choice: ArcSwap::default(), version }
    }

    /// Takes over a policy of the catalog, and reports its version.
    pub fn follow(&self, found: &VersionedPolicy) {
        self.set(&found.policy);
        self.version.set(f64::from(found.version));
    }

    /// Takes over a policy. Requests that have begun end under the one before.
    pub fn set(&self, policy: &Policy) {
        let choice = policy.choice_of(&self.instance);
        if **self.choice.load() != *choice {
            tracing::info!(
                instance = self.instance,
                strategy = choice.strategy.name(),
                "the cache policy changed"
            );
            self.choice.store(Arc::new(choice.clone()));
        }
    }

    /// What this instance does now.
    pub fn choice(&self) -> Guard<Arc<Choice>> {
        self.choice.load()
    }
}
