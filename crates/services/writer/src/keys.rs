//! A limit on the keys of a counter.
//!
//! ```text
//!   workers ──▶ sketches: about how many keys ──▶ KeyWatch ──lists when the limit may be near──┐
//!                                                                                              ▼
//!   event ──▶ Ingest ── marks new keys beyond the limit ──▶ event log    KeyLimit: full counters,
//!                ▲                                                       and their keys
//!                └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! Refusals are decided once, where an event comes in, and stand in the log with the event: for
//! every reader, now or in a backfill, it does not count under the refused keys and counts under
//! all others. Keys that a counter has go on counting. Events cost none of this while no counter of
//! their type is full.

mod watch;

pub use watch::KeyWatch;

use parking_lot::RwLock;
use raingauge_core::event::{Event, key_hash};
use raingauge_core::ruleset::{Ruleset, Scratch};
use raingauge_ports::published::View;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The counters that take no new keys.
#[derive(Debug, Default)]
pub struct KeyLimit {
    /// Most keys of a counter; 0 for no limit.
    keys_max: u64,
    full: RwLock<Arc<Full>>,
}

/// The counters that are full, with the sorted hashes of their keys, and the types of their events.
#[derive(Clone, Debug, Default)]
pub struct Full {
    known: HashMap<u32, Arc<[u64]>>,
    kinds: HashSet<Box<str>>,
}

impl KeyLimit {
    pub fn new(keys_max: u64) -> Self {
        Self { keys_max, full: RwLock::default() }
    }

    pub fn keys_max(&self) -> u64 {
        self.keys_max
    }

    pub fn full(&self) -> Arc<Full> {
        Arc::clone(&self.full.read())
    }

    /// Changes which counters are full. The types of their events follow from the view.
    fn change(&self, view: &View, change: impl FnOnce(&mut HashMap<u32, Arc<[u64]>>)) {
        let mut full = self.full.write();
        let mut known = full.known.clone();
        change(&mut known);
        let rules = view.ruleset.rules().iter().filter(|rule| known.contains_key(&rule.counter.id));
        let kinds = rules.map(|rule| rule.counter.event_type.as_str().into()).collect();
        *full = Arc::new(Full { known, kinds });
    }
}

impl Full {
    /// Whether a counter refuses a key: it is full, and the key is new.
    pub fn refuses(&self, counter: u32, hash: u64) -> bool {
        self.known.get(&counter).is_some_and(|known| known.binary_search(&hash).is_err())
    }

    /// Adds a mark to the event for each refused key.
    pub fn mark(&self, ruleset: &Ruleset, event: &mut Event<'_>) {
        if !self.kinds.contains(&*event.kind) {
            return;
        }
        let mut refused = Vec::new();
        let look = |index: usize, key: &str, _| {
            let hash = key_hash(key);
            if self.refuses(ruleset.rules()[index].counter.id, hash) {
                refused.extend(hash.to_le_bytes());
            }
        };
        ruleset.apply(event, &mut Scratch::default(), look, |_, _| {});
        event.refused_keys = refused.into();
    }
}
