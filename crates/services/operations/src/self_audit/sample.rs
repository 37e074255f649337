//! Which keys an audit checks: in turn of every counter, recently counted ones and the largest
//! ones.

use super::Deps;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::Plan;
use raingauge_counters::recount::KeyRange;
use raingauge_ports::checks::Check;
use raingauge_ports::log::EventLog;
use raingauge_ports::published::{Published, View};
use raingauge_ports::record::Entry;
use raingauge_ports::scans::Stop;
use raingauge_writer::history::walk;
use rand::seq::SliceRandom as _;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Newest entries of the log whose keys are candidates, of all partitions together.
const ENTRIES_MAX: u64 = 20_000;
/// Candidates of each counter.
const CANDIDATES_MAX: usize = 100;
/// Largest keys of a counter, of which one is checked.
const LARGEST_MAX: usize = 20;

/// A key and the day of an event that it counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Candidate {
    key: String,
    day_s: i64,
}

pub struct Sampler<'a> {
    deps: &'a Deps,
}

impl<'a> Sampler<'a> {
    pub fn of(deps: &'a Deps) -> Self {
        Self { deps }
    }

    /// Up to `len_max` keys with their ranges. Counters whose last check is the oldest come first,
    /// so that all have their turn over some audits.
    pub async fn keys(&self, len_max: usize, checked: &[Check]) -> Vec<KeyRange> {
        let mut candidates = self.recent().await;
        let mut order: Vec<u32> = candidates.keys().copied().collect();
        order.shuffle(&mut rand::rng());

        let last_s = |counter: u32| {
            checked.iter().filter(|check| check.counter == counter).map(|check| check.at_s).max()
        };
        order.sort_by_key(|counter| last_s(*counter));

        for counter in order.iter().take(len_max) {
            if let (Some(largest), Some(own)) =
                (self.largest(*counter, &candidates).await, candidates.get_mut(counter))
            {
                // Keys are taken from the end: the largest key is checked first.
                own.push(largest);
            }
        }

        let now_s = self.deps.clock.now_s();
        let mut asked = Vec::new();
        let mut taken = HashSet::new();

        while asked.len() < len_max {
            let before = taken.len();
            for counter in &order {
                let Some(candidate) = candidates.get_mut(counter).and_then(Vec::pop) else {
                    continue;
                };
                let is_new = taken.insert(candidate.clone());

                if let (true, true, Some(range)) =
                    (is_new, asked.len() < len_max, range_of(&candidate, now_s))
                {
                    asked.push(KeyRange { key: candidate.key, range });
                }
            }

            if taken.len() == before && candidates.values().all(Vec::is_empty) {
                break;
            }
        }

        asked
    }

    /// Keys of the newest events of the log, by counter, in random order.
    async fn recent(&self) -> BTreeMap<u32, Vec<Candidate>> {
        let logs = self.deps.logs.clone();
        let published = Arc::clone(&self.deps.published);
        let found = tokio::task::spawn_blocking(move || recent_of(&logs, &published)).await;
        found.unwrap_or_else(|error| {
            tracing::warn!(%error, "the newest events could not be read");
            BTreeMap::new()
        })
    }

    /// One of the largest keys of a counter over the days of its newest events, if the store knows
    /// them.
    async fn largest(
        &self,
        counter: u32,
        candidates: &BTreeMap<u32, Vec<Candidate>>,
    ) -> Option<Candidate> {
        let day_s = candidates.get(&counter)?.iter().map(|candidate| candidate.day_s).max()?;
        let largest = self
            .deps
            .reader
            .largest_keys(counter, day_s - DAY_S, day_s + DAY_S, LARGEST_MAX)
            .await
            .ok()?;
        let keys: Vec<String> = largest.keys.into_iter().map(|found| found.key).collect();
        let place = rand::random_range(0..keys.len().max(1));
        Some(Candidate { key: keys.into_iter().nth(place)?, day_s })
    }
}

/// The day and the one before it, up to the last complete quarter hour.
fn range_of(candidate: &Candidate, now_s: i64) -> Option<Plan> {
    let from_s = (candidate.day_s - DAY_S).max(0);
    Plan::new(from_s, (candidate.day_s + DAY_S).min(Granularity::Quarter.floor(now_s)))
        .ok()
        .filter(|range| range.from_s < range.to_s)
}

/// Blocks the thread.
fn recent_of(logs: &[Arc<dyn EventLog>], published: &Published) -> BTreeMap<u32, Vec<Candidate>> {
    let view = Arc::clone(&published.view());
    let mut seen = HashMap::<u32, HashSet<Candidate>>::new();
    let each = ENTRIES_MAX / logs.len().max(1) as u64;

    for log in logs {
        let to = published.applied(log.partition());
        let from = to.saturating_sub(each).max(log.start());
        let walked = walk(&**log, from, to, &Stop::default(), |step, scratch| {
            let Entry::Event(event) = &step.entry else {
                return;
            };
            let day_s = Granularity::Day.floor(event.time_s());
            let count = |rule: usize, rendered: &str, _value| {
                remember(&view, &mut seen, rule, rendered, day_s)
            };
            view.ruleset.apply(event, scratch, count, |_, _| {});
        });

        if let Err(error) = walked {
            tracing::warn!(%error, partition = log.partition(), "the newest events could not be read");
        }
    }

    let shuffled = |(counter, candidates): (u32, HashSet<Candidate>)| {
        let mut candidates: Vec<Candidate> = candidates.into_iter().collect();
        candidates.shuffle(&mut rand::rng());
        (counter, candidates)
    };
    seen.into_iter().map(shuffled).collect()
}

fn remember(
    view: &View,
    seen: &mut HashMap<u32, HashSet<Candidate>>,
    rule: usize,
    key: &str,
    day_s: i64,
) {
    let Some(rule) = view.ruleset.rules().get(rule) else {
        return;
    };
    let own = seen.entry(rule.counter.id).or_default();

    // Older keys have the same chance as newer ones: a full set evicts a random one.
    let candidate = Candidate { key: key.to_owned(), day_s };
    if own.len() >= CANDIDATES_MAX && !own.contains(&candidate) {
        let Some(given_up) = own.iter().next().cloned() else {
            return;
        };
        own.remove(&given_up);
    }

    own.insert(candidate);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_closed_and_has_a_whole_day() {
        let candidate = |day_s| Candidate { key: "k".to_owned(), day_s };
        let range = |day_s, now_s| {
            range_of(&candidate(day_s), now_s).map(|range| (range.from_s, range.to_s))
        };
        assert_eq!(range(9 * DAY_S, 20 * DAY_S), Some((8 * DAY_S, 10 * DAY_S)));
        assert_eq!(range(9 * DAY_S, 9 * DAY_S + 1_000), Some((8 * DAY_S, 9 * DAY_S + 900)));
        // An event may be dated a little ahead of the clock.
        assert_eq!(range(9 * DAY_S, 9 * DAY_S - 10), Some((8 * DAY_S, 9 * DAY_S - 900)));
        assert_eq!(range(0, 10), None);
    }
}
