//! Watches how many keys the counters have, and lists those of full ones.

use super::KeyLimit;
use parking_lot::Mutex;
use raingauge_ports::buckets::{Error, Generation, KeySource};
use raingauge_ports::log::EventLog;
use raingauge_ports::published::{Published, View};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between checks whether a counter nears its limit.
const INTERVAL: Duration = Duration::from_secs(2);
/// The keys of a counter are listed from this percentage of its limit on: the estimates of sketches
/// are slightly off.
const NEAR_PERCENT: u64 = 90;
/// Interval between listings while a counter is full, while it is at least half full, and
/// otherwise. Other processes may count keys that this one does not see, and keys expire.
const FULL_INTERVAL: Duration = Duration::from_secs(60);
const HALF_INTERVAL: Duration = Duration::from_secs(600);
const LIST_INTERVAL: Duration = Duration::from_secs(3_600);
/// Most counters that are listed before the check chooses again those nearest to their limit.
const LISTINGS_MAX: usize = 50;
/// The pause of the store after a listing, as a multiple of the listing's time.
const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(30);
/// How long a listing waits until everything that was accepted before is counted.
const APPLIED_MAX: Duration = Duration::from_secs(10);
/// A counter at this percentage of its limit appears in the metrics.
const TOLD_PERCENT: u64 = 10;

/// Watches how many keys the counters have.
pub struct KeyWatch {
    limit: Arc<KeyLimit>,
    keys: Arc<dyn KeySource>,
    published: Arc<Published>,
    /// Every partition of the log.
    logs: Vec<Arc<dyn EventLog>>,
    listed: Mutex<HashMap<u32, KeyListing>>,
    /// Counters in the metrics.
    told: Mutex<BTreeSet<u32>>,
}

/// The result of a counter's last listing.
#[derive(Clone, Copy, Debug)]
struct KeyListing {
    generation: Generation,
    at: Instant,
    keys: u64,
    /// The estimate of the sketch at that time.
    estimate: u64,
}

impl KeyWatch {
    pub fn new(
        limit: Arc<KeyLimit>,
        keys: Arc<dyn KeySource>,
        published: Arc<Published>,
        logs: Vec<Arc<dyn EventLog>>,
    ) -> Self {
        Self { limit, keys, published, logs, listed: Mutex::default(), told: Mutex::default() }
    }

