//! What books load for a turn, and what they make durable after it.

use crate::command::{Basis, Body, Command};
use crate::earned::{Earned, EarnedAward};
use crate::entry::{Entry, Kind};
use crate::identity::{BudgetId, Key, ReferenceId, WalletId};
use crate::programme::{EVENT_SOURCE, Programme, Programmes};
use crate::totals::{TotalId, Totals};
use crate::wallet::Wallet;
use hashbrown::HashMap;
use std::sync::Arc;

/// What commands touch: sorted, without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub wallets: Vec<WalletId>,
    pub keys: Vec<Key>,
    pub references: Vec<ReferenceId>,
    pub budgets: Vec<BudgetId>,
}

impl Footprint {
    /// What must be loaded to decide these commands.
    pub fn of(commands: &[Command], programmes: &Programmes, now_ms: i64) -> Self {
        let mut footprint = Self::default();
        for command in commands {
            footprint.add(command, programmes.get(&command.programme), now_ms);
        }
        footprint.sorted()
    }

    /// What must be loaded to apply these entries.
    pub fn of_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut footprint = Self::default();
        for entry in entries {
            footprint.wallets.extend(entry.wallet());
            footprint.keys.extend(entry.key.as_ref().map(|key| key.hash));
            footprint.references.extend(reference_of(entry));
            footprint.keys.extend(entry.changes.reversal.as_ref().and_then(|found| found.key));
            let budgets = entry.changes.budgets.iter();
            let ids = budgets.map(|used| BudgetId::new(&entry.programme, &used.budget));
            footprint.budgets.extend(ids);
        }
        footprint.sorted()
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a wallet that is settled without a command.
    pub fn wallet(&mut self, id: WalletId) {
        if let Err(place) = self.wallets.binary_search(&id) {
            self.wallets.insert(place, id);
        }
    }

