//! The checks in memory.

use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::catalog::Error;
use raingauge_ports::checks::{self, Check, Outcome, Selection};
use std::collections::{HashSet, VecDeque};

#[derive(Debug, Default)]
pub struct Checks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Newest first.
    checks: VecDeque<Check>,
    last_id: i64,
}

impl checks::Checks for Checks {
    fn add(&self, checks: Vec<Check>, kept_max: usize) -> BoxFuture<'_, Result<(), Error>> {
        let mut kept = self.0.lock();
        for check in checks {
            kept.last_id += 1;
            let id = kept.last_id;
            kept.checks.push_front(Check { id, ..check });
        }
        kept.checks.truncate(kept_max);
        Box::pin(async { Ok(()) })
    }

    fn list(&self, selection: Selection) -> BoxFuture<'_, Result<Vec<Check>, Error>> {
        let is_wanted = |check: &&Check| {
            selection.outcome.is_none_or(|outcome| check.outcome == outcome)
                && selection.before.is_none_or(|before| check.id < before)
        };
        let found = self
            .0
            .lock()
            .checks
            .iter()
            .filter(is_wanted)
            .take(selection.len_max)
            .cloned()
            .collect();
        Box::pin(async move { Ok(found) })
    }

    fn differing(&self, len_max: usize) -> BoxFuture<'_, Result<Vec<Check>, Error>> {
        let kept = self.0.lock();
        let mut seen = HashSet::new();
        let newest = kept
            .checks
            .iter()
            .filter(|check| matches!(check.outcome, Outcome::Equal | Outcome::Differs));
        let newest = newest.filter(|check| seen.insert(check.key.as_str()));
        let found = newest
            .filter(|check| check.outcome == Outcome::Differs)
            .take(len_max)
            .cloned()
            .collect();

        Box::pin(async move { Ok(found) })
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn it_keeps_the_contract() {
        raingauge_ports::contract::checks::suite(async || super::Checks::default()).await;
    }
}
