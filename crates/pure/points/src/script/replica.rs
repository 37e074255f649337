//! A ledger in memory, which checks after every turn what must always be true.

use super::ScriptLedger;
use crate::account::Expiry;
use crate::command::Command;
use crate::desk::{Answer, Desk};
use crate::earned::Earned;
use crate::entry::Entry;
use crate::identity::WalletId;
use crate::programme::Programmes;
use crate::snapshot::{BookHead, Footprint, Snapshot, Turn};
use crate::totals::{Total, TotalId, Totals};
use crate::wallet::Wallet;
use hashbrown::HashMap as Map;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// All books of a ledger, twice: as turns left them, and as their entries say.
#[derive(Debug)]
pub struct Replica {
    state: Snapshot,
    recovered: Snapshot,
    entries: Vec<Arc<Entry>>,
}

impl Replica {
    /// An empty ledger with this number of books.
    pub fn new(books: u16) -> Self {
        let heads = (0..books).map(|book| BookHead { book, ..BookHead::default() });
        let state = Snapshot { heads: heads.collect(), books, ..Snapshot::default() };
        Self { recovered: state.clone(), state, entries: Vec::new() }
    }

    /// All entries, in the order in which they were decided.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    pub fn state(&self) -> &Snapshot {
        &self.state
    }

    /// A turn, over no more than its footprint.
    pub fn turn<T>(
        &mut self,
        programmes: &Programmes,
        now_ms: i64,
        footprint: Footprint,
        decide: impl FnOnce(&mut Desk<'_>) -> T,
    ) -> T {
        let mut loaded = self.load(&footprint, Snapshot::default());
        let missing = loaded.missing();
        loaded = self.load(&missing, loaded);
        let mut desk = Desk::new(programmes, loaded, now_ms);
        let decided = decide(&mut desk);
        let turn = desk.finish();
        self.keep(&turn);
        decided
    }

    fn load(&self, footprint: &Footprint, mut loaded: Snapshot) -> Snapshot {
        let state = &self.state;
        loaded.heads.clone_from(&state.heads);
        loaded.books = state.books;

        let wallets = footprint.wallets.iter();
        let wallets = wallets.filter_map(|id| Some((id.clone(), state.wallets.get(id)?.clone())));
        loaded.wallets.extend(wallets);
        let keys = footprint.keys.iter();
        loaded.keys.extend(keys.filter_map(|id| Some((*id, state.keys.get(id)?.clone()))));
        let references = footprint.references.iter();
        let references =
            references.filter_map(|id| Some((id.clone(), state.references.get(id)?.clone())));
        loaded.references.extend(references);
        let budgets = footprint.budgets.iter();
        let budgets = budgets.filter_map(|id| Some((id.clone(), *state.budgets.get(id)?)));
        loaded.budgets.extend(budgets);
        loaded
    }

    /// Keeps what a turn decided, as a store does.
    fn keep(&mut self, turn: &Turn) {
        for entry in &turn.entries {
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            let read = Arc::new(Entry::decode(&bytes).expect("an entry is read as written"));
            assert_eq!(read, *entry, "an entry is read as written");
            assert!(self.recovered.apply(&read), "an entry is new");
            assert!(!self.recovered.apply(&read), "an entry is applied once");

            if let Some(key) = &entry.key {
                self.state.keys.insert(key.hash, read.clone());
            }
            let head = self.state.heads.iter_mut().find(|head| head.book == entry.book);
            let head = head.expect("a ledger has all its books");
            head.sequence = entry.sequence;
            head.recorded_ms = entry.recorded_ms;
            self.entries.push(read);
        }

        for (id, wallet) in &turn.wallets {
            let mut bytes = Vec::new();
            wallet.encode(&mut bytes);
            let read = Wallet::decode(&bytes).expect("a wallet is read as written");
            assert_eq!(read, *wallet, "a wallet is read as written");
            self.state.wallets.insert(id.clone(), read);
        }
        for (id, earned) in &turn.references {
            let mut bytes = Vec::new();
            earned.encode(&mut bytes);
            let read = Earned::decode(&bytes).expect("a record is read as written");
            self.state.references.insert(id.clone(), read);
        }
        for (id, amount) in &turn.moved {
            *self.state.totals.0.entry(id.clone()).or_default() += amount;
        }
        self.state.budgets.extend(turn.budgets.iter().cloned());
        self.check();
    }

    /// Checks what must be true of a whole ledger.
    pub fn check(&self) {
        assert_eq!(self.state.wallets, self.recovered.wallets, "wallets follow from entries");
        assert_eq!(self.state.references, self.recovered.references, "so do references");
        assert_eq!(self.state.totals, self.recovered.totals, "so do sums");
        assert_eq!(self.state.budgets, self.recovered.budgets, "so do budgets");
        assert_eq!(self.state.keys, self.recovered.keys, "so do keys");

        // What programmes and members have is nothing in all (I2), in each book.
        let mut sums: HashMap<(u16, &str), i128> = HashMap::new();
        for (id, sum) in &self.state.totals.0 {
            *sums.entry((id.book, &id.programme)).or_default() += sum;
        }
        assert!(sums.values().all(|sum| *sum == 0), "sums are balanced (I2): {sums:?}");
        assert_eq!(self.totals_of_wallets(), self.stored_totals_of_wallets(), "(I2, I7)");
        for (id, wallet) in &self.state.wallets {
            assert!(wallet.available() >= 0, "{id} has no less than nothing (I3)");
        }
    }

    /// The sums of wallets, from the wallets.
    fn totals_of_wallets(&self) -> Map<TotalId, i128> {
        let mut totals = Totals::default();
        for (id, wallet) in &self.state.wallets {
            let book = id.book(self.state.books);
            let mut add = |total: Total, points: i64| {
                let id = TotalId { book, programme: id.programme.clone(), total };
                *totals.0.entry(id).or_default() += i128::from(points);
            };
            for lot in &wallet.lots {
                let day = match lot.expiry {
                    Expiry::Rolling => wallet.rolling_expires,
                    expiry => wallet.date_of(expiry),
                };
                add(Total::Outstanding(day.map(|day| day.month())), lot.points);
            }
            add(Total::Pending, wallet.pending_points());
            add(Total::Held, wallet.held_points());
            add(Total::Arrears, -wallet.arrears);
        }
        totals.0.retain(|_, sum| *sum != 0);
        totals.0
    }

    fn stored_totals_of_wallets(&self) -> Map<TotalId, i128> {
        let of_wallets = |(id, sum): &(&TotalId, &i128)| id.total.is_of_wallets() && **sum != 0;
        let totals = self.state.totals.0.iter().filter(of_wallets);
        totals.map(|(id, sum)| (id.clone(), *sum)).collect()
    }

    /// Nothing that is due before this time is left undone (I9).
    pub fn check_settled(&self, programmes: &Programmes, now_ms: i64, ids: &[WalletId]) {
        let known: HashSet<&WalletId> = self.state.wallets.keys().collect();
        for id in ids.iter().filter(|id| known.contains(id)) {
            let programme = programmes.get(&id.programme).expect("the programme is in force");
            let (_, entries) = self.state.wallets[id].settled(id, now_ms, programme);
            assert!(entries.is_empty(), "{id} is settled (I9): {entries:?}");
        }
    }
}

