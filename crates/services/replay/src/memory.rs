//! What a replay remembers: states of subjects and accounts of budgets, in memory.

use crate::Error;
use crate::limits::REPLAY_STATES_BYTES_MAX;
use hashbrown::{HashMap, HashSet};
use raingauge_campaigns::decision::{ActionId, Decision};
use raingauge_campaigns::states::{BudgetKey, Budgets, StateKey, StateKind, States};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Longest value that lies beside its owner: that of most counts.
const INLINE_BYTES: usize = 24;
/// Bytes of a subject beside its name and its states, and of a state beside its value,
/// approximately.
const SUBJECT_BYTES: usize = 80;
const STATE_BYTES: usize = 80;
/// Bytes of the id of an action that was granted.
const ACTION_BYTES: usize = 24;

/// The states of a replay, by subject: an event reads several states of one subject, which lie
/// beside each other in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    places: HashMap<Box<str>, usize>,
    /// The states of each subject, by owner and kind.
    subjects: Vec<Vec<StoredState>>,
    /// The subject that was used last, and its place.
    last: Option<(String, usize)>,
    granted: HashSet<ActionId>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct StoredState {
    owner: u128,
    kind: StateKind,
    value: SmallVec<[u8; INLINE_BYTES]>,
}

impl StoredState {
    fn order(&self) -> (u128, StateKind) {
        (self.owner, self.kind)
    }
}

impl Memory {
    /// Notes the actions that an event was granted.
    pub fn note(&mut self, decisions: &[Decision]) {
        for decision in decisions.iter().filter(|decision| decision.is_granted()) {
            self.bytes += ACTION_BYTES;
            self.granted.insert(decision.action);
        }
    }

    /// Refuses to remember more than a replay may.
    pub fn check(&self) -> Result<(), Error> {
        if self.bytes <= REPLAY_STATES_BYTES_MAX {
            return Ok(());
        }
        let detail = format!(
            "the states of the subjects take more than {REPLAY_STATES_BYTES_MAX} bytes: replay a \
             shorter range, or a sample of the subjects"
        );
        Err(Error::TooLarge(detail))
    }

    /// Takes over what another memory has, of tallies those of these owners alone.
    pub fn adopt(&mut self, other: &Self, tallies: &HashSet<u128>) {
        for (subject, place) in &other.places {
            for StoredState { owner, kind, value } in &other.subjects[*place] {
                if *kind != StateKind::Tally || tallies.contains(owner) {
                    let subject = subject.to_string();
                    self.put(StateKey { kind: *kind, owner: *owner, subject }, value.to_vec());
                }
            }
        }
        self.granted.extend(&other.granted);
    }

    /// The place of a subject that has states.
    fn place(&mut self, subject: &str) -> Option<usize> {
        if let Some((last, place)) = &self.last
            && *last == *subject
        {
            return Some(*place);
        }
        let place = *self.places.get(subject)?;
        let (last, known) = self.last.get_or_insert_default();
        last.clear();
        last.push_str(subject);
        *known = place;
        Some(place)
    }
}

impl States for Memory {
    fn get(&mut self, key: &StateKey) -> Option<&[u8]> {
        let place = self.place(&key.subject)?;
        let states = &self.subjects[place];
        let found = states.binary_search_by_key(&(key.owner, key.kind), StoredState::order).ok()?;
        Some(&states[found].value)
    }

    fn put(&mut self, key: StateKey, value: Vec<u8>) {
        let StateKey { kind, owner, subject } = key;
        let place = self.place(&subject).unwrap_or_else(|| {
            let place = self.subjects.len();
            self.bytes += SUBJECT_BYTES + subject.len();
            self.places.insert(subject.as_str().into(), place);
            self.subjects.push(Vec::new());
            place
        });

        self.bytes += value.len();
        let states = &mut self.subjects[place];
        match states.binary_search_by_key(&(owner, kind), StoredState::order) {
            Ok(found) => {
                let known = &mut states[found].value;
                self.bytes -= known.len();
                known.clear();
                known.extend_from_slice(&value);
            }
            Err(free) => {
                self.bytes += STATE_BYTES;
                let value = SmallVec::from_slice(&value);
                states.insert(free, StoredState { owner, kind, value });
            }
        }
    }

    fn is_granted(&mut self, action: &ActionId) -> bool {
        self.granted.contains(action)
    }
}

