//! A ledger that fails, before and after its commits, and lookups that do.

mod reading;

use super::world::Random;
use crate::control::Control;
use parking_lot::Mutex;
use raingauge_campaigns::engine::{LookupClass, LookupKey};
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::{
    ActionId, Budget, BudgetKey, Checkpoint, Commit, Error, Horizons, Ledger, LedgerRetention,
    LookupError, Lookups, StateKey, StateKind, Timer,
};
use raingauge_ports::log::Offset;
pub use reading::{FailingDocuments, FailingLog, Failures};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Fails some commits, before or after they are made.
pub struct FailingLedger {
    pub inner: Arc<memory::Ledger>,
    random: Mutex<Random>,
    /// How many of 100 commits fail.
    percent: AtomicU64,
    reads: Failures,
    walks: Mutex<Vec<WalkChange>>,
    /// Does what a worker must not do.
    pub forgets_timers: bool,
    pub commits_twice: bool,
    pub forgets_a_state: bool,
    pub repeats_history: bool,
}

/// The tallies that are filled from the log when the events from an offset on are decided.
#[derive(Clone, Debug)]
pub struct WalkChange {
    pub from: Offset,
    pub tallies: BTreeSet<u128>,
}

impl FailingLedger {
    pub fn new(inner: Arc<memory::Ledger>, seed: u64) -> Self {
        Self {
            inner,
            random: Mutex::new(Random(seed | 1)),
            percent: AtomicU64::new(10),
            reads: Failures::new(seed.rotate_left(17), 1),
            walks: Mutex::default(),
            forgets_timers: false,
            commits_twice: false,
            forgets_a_state: false,
            repeats_history: false,
        }
    }

    pub fn heal(&self) {
        self.percent.store(0, Ordering::Relaxed);
        self.reads.heal();
    }

    /// Which tallies were being filled, commit by commit.
    pub fn walks(&self) -> Vec<WalkChange> {
        self.walks.lock().clone()
    }

    fn read(&self) -> Result<&memory::Ledger, Error> {
        if self.reads.strike() { Err(failed()) } else { Ok(&self.inner) }
    }

    fn note_walks(&self, from: Offset, control: &[u8]) {
        let control = Control::from_bytes(control).unwrap();
        let tallies = control.walks.iter().flat_map(|walk| walk.tallies.keys());
        let tallies = tallies.map(|owner| owner.0).collect();
        self.walks.lock().push(WalkChange { from, tallies });
    }

    fn fails(&self) -> bool {
        self.random.lock().chance(self.percent.load(Ordering::Relaxed))
    }

    /// What is committed never overdraws a budget, nor returns what was spent.
    fn check(&self, keys: &[BudgetKey], maxima: &[i64]) {
        let budgets = self.inner.budgets(keys).unwrap();
        for (budget, max) in budgets.iter().zip(maxima) {
            let Budget { reserved, spent, .. } = *budget;
            assert!((0..=reserved).contains(&spent) && reserved <= *max, "{budget:?}");
        }
    }
}

fn failed() -> Error {
    Error::Io("the disk is away".to_owned())
}

/// Puts the walk under way before the last entry that it counted.
fn one_step_back(control: &[u8]) -> Vec<u8> {
    let mut control = Control::from_bytes(control).unwrap();
    if let Some(walk) = control.walks.first_mut().filter(|walk| walk.has_begun) {
        walk.next = walk.next.saturating_sub(1);
    }
    control.to_bytes()
}

impl Ledger for FailingLedger {
    fn take_over(&self) -> Result<Checkpoint, Error> {
        self.read()?.take_over()
    }

    fn load(&self, keys: &[StateKey]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.read()?.load(keys)
    }

    fn known(&self, actions: &[ActionId]) -> Result<Vec<bool>, Error> {
        self.read()?.known(actions)
    }

    fn budgets(&self, keys: &[BudgetKey]) -> Result<Vec<Budget>, Error> {
        self.read()?.budgets(keys)
    }