    /// The books that its wallets belong to, in order.
    pub fn books(&self, books: u16) -> Vec<u16> {
        let mut found: Vec<u16> = self.wallets.iter().map(|id| id.book(books)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    pub fn merge(&mut self, other: Self) {
        self.wallets.extend(other.wallets);
        self.keys.extend(other.keys);
        self.references.extend(other.references);
        self.budgets.extend(other.budgets);
        *self = std::mem::take(self).sorted();
    }

    fn sorted(mut self) -> Self {
        self.wallets.sort_unstable();
        self.wallets.dedup();
        self.keys.sort_unstable();
        self.keys.dedup();
        self.references.sort_unstable();
        self.references.dedup();
        self.budgets.sort_unstable();
        self.budgets.dedup();
        self
    }

    fn add(&mut self, command: &Command, programme: Option<&Arc<Programme>>, now_ms: i64) {
        self.wallets.push(command.wallet());
        self.keys.push(command.key_hash());
        if let Some(reference) = &command.reference {
            let id = ReferenceId::of(&command.programme, &command.member, reference);
            self.references.push(id);
        }

        let Some(programme) = programme else { return };
        let name = programme.name();
        let is_limited = |budget: &Arc<str>| programme.budgets.contains_key(budget);
        match &command.body {
            Body::Award(award) => {
                let of_rule = match &award.basis {
                    Basis::Priced(priced) => priced.budget.as_ref(),
                    _ => None,
                };
                // Which rule prices a set of facts is found later.
                let any = programme.budgets.keys();
                let is_open = matches!(award.basis, Basis::Amount { .. });
                let any = any.filter(|_| is_open);
                let named = [of_rule, award.budget.as_ref(), Some(&programme.budget_default)];
                let named = named.into_iter().flatten().filter(|budget| is_limited(budget));
                self.budgets.extend(any.chain(named).map(|budget| BudgetId::new(name, budget)));
                self.add_partner(&command.source, programme, now_ms);
            }
            Body::Hold { reward: Some(reward), .. } => {
                if let Some(reward) = programme.reward(reward) {
                    let budgets = [reward.stock_budget(), reward.member_budget(&command.member)];
                    self.budgets.extend(budgets.map(|budget| BudgetId::new(name, &budget)));
                }
            }
            Body::Capture { hold, .. } | Body::Release { hold } => {
                self.keys.push(Key::of(name, &command.source, hold));
            }
            Body::Transfer { to, .. } => {
                self.wallets.push(WalletId { programme: name.clone(), member: to.clone() });
            }
            Body::ExchangeIn { partner, .. } => self.add_partner(partner, programme, now_ms),
            Body::Reverse { key, .. } => {
                let named = key.as_deref().or(command.reference_as_key());
                for key in named.into_iter().flat_map(|named| reversed_keys(command, named)) {
                    self.keys.push(key);
                    self.references.push(ReferenceId::of_key(name, key));
                }
            }
            _ => {}
        }
    }

    /// What a partner may award on a day. A turn may be a little later than now.
    fn add_partner(&mut self, partner: &str, programme: &Programme, now_ms: i64) {
        let partner = programme.partner(partner).filter(|partner| partner.per_day_max.is_some());
        let Some(partner) = partner else { return };
        let today = programme.zone().day(now_ms);
        for day in [today, today.plus(1)] {
            let budget = partner.day_budget(day);
            self.budgets.push(BudgetId::new(programme.name(), &budget));
        }
    }
}

/// The keys that a reversal may mean: one of the source that it names, or else of its own, or of an
/// event for the operator.
pub(crate) fn reversed_keys(command: &Command, key: &str) -> Vec<Key> {
    let mut sources = Vec::with_capacity(2);
    match &command.body {
        Body::Reverse { source: Some(source), .. } => sources.push(&**source),
        _ => sources.push(&*command.source),
    }
    if sources == [""] {
        sources.push(EVENT_SOURCE);
    }
    sources.into_iter().map(|source| Key::of(&command.programme, source, key)).collect()
}

/// What the record of an award's reference is stored under, where the entry changes it.
fn reference_of(entry: &Entry) -> Option<ReferenceId> {
    match &entry.changes.reversal {
        Some(reversal) => match reversal.key {
            Some(key) => Some(ReferenceId::of_key(&entry.programme, key)),
            None => entry.reference_id(),
        },
        None if matches!(entry.kind, Kind::Earn | Kind::Bonus) => entry.reference_id(),
        None => None,
    }
}

/// Where a book ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookHead {
    pub book: u16,
    /// Of the last entry; 0 in an empty book.
    pub sequence: u64,
    /// Of the last turn.
    pub recorded_ms: i64,
}

/// What books loaded. What is absent in a map was never seen.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The books of the turn.
    pub heads: Vec<BookHead>,
    /// How many books there are.
    pub books: u16,
    pub wallets: HashMap<WalletId, Wallet>,
    pub keys: HashMap<Key, Arc<Entry>>,
    pub references: HashMap<ReferenceId, Earned>,
    /// Sums of the entries that were applied here. Books load none, since no decision needs them.
    pub totals: Totals,
    /// What was used of each budget.
    pub budgets: HashMap<BudgetId, i64>,
    /// The time of the engine's own clock at the load, where machines share the engine.
    pub engine_ms: Option<i64>,
}

impl Snapshot {
    /// What is needed besides the footprint, now that the rest is known: references of the entries
    /// that keys led to, and budgets that reversals and released rewards give back to.
    pub fn missing(&self) -> Footprint {
        let mut footprint = Footprint::default();
        let references = self.keys.values().filter_map(|entry| entry.reference_id());
        let is_new = |id: &ReferenceId| !self.references.contains_key(id);
        footprint.references.extend(references.filter(is_new));

        for (id, earned) in &self.references {
            let budgets = earned.awards.iter().map(|award| &award.budget);
            let ids = budgets.map(|budget| BudgetId::new(&id.programme, budget));
            footprint.budgets.extend(ids);
        }
        for entry in self.keys.values() {
            let budgets = entry.changes.budgets.iter();
            let ids = budgets.map(|used| BudgetId::new(&entry.programme, &used.budget));
            footprint.budgets.extend(ids);
        }
        for (id, wallet) in &self.wallets {
            for reward in wallet.holds.iter().filter_map(|hold| hold.reward.as_ref()) {
                let budgets =
                    [format!("reward:{reward}"), format!("reward:{reward}:{}", id.member)];
                let ids = budgets.map(|name| BudgetId::new(&id.programme, &name.into()));
                footprint.budgets.extend(ids);
            }
        }
        footprint.budgets.retain(|id| !self.budgets.contains_key(id));
        footprint.sorted()
    }

