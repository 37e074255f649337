//! The known state of the ledger while a commit is made: states and budgets as they are stored,
//! and what the commit makes of them.

use crate::control::Control;
use hashbrown::{HashMap, HashSet};
use raingauge_campaigns::decision::ActionId;
use raingauge_campaigns::states::{BudgetKey, Budgets, StateKey, StateKind, States, erasure_key};
use raingauge_ports::campaigns::{Budget, BudgetChange, Cost, Error, Ledger};
use raingauge_ports::log::Offset;

/// States of subjects.
pub struct KnownStates<'l> {
    ledger: &'l dyn Ledger,
    control: &'l Control,
    loaded: HashMap<StateKey, Option<Vec<u8>>>,
    written: HashMap<StateKey, Vec<u8>>,
    granted: HashMap<ActionId, bool>,
    /// Before this entry of the log, there may be events of subjects that were erased since.
    erased_until: Offset,
    /// The ledger could not be read: nothing that follows is right.
    failure: Option<Error>,
}

impl<'l> KnownStates<'l> {
    pub fn new(ledger: &'l dyn Ledger, control: &'l Control) -> Self {
        Self {
            ledger,
            control,
            loaded: HashMap::new(),
            written: HashMap::new(),
            granted: HashMap::new(),
            erased_until: control.erased_until,
            failure: None,
        }
    }

    /// Notes that the events of a subject before `until` are not counted again.
    pub fn note_erasure(&mut self, subject: &str, until: Offset) {
        self.erased_until = self.erased_until.max(until);
        self.put(erasure_key(subject), until.to_le_bytes().to_vec());
    }

    fn is_erased(&mut self, subject: &str, offset: Offset) -> bool {
        if offset >= self.erased_until {
            return false;
        }
        let mark = self.get(&erasure_key(subject));
        let until = mark.and_then(|bytes| bytes.try_into().ok()).map(Offset::from_le_bytes);
        until.is_some_and(|until| offset < until)
    }

    /// A copy to try something on.
    pub fn fork(&mut self) -> ForkedStates<'_, 'l> {
        ForkedStates { base: self, written: HashMap::new() }
    }

    /// Notes that the commit grants an action.
    pub fn grant(&mut self, action: ActionId) {
        self.granted.insert(action, true);
    }

    pub fn check(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub fn is_unchanged(&self) -> bool {
        self.written.is_empty()
    }

    /// The new values. Where nothing waits any more, nothing is stored.
    pub fn into_changes(self) -> Vec<(StateKey, Option<Vec<u8>>)> {
        let control = self.control;
        let changes = self.written.into_iter().map(|(key, value)| {
            let is_gone = key.kind == StateKind::Waiting && value.is_empty();
            (stored(control, key), (!is_gone).then_some(value))
        });
        changes.collect()
    }
}

/// The key under which a state is stored.
fn stored(control: &Control, key: StateKey) -> StateKey {
    if key.kind == StateKind::Tally && !control.generations.is_empty() {
        return StateKey { owner: control.stored_owner(key.owner), ..key };
    }
    key
}

impl States for KnownStates<'_> {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        if self.written.contains_key(key) {
            return self.written.get(key).map(Vec::as_slice);
        }

        if !self.loaded.contains_key(key) {
            let found = self.ledger.load(&[stored(self.control, key.clone())]);
            let value = found.map(|mut values| values.pop().flatten());
            let value = value.unwrap_or_else(|error| {
                self.failure.get_or_insert(error);
                None
            });
            self.loaded.insert(key.clone(), value);
        }
        self.loaded.get(key)?.as_deref()
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        self.written.insert(key, value);
    }

    fn is_granted(&mut self, action: &ActionId) -> bool {
        if let Some(granted) = self.granted.get(action) {
            return *granted;
        }

        let found = self.ledger.known(std::slice::from_ref(action));
        let granted = found.map(|known| known.first().copied().unwrap_or(false));
        let granted = granted.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            false
        });
        self.granted.insert(*action, granted);
        granted
    }
}

