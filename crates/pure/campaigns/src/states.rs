//! What a decision reads and changes besides the event: states of subjects, and budgets.

use crate::campaign::CampaignId;
use crate::decision::{ActionId, Decision};
use crate::limits::SUBJECT_LEN_MAX;
use hashbrown::{HashMap, HashSet};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What a state is. The numbers are those of stored states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKind {
    /// A count of the subject's events.
    Tally = 1,
    /// How often a step was granted.
    Usage = 2,
    /// Which variant of an experiment a unit has seen.
    Exposure = 3,
    /// The actions of a subject that wait for their time and may be cancelled.
    Waiting = 4,
    /// Up to which entry of the log a subject was erased, under a [digest](erasure_key) of it.
    Erasure = 5,
}

impl StateKind {
    /// Kinds whose states belong to subjects.
    pub const OF_SUBJECTS: [Self; 4] = [Self::Tally, Self::Usage, Self::Exposure, Self::Waiting];
}

/// The name of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    pub kind: StateKind,
    /// A hash of what the state belongs to: the definition of a tally, or campaign and limit.
    pub owner: u128,
    pub subject: String,
}

/// States, as of the place in the stream that is decided.
pub trait States {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]>;

    fn put(&mut self, key: StateKey, value: Vec<u8>);

    /// Whether an action has been granted before.
    fn is_granted(&mut self, action: &ActionId) -> bool;
}

/// A budget in one of its periods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetKey {
    /// The campaign that has the budget; 0 for one that several share.
    pub campaign: CampaignId,
    /// Its name. A campaign in shadow has budgets of its own, as `shadow/NAME`.
    pub name: String,
    /// The [number](crate::budget::Budget::period_number) of the period.
    pub period: i32,
}

/// What is left of budgets.
pub trait Budgets {
    /// What may still be reserved of a budget whose maximum is `max`.
    fn free(&mut self, key: &BudgetKey, max: i64) -> i64;

    /// Reserves an amount that is free.
    fn reserve(&mut self, key: &BudgetKey, max: i64, amount: i64);
}

/// States in memory, for backtests and simulations.
#[derive(Clone, Debug, Default)]
pub struct MemoryStates {
    states: HashMap<StateKey, Vec<u8>>,
    granted: HashSet<ActionId>,
}

/// Budgets in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryBudgets {
    reserved: BTreeMap<BudgetKey, i64>,
}

impl MemoryStates {
    /// Notes the actions that an event was granted.
    pub fn note(&mut self, decisions: &[Decision]) {
        let granted = decisions.iter().filter(|decision| decision.is_granted());
        self.granted.extend(granted.map(|decision| decision.action));
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}

impl MemoryBudgets {
    /// What is reserved of each budget.
    pub fn reserved(&self) -> &BTreeMap<BudgetKey, i64> {
        &self.reserved
    }
}

impl States for MemoryStates {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        self.states.get(key).map(Vec::as_slice)
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        self.states.insert(key, value);
    }

    fn is_granted(&mut self, action: &ActionId) -> bool {
        self.granted.contains(action)
    }
}

impl Budgets for MemoryBudgets {
    fn free(&mut self, key: &BudgetKey, max: i64) -> i64 {
        max.saturating_sub(self.reserved.get(key).copied().unwrap_or(0)).max(0)
    }

    fn reserve(&mut self, key: &BudgetKey, max: i64, amount: i64) {
        assert!(amount <= self.free(key, max), "only what is free is reserved");
        *self.reserved.entry(key.clone()).or_insert(0) += amount;
    }
}

/// The first 16 bytes of SHA-256 over parts, each behind its length in four bytes, little-endian.
/// It names what must not be confused, even by those who choose the names of events.
pub(crate) fn digest(parts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        let len = u32::try_from(part.len()).expect("a name is short");
        hash.update(len.to_le_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    std::array::from_fn(|place| digest[place])
}

/// The owner of the exposures of an experiment, or of a holdout by its seed.
pub fn exposure_owner(key: &str) -> u128 {
    owner(&["raingauge.exposure.1", key])
}

/// The state that says up to which entry of the log a subject was erased. It does not name the
/// subject.
pub fn erasure_key(subject: &str) -> StateKey {
    let digest = owner(&["raingauge.erasure.1", subject]);
    StateKey { kind: StateKind::Erasure, owner: 0, subject: format!("{digest:032x}") }
}

/// The owner of a state by what it belongs to.
pub(crate) fn owner(parts: &[&str]) -> u128 {
    u128::from_be_bytes(digest(parts))
}

/// The subject of a state about any value of an event: the value itself, or a digest of a long one.
pub(crate) fn state_subject(value: &str) -> String {
    match value.len() {
        0..=SUBJECT_LEN_MAX => value.to_owned(),
        _ => format!("sha256:{:032x}", owner(&[value])),
    }
}