    /// Applies an entry that was decided before. Returns whether it is new here.
    ///
    /// # Panics
    ///
    /// The entry must be the next one of its book.
    pub fn apply(&mut self, entry: &Arc<Entry>) -> bool {
        let head = match self.heads.iter_mut().find(|head| head.book == entry.book) {
            Some(head) => head,
            None => {
                self.heads.push(BookHead { book: entry.book, ..BookHead::default() });
                self.heads.last_mut().expect("it was added")
            }
        };
        if entry.sequence <= head.sequence {
            return false;
        }
        assert_eq!(entry.sequence, head.sequence + 1, "a book has no gap (I4)");
        head.sequence = entry.sequence;
        head.recorded_ms = entry.recorded_ms;

        if let Some(id) = entry.wallet() {
            self.wallets.entry(id).or_default().apply(entry);
        }
        self.note(entry, &mut Before::default());
        true
    }

    /// Applies what an entry says of keys, references, sums and budgets. The values from before
    /// are kept in `before`, unless there is an older one.
    pub(crate) fn note(&mut self, entry: &Arc<Entry>, before: &mut Before) {
        if let Some(key) = &entry.key {
            let former = self.keys.insert(key.hash, entry.clone());
            assert!(former.is_none(), "a key has one entry (I5)");
            before.keys.push(key.hash);
        }

        if let Some(id) = reference_of(entry) {
            let former = self.references.get(&id).cloned();
            let earned = self.references.entry(id.clone()).or_default();
            let named = entry.changes.reversal.as_ref().and_then(|reversal| reversal.key);
            if let Some(award) = named.filter(|_| earned.is_empty()) {
                let award = self.keys.get(&award).expect("an award that is reversed is loaded");
                earned.awards.push(EarnedAward::of(award));
            }
            earned.apply(entry);
            before.references.entry(id).or_insert(former);
        }

        self.totals.apply(entry, |id, sum| {
            if !before.totals.contains_key(id) {
                before.totals.insert(id.clone(), sum);
            }
        });
        for used in &entry.changes.budgets {
            let id = BudgetId::new(&entry.programme, &used.budget);
            let former = self.budgets.get(&id).copied();
            *self.budgets.entry(id.clone()).or_default() += used.amount;
            before.budgets.entry(id).or_insert(former);
        }
    }

    /// Puts everything back to what it was.
    pub(crate) fn restore(&mut self, before: Before) {
        for key in before.keys {
            self.keys.remove(&key);
        }
        put_back(&mut self.wallets, before.wallets);
        put_back(&mut self.references, before.references);
        put_back(&mut self.budgets, before.budgets);
        self.totals.0.extend(before.totals);
    }
}

fn put_back<K: Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, before: HashMap<K, Option<V>>) {
    for (key, value) in before {
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
}

/// The values that were changed, as they were.
#[derive(Debug, Default)]
pub(crate) struct Before {
    pub(crate) wallets: HashMap<WalletId, Option<Wallet>>,
    pub(crate) keys: Vec<Key>,
    pub(crate) references: HashMap<ReferenceId, Option<Earned>>,
    pub(crate) totals: HashMap<TotalId, i128>,
    pub(crate) budgets: HashMap<BudgetId, Option<i64>>,
}

impl Before {
    /// Forgets all values, and keeps the memory for others.
    pub(crate) fn clear(&mut self) {
        self.wallets.clear();
        self.keys.clear();
        self.references.clear();
        self.totals.clear();
        self.budgets.clear();
    }

    /// Adds later changes, whose values from before count only where there are no older ones.
    pub(crate) fn absorb(&mut self, later: Self) {
        for (id, wallet) in later.wallets {
            self.wallets.entry(id).or_insert(wallet);
        }
        self.keys.extend(later.keys);
        for (id, earned) in later.references {
            self.references.entry(id).or_insert(earned);
        }
        for (id, sum) in later.totals {
            self.totals.entry(id).or_insert(sum);
        }
        for (id, used) in later.budgets {
            self.budgets.entry(id).or_insert(used);
        }
    }
}

/// What a turn decided. All of it follows from the entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    pub recorded_ms: i64,
    /// Without gaps in each book.
    pub entries: Vec<Arc<Entry>>,
    pub wallets: Vec<(WalletId, Wallet)>,
    /// What is added to sums, of which there may be very many. The other values are absolute.
    pub moved: Vec<(TotalId, i128)>,
    pub references: Vec<(ReferenceId, Earned)>,
    pub budgets: Vec<(BudgetId, i64)>,
    /// The offset of the log behind the last event that the turn includes; `None` where it stays.
    pub position: Option<u64>,
}
