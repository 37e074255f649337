//! How a count is answered, for people who want to see it.

use crate::answer::{Range, Reader};
use crate::refusal::unavailable;
use raingauge_core::code::Refusal;
use raingauge_core::plan::Plan;
use raingauge_policy::cache::Strategy;
use raingauge_ports::buckets::Generation;
use std::sync::Arc;

/// What answering a range takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    pub counter: u32,
    /// How the counter is cached.
    pub strategy: Strategy,
    /// Whether a result cache is asked before anything is read.
    pub asks_cache: bool,
    /// What is read otherwise, by generation.
    pub plans: Vec<(Generation, Plan)>,
    /// Tiles that this takes.
    pub rows: u64,
    /// Whether all of them are in memory at this moment.
    pub is_in_memory: bool,
}

impl Reader {
    /// What answering a range would take now. Reads nothing.
    pub fn explain(&self, range: &Range<'_>) -> Result<Explained, Refusal> {
        if let Some(failure) = unavailable(&self.published) {
            return Err(failure);
        }
        let (view, choice) = (Arc::clone(&self.published.view()), self.policies.choice());
        let (strategy, resolved) = self.resolve(&view, &choice, range, self.clock.now_s())?;
        let asks_cache =
            matches!(strategy, Strategy::Result | Strategy::Phased) && self.results.is_some();
        let is_in_memory =
            self.sum_in_memory(range.key, &resolved, strategy == Strategy::Live).is_some();
        Ok(Explained {
            counter: view.ruleset.rules()[resolved.rule].counter.id,
            strategy,
            asks_cache: asks_cache && !range.fresh,
            rows: resolved.rows(),
            plans: resolved.plans,
            is_in_memory,
        })
    }
}