/// A budget in one of its periods, as the replay spends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub max: i64,
    pub reserved: i64,
    /// The time of the event on which it had nothing left, or too little.
    pub exhausted_ms: Option<i64>,
}

/// The accounts of a replay.
#[derive(Clone, Debug)]
pub struct Accounts {
    accounts: BTreeMap<BudgetKey, Account>,
    /// One in `sample` subjects is replayed, so the budgets are as many times smaller.
    sample: i64,
    /// The time of the event that is decided.
    now_ms: i64,
}

impl Accounts {
    pub fn new(sample: u64) -> Self {
        let sample = i64::try_from(sample.max(1)).unwrap_or(i64::MAX);
        Self { accounts: BTreeMap::new(), sample, now_ms: 0 }
    }

    pub fn turn_to(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    pub fn iter(&self) -> impl Iterator<Item = (&BudgetKey, &Account)> {
        self.accounts.iter()
    }

    /// Assumes that an amount is reserved already.
    pub fn assume(&mut self, key: BudgetKey, max: i64, amount: i64) {
        self.account(&key, max).reserved = amount;
    }

    /// Notes that a budget had too little left for an event.
    pub fn refuse(&mut self, key: &BudgetKey) {
        let now_ms = self.now_ms;
        if let Some(account) = self.accounts.get_mut(key) {
            account.exhausted_ms.get_or_insert(now_ms);
        }
    }

    pub fn give_back(&mut self, key: &BudgetKey, amount: i64) {
        if let Some(account) = self.accounts.get_mut(key) {
            account.reserved = account.reserved.saturating_sub(amount).max(0);
        }
    }

    fn account(&mut self, key: &BudgetKey, max: i64) -> &mut Account {
        let max = max / self.sample;
        if !self.accounts.contains_key(key) {
            self.accounts.insert(key.clone(), Account::default());
        }
        let account = self.accounts.get_mut(key).expect("it was inserted");
        account.max = max;
        account
    }
}

impl Budgets for Accounts {
    fn free(&mut self, key: &BudgetKey, max: i64) -> i64 {
        let account = self.account(key, max);
        account.max.saturating_sub(account.reserved).max(0)
    }

    fn reserve(&mut self, key: &BudgetKey, max: i64, amount: i64) {
        let now_ms = self.now_ms;
        let account = self.account(key, max);
        account.reserved = account.reserved.saturating_add(amount);
        assert!(account.reserved <= account.max || amount == 0, "only what is free is reserved");

        if account.reserved == account.max {
            account.exhausted_ms.get_or_insert(now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_bounded_by_their_bytes() {
        let key = |subject: &str| StateKey {
            kind: StateKind::Tally,
            owner: 7,
            subject: subject.to_owned(),
        };
        let mut memory = Memory::default();
        memory.put(key("a"), vec![1; 10]);
        memory.put(key("a"), vec![1; 4]);
        assert_eq!(memory.bytes, SUBJECT_BYTES + 1 + STATE_BYTES + 4);
        assert_eq!(memory.get(&key("a")), Some(&[1; 4][..]));
        assert_eq!(memory.get(&StateKey { owner: 8, ..key("a") }), None);
        assert_eq!(memory.get(&key("b")), None);
        assert!(memory.check().is_ok());

        memory.put(key("b"), vec![0; REPLAY_STATES_BYTES_MAX]);
        assert!(matches!(memory.check(), Err(Error::TooLarge(_))));
    }

    #[test]
    fn an_account_knows_when_it_was_exhausted() {
        let key = BudgetKey { campaign: 7, name: "b".to_owned(), period: 0 };
        let mut accounts = Accounts::new(1);
        accounts.turn_to(5);
        assert_eq!(accounts.free(&key, 10), 10);
        accounts.reserve(&key, 10, 6);
        accounts.turn_to(6);
        accounts.refuse(&key);
        accounts.turn_to(7);
        accounts.reserve(&key, 10, 4);
        accounts.give_back(&key, 3);
        assert_eq!(accounts.free(&key, 10), 3);
        let account = Account { max: 10, reserved: 7, exhausted_ms: Some(6) };
        assert_eq!(accounts.iter().collect::<Vec<_>>(), [(&key, &account)]);

        // Of one subject in four.
        assert_eq!(Accounts::new(4).free(&key, 10), 2);
    }
}
