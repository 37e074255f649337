//! A cache of the largest keys of counters: a search scans every key, and pages repeat it often.

use crate::Portal;
use raingauge_core::bucket::Granularity;
use raingauge_core::code::{Code, Refusal};
use raingauge_ports::buckets::Generation;
use raingauge_ports::scans::Full;
use raingauge_reader::{Key, LargestKeys};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Number of keys cached for each counter and range.
pub const KEYS_MAX: usize = 20;
/// Number of counters and ranges cached.
const REMEMBERED_MAX: usize = 512;
/// Age at which an entry is stale. The next request for it starts a new search and returns the
/// stale keys.
const STALE_MS: i64 = 15_000;
/// How long a page waits for keys that are not cached yet. The search goes on afterwards, and the
/// next request finds its result.
const WAIT: Duration = Duration::from_millis(1_500);

/// The caller name under which the portal's searches take their turns.
const CALLER: &str = "the portal: keys";

type Found = Result<Arc<LargestKeys>, Refusal>;

/// The state of a search for the largest keys.
pub enum Largest {
    Found(Arc<LargestKeys>),
    Failed(Refusal),
    /// The search is still running: reloading the page in a moment shows its result.
    Looking,
}

impl Largest {
    pub fn keys(&self) -> &[Key] {
        match self {
            Self::Found(found) => &found.keys,
            Self::Failed(_) | Self::Looking => &[],
        }
    }
}

/// A counter, the whole UTC days that the search covers, and the generation of counts: keys found
/// before a backfill ended do not describe the counts that it made.
type Which = (u32, i64, i64, Option<Generation>);

#[derive(Clone)]
struct Known {
    began_ms: i64,
    found: Arc<OnceCell<Found>>,
}

/// Search results, by counter and range.
#[derive(Default)]
pub struct Memory {
    known: Mutex<HashMap<Which, Known>>,
}

impl Memory {
    /// Returns the entry of a range. A stale entry is replaced, and its result is returned as well,
    /// for use until the new search ends.
    fn entry(&self, which: Which, now_ms: i64) -> (Arc<OnceCell<Found>>, Option<Found>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = |known: &Known| {
            let has_failed = known.found.get().is_some_and(|found| found.is_err());
            !has_failed && now_ms - known.began_ms < STALE_MS
        };
        if let Some(entry) = known.get(&which).filter(|entry| is_good(entry)) {
            return (Arc::clone(&entry.found), None);
        }

        let stale =
            known.get(&which).and_then(|entry| entry.found.get().cloned()).filter(Result::is_ok);
        if known.len() >= REMEMBERED_MAX
            && let Some(oldest) =
                known.iter().min_by_key(|(_, entry)| entry.began_ms).map(|(which, _)| *which)
        {
            known.remove(&oldest);
        }

        let entry = Known { began_ms: now_ms, found: Arc::default() };
        known.insert(which, entry.clone());
        (entry.found, stale)
    }
}

fn generation(portal: &Portal, counter: u32) -> Option<Generation> {
    let view = portal.counted.published.view();
    let index = view.ruleset.index_of(counter)?;
    Some(view.timelines[index].newest())
}

/// Returns the largest keys of a counter over the UTC days that touch a range.
pub async fn keys(portal: &Portal, counter: u32, from_s: i64, to_s: i64) -> Largest {
    // The search covers whole days, so that ranges touching the same days share a result.
    let days = (Granularity::Day.floor(from_s), Granularity::Day.ceil(to_s));
    let which = (counter, days.0, days.1, generation(portal, counter));
    let (cell, stale) = portal.largest.entry(which, portal.clock.now_ms());
    let reader = Arc::clone(&portal.reader);
    let scans = portal.counted.scans.clone();
    let looking = tokio::spawn(async move {
        let look = || async {
            let busy = |full: Full| Refusal::new(Code::Overloaded, full.to_string());
            let _turn = scans.turn(CALLER).await.map_err(busy)?;
            Ok(Arc::new(reader.largest_keys(counter, from_s, to_s, KEYS_MAX).await?))
        };
        cell.get_or_init(look).await.clone()
    });

    let found = match stale {
        Some(stale) => Some(stale),
        None => tokio::time::timeout(WAIT, looking).await.ok().and_then(Result::ok),
    };
    match found {
        Some(Ok(keys)) => Largest::Found(keys),
        Some(Err(failure)) => Largest::Failed(failure),
        None => Largest::Looking,
    }
}