/// States that are written to no commit.
pub struct ForkedStates<'f, 'l> {
    base: &'f mut KnownStates<'l>,
    written: HashMap<StateKey, Vec<u8>>,
}

impl States for ForkedStates<'_, '_> {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        if self.written.contains_key(key) {
            return self.written.get(key).map(Vec::as_slice);
        }
        self.base.get(key)
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        self.written.insert(key, value);
    }

    fn is_granted(&mut self, action: &ActionId) -> bool {
        self.base.is_granted(action)
    }
}

/// The tallies of a walk through the log, at one entry of it. Everything else is as if it were not
/// there, and so are subjects that were erased behind the entry.
pub struct TalliesOnly<'t, 'l> {
    states: &'t mut KnownStates<'l>,
    owners: &'t HashSet<u128>,
    offset: Offset,
}

impl<'t, 'l> TalliesOnly<'t, 'l> {
    pub fn new(states: &'t mut KnownStates<'l>, owners: &'t HashSet<u128>, offset: Offset) -> Self {
        Self { states, owners, offset }
    }

    fn includes(&self, key: &StateKey) -> bool {
        key.kind == StateKind::Tally && self.owners.contains(&key.owner)
    }
}

impl States for TalliesOnly<'_, '_> {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        if self.includes(key) { self.states.get(key) } else { None }
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        if self.includes(&key) && !self.states.is_erased(&key.subject, self.offset) {
            self.states.put(key, value);
        }
    }

    fn is_granted(&mut self, _: &ActionId) -> bool {
        false
    }
}

/// Budgets, and what the commit takes of them and gives back.
pub struct KnownBudgets<'l> {
    ledger: &'l dyn Ledger,
    budgets: HashMap<BudgetKey, KnownBudget>,
    failure: Option<Error>,
}

struct KnownBudget {
    stored: Budget,
    max: i64,
    reserve: i64,
    is_changed: bool,
}

impl<'l> KnownBudgets<'l> {
    pub fn new(ledger: &'l dyn Ledger) -> Self {
        Self { ledger, budgets: HashMap::new(), failure: None }
    }

    pub fn check(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Gives back what an action reserved that does not happen.
    pub fn give_back(&mut self, cost: &Cost) {
        if cost.is_refunded {
            let budget = self.budget(&cost.budget);
            budget.reserve -= cost.amount;
            budget.is_changed = true;
        }
    }

    pub fn into_changes(self) -> Vec<BudgetChange> {
        let changed = self.budgets.into_iter().filter(|(_, budget)| budget.is_changed);
        let changes = changed.map(|(key, budget)| {
            let KnownBudget { max, reserve, .. } = budget;
            BudgetChange { key, max, reserve }
        });
        changes.collect()
    }

    fn budget(&mut self, key: &BudgetKey) -> &mut KnownBudget {
        if !self.budgets.contains_key(key) {
            let found = self.ledger.budgets(std::slice::from_ref(key));
            let stored = found.map(|found| found.first().copied().unwrap_or_default());
            let stored = stored.unwrap_or_else(|error| {
                self.failure.get_or_insert(error);
                Budget::default()
            });
            let known = KnownBudget { stored, max: stored.max, reserve: 0, is_changed: false };
            self.budgets.insert(key.clone(), known);
        }
        self.budgets.get_mut(key).expect("it is known now")
    }
}

impl Budgets for KnownBudgets<'_> {
    fn free(&mut self, key: &BudgetKey, max: i64) -> i64 {
        let budget = self.budget(key);
        let reserved = budget.stored.reserved.saturating_add(budget.reserve);
        Budget { max, reserved, spent: 0 }.free()
    }

    fn reserve(&mut self, key: &BudgetKey, max: i64, amount: i64) {
        let budget = self.budget(key);
        budget.max = max;
        budget.reserve += amount;
        budget.is_changed = true;
    }
}