    /// Watches while it is polled.
    pub async fn run(&self) {
        if self.limit.keys_max == 0 {
            return std::future::pending().await;
        }
        metrics::gauge!("raingauge_counter_keys_max").set(self.limit.keys_max as f64);
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "the keys of a counter could not be listed; it is tried again");
            }
        }
    }

    /// Checks all counters, and lists the keys of those that may be near their limit or whose last
    /// listing is old.
    pub async fn look(&self) -> Result<(), Error> {
        let view = Arc::clone(&self.published.view());
        let generations: HashSet<Generation> =
            view.timelines.iter().map(|timeline| timeline.newest()).collect();
        self.published.keys().retain(|generation| generations.contains(&generation));
        self.open_others(&view);

        let mut due = Vec::new();
        for (index, rule) in view.ruleset.rules().iter().enumerate() {
            let id = rule.counter.id;
            let generation = view.timelines[index].newest();
            let listed = self
                .listed
                .lock()
                .get(&id)
                .copied()
                .filter(|listed| listed.generation == generation);

            let estimate = self.published.keys().of(generation).estimate();
            let keys = listed
                .map_or(estimate, |listed| listed.keys + estimate.saturating_sub(listed.estimate));
            self.tell(id, keys);

            if self.is_due(keys, estimate, listed.as_ref()) {
                due.push((Reverse(keys), index));
            }
        }

        due.sort_unstable();

        for (_, index) in due.into_iter().take(LISTINGS_MAX) {
            let began = Instant::now();
            self.list(&view, index).await?;
            tokio::time::sleep((began.elapsed() * REST).min(REST_MAX)).await;
        }

        Ok(())
    }

    /// Marks counters as not full that are gone or begin from zero.
    fn open_others(&self, view: &View) {
        let mut listed = self.listed.lock();
        listed.retain(|id, listed| {
            view.ruleset
                .index_of(*id)
                .is_some_and(|index| view.timelines[index].newest() == listed.generation)
        });
        let is_gone = |id: &u32| !listed.contains_key(id);
        if self.limit.full().known.keys().any(is_gone) {
            self.limit.change(view, |known| known.retain(|id, _| !is_gone(id)));
        }
    }

    fn is_due(&self, keys: u64, estimate: u64, listed: Option<&KeyListing>) -> bool {
        let Some(listed) = listed else { return true };
        let age = listed.at.elapsed();
        let keys_max = self.limit.keys_max;
        if listed.keys >= keys_max {
            return age >= FULL_INTERVAL;
        }
        // A counter that does not grow is not listed again and again.
        let has_grown = estimate > listed.estimate + keys_max / 100;
        let is_near = keys.saturating_mul(100) >= keys_max.saturating_mul(NEAR_PERCENT);
        let interval =
            if keys.saturating_mul(2) >= keys_max { HALF_INTERVAL } else { LIST_INTERVAL };
        is_near && (has_grown || age >= FULL_INTERVAL) || age >= interval
    }

    async fn list(&self, view: &View, index: usize) -> Result<(), Error> {
        let counter = &view.ruleset.rules()[index].counter;
        let timeline = &view.timelines[index];
        let id = counter.id;
        let keys_max = self.limit.keys_max;
        let was_full = self.limit.full().known.contains_key(&id);

        let hashes = self.hashes(timeline.parts()).await?;
        let sketch = self.published.keys().of(timeline.newest());
        hashes.iter().for_each(|hash| sketch.note(*hash));

        let keys = hashes.len() as u64;
        let listed = KeyListing {
            generation: timeline.newest(),
            at: Instant::now(),
            keys,
            estimate: sketch.estimate(),
        };

        self.listed.lock().insert(id, listed);
        self.tell(id, keys);

        if keys < keys_max {
            if was_full {
                tracing::info!(counter = id, keys, keys_max, "a counter takes new keys again");
                self.limit.change(view, |known| drop(known.remove(&id)));
            }
            return Ok(());
        }

        self.limit.change(view, |known| drop(known.insert(id, hashes.into())));

        if !was_full {
            tracing::warn!(
                counter = id,
                keys,
                keys_max,
                "a counter has as many keys as it may have, and takes no new ones"
            );

            // Keys that were accepted between the listing and now have to be included.
            let hashes = self.hashes(timeline.parts()).await?;
            self.limit.change(view, |known| drop(known.insert(id, hashes.into())));
        }

        Ok(())
    }

    /// Returns the hashes of all keys of some generations, once everything that is accepted by now
    /// is counted.
    async fn hashes(&self, parts: &[(i64, Generation)]) -> Result<Vec<u64>, Error> {
        let ends: Vec<_> = self.logs.iter().map(|log| (log.partition(), log.end())).collect();
        let applied = tokio::time::timeout(APPLIED_MAX, self.published.wait_applied(&ends)).await;
        if !matches!(applied, Ok(Ok(()))) {
            return Err(Error::Io("what was accepted is not counted yet".to_owned()));
        }

        let mut hashes = Vec::new();
        for (_, generation) in parts {
            hashes.extend(self.keys.key_hashes(*generation).await?);
        }

        if parts.len() > 1 {
            hashes.sort_unstable();
            hashes.dedup();
        }

        Ok(hashes)
    }

    /// Updates the metrics of a counter that has many keys.
    fn tell(&self, counter: u32, keys: u64) {
        let has_many = keys.saturating_mul(100) >= self.limit.keys_max.saturating_mul(TOLD_PERCENT);
        let mut told = self.told.lock();
        if has_many || told.contains(&counter) {
            told.insert(counter);
            metrics::gauge!("raingauge_counter_keys", "counter" => counter.to_string())
                .set(keys as f64);
        }
    }
}