    fn due(&self, until_ms: i64, len_max: usize) -> Result<Vec<Timer>, Error> {
        self.read()?.due(until_ms, len_max)
    }

    fn timers_from(&self, place: (i64, ActionId), len_max: usize) -> Result<Vec<Timer>, Error> {
        self.read()?.timers_from(place, len_max)
    }

    fn timers_len(&self, len_max: usize) -> Result<usize, Error> {
        self.read()?.timers_len(len_max)
    }

    fn commit(&self, mut commit: Commit) -> Result<(), Error> {
        if self.fails() {
            return Err(failed());
        }
        if self.forgets_timers && self.random.lock().chance(20) {
            commit.timers.clear();
        }
        if self.forgets_a_state && self.random.lock().chance(20) {
            commit.states.pop();
        }
        if self.repeats_history && self.random.lock().chance(20) {
            commit.control = commit.control.map(|control| one_step_back(&control));
        }
        if self.commits_twice && commit.position > commit.from && self.random.lock().chance(20) {
            // The states are made durable, and the position is not.
            let half = Commit { position: commit.from, ..commit.clone() };
            let half = Commit {
                deliveries: Vec::new(),
                decisions: Vec::new(),
                budgets: Vec::new(),
                timers: Vec::new(),
                ..half
            };
            self.inner.commit(half)?;
            return Err(failed());
        }

        let granting = commit.budgets.iter().filter(|change| change.reserve > 0);
        let changes: Vec<(BudgetKey, i64)> =
            granting.map(|change| (change.key.clone(), change.max)).collect();
        let walks = commit.control.clone().map(|control| (commit.position, control));
        self.inner.commit(commit)?;
        if let Some((from, control)) = walks {
            self.note_walks(from, &control);
        }
        let (keys, maxima): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        self.check(&keys, &maxima);
        if self.fails() { Err(failed()) } else { Ok(()) }
    }
}

impl LedgerRetention for FailingLedger {
    fn expire(&self, horizons: Horizons, scan_max: usize) -> Result<usize, Error> {
        self.inner.expire(horizons, scan_max)
    }

    fn remove_states(&self, kind: StateKind, owner: u128, len_max: usize) -> Result<usize, Error> {
        self.inner.remove_states(kind, owner, len_max)
    }
}

/// A list that always answers, and a service that fails and is late until it is healed.
pub struct FailingLookups {
    random: Mutex<Random>,
    percent: AtomicU64,
}

impl FailingLookups {
    pub fn new(seed: u64) -> Self {
        Self { random: Mutex::new(Random(seed | 1)), percent: AtomicU64::new(40) }
    }

    pub fn heal(&self) {
        self.percent.store(0, Ordering::Relaxed);
    }

    /// What every lookup says when it answers.
    pub fn truth(key: &LookupKey) -> Json {
        let is_odd = key.key.ends_with(['1', '3']);
        match key.class {
            LookupClass::Segment => is_odd.into(),
            LookupClass::Table => json!({"locale": if is_odd { "de" } else { "en" }}),
            _ => json!({"ok": is_odd}),
        }
    }

    fn answer(&self, key: &LookupKey) -> Result<Json, LookupError> {
        let mut random = self.random.lock();
        let fails = random.chance(self.percent.load(Ordering::Relaxed));
        match key.class {
            LookupClass::Http if fails && random.chance(50) => Err(LookupError::Late),
            LookupClass::Http if fails => Err(LookupError::Failed("503".to_owned())),
            _ => Ok(Self::truth(key)),
        }
    }
}

impl Lookups for FailingLookups {
    fn answers<'a>(
        &'a self,
        keys: &'a [LookupKey],
        _after: Offset,
        _patience: Duration,
    ) -> BoxFuture<'a, Vec<Result<Json, LookupError>>> {
        Box::pin(ready(keys.iter().map(|key| self.answer(key)).collect()))
    }
}