impl ScriptLedger for Replica {
    fn execute(
        &mut self,
        programmes: &Programmes,
        now_ms: i64,
        commands: &[Command],
    ) -> Vec<Answer> {
        let footprint = Footprint::of(commands, programmes, now_ms);
        let answers = self.turn(programmes, now_ms, footprint, |desk| {
            commands.iter().map(|command| desk.execute(command)).collect()
        });
        let ids: Vec<WalletId> = commands.iter().map(Command::wallet).collect();
        self.check_settled(programmes, now_ms, &ids);
        answers
    }

    fn settle(&mut self, programmes: &Programmes, now_ms: i64, id: &WalletId) {
        let mut footprint = Footprint::default();
        footprint.wallet(id.clone());
        self.turn(programmes, now_ms, footprint, |desk| desk.settle(id));
        self.check_settled(programmes, now_ms, std::slice::from_ref(id));
    }

    fn wallet(&mut self, id: &WalletId) -> Wallet {
        self.state.wallets.get(id).cloned().unwrap_or_default()
    }

    fn total(&mut self, programme: &str, total: &Total) -> i128 {
        let of_total = |(id, sum): (&TotalId, &i128)| {
            (&*id.programme == programme && id.total == *total).then_some(*sum)
        };
        self.state.totals.0.iter().filter_map(of_total).sum()
    }
}
