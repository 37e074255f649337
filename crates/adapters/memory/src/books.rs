//! The books of points in memory.

use parking_lot::Mutex;
use raingauge_points::{
    BookHead, BudgetId, Entry, Footprint, Key, Map, Points, Snapshot, TotalId, Totals, Turn,
    Wallet, WalletId,
};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{self, BookReader, DueWallet, EncodedTurn, Error, FoundEntry, Head};
use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;

pub struct Books {
    content: Mutex<Content>,
}

struct Content {
    heads: Vec<Head>,
    /// The entries of each book; the first has the sequence 1.
    journals: Vec<Vec<Arc<Entry>>>,
    /// All that follows from them.
    state: Snapshot,
    places: HashMap<(String, u16), u64>,
}

impl Books {
    /// Empty books, as many as are asked for.
    pub fn new(books: u16) -> Self {
        let head = |book| BookHead { book, sequence: 0, recorded_ms: 0 };
        let content = Content {
            heads: (0..books).map(Head::of_book).collect(),
            journals: vec![Vec::new(); usize::from(books)],
            state: Snapshot { heads: (0..books).map(head).collect(), books, ..Snapshot::default() },
            places: HashMap::new(),
        };
        Self { content: Mutex::new(content) }
    }
}

impl Content {
    fn head(&self, book: u16) -> Result<&Head, Error> {
        let head = self.heads.get(usize::from(book));
        head.ok_or_else(|| Error::Invalid(format!("there is no book {book}")))
    }

    fn heads_of(&self, books: &[u16]) -> Result<Vec<Head>, Error> {
        books.iter().map(|book| self.head(*book).cloned()).collect()
    }

    fn load(&self, books: &[u16], footprint: &Footprint) -> Snapshot {
        let mut snapshot = Snapshot {
            heads: self.state.heads.iter().filter(|it| books.contains(&it.book)).cloned().collect(),
            books: self.state.books,
            wallets: found(&footprint.wallets, &self.state.wallets),
            references: found(&footprint.references, &self.state.references),
            keys: found(&footprint.keys, &self.state.keys),
            totals: Totals::default(),
            budgets: found(&footprint.budgets, &self.state.budgets),
            engine_ms: None,
        };

        // References lead to their budgets.
        for _ in 0..2 {
            let missing = snapshot.missing();
            snapshot.references.extend(found(&missing.references, &self.state.references));
            snapshot.budgets.extend(found(&missing.budgets, &self.state.budgets));
        }
        snapshot
    }

    fn write(&mut self, turn: &Turn, encoded: EncodedTurn) -> Result<(), Error> {
        let is_known = |entry: &&Arc<Entry>| {
            entry.key.as_ref().is_some_and(|key| self.state.keys.contains_key(&key.hash))
        };
        if let Some(entry) = turn.entries.iter().find(is_known) {
            let why = format!("the key of entry {} is known already", entry.sequence);
            return Err(Error::Invalid(why));
        }

        for entry in &turn.entries {
            self.state.apply(entry);
            self.journals[usize::from(entry.book)].push(Arc::clone(entry));
        }
        self.check_values(turn);
        for head in encoded.heads {
            let book = usize::from(head.book);
            self.heads[book] = head;
        }

        // The log is one, whatever books its events belong to.
        let position = turn.position.unwrap_or(self.heads[0].position);
        self.heads.iter_mut().for_each(|head| head.position = position);
        Ok(())
    }

    /// What the desk computed is what follows from its entries, and all that they change.
    fn check_values(&self, turn: &Turn) {
        let changed = Footprint::of_entries(turn.entries.iter().map(|entry| &**entry));
        let wallets = turn.wallets.iter().map(|(id, _)| id);
        assert!(wallets.eq(&changed.wallets), "a turn has the wallets of its entries");
        let references = turn.references.iter().map(|(id, _)| id);
        assert!(references.eq(&changed.references), "a turn has the references of its entries");
        let budgets = turn.budgets.iter().map(|(id, _)| id);
        assert!(budgets.eq(&changed.budgets), "a turn has the budgets of its entries");

        let mut moved = Totals::default();
        turn.entries.iter().for_each(|entry| moved.apply(entry, |_, _| {}));
        let sums: Map<TotalId, i128> = turn.moved.iter().cloned().collect();
        assert_eq!(sums, moved.0, "a turn moves the sums of its entries");

        for (id, wallet) in &turn.wallets {
            assert_eq!(self.state.wallets.get(id), Some(wallet), "{id:?} follows from its entries");
        }
        for (id, earned) in &turn.references {
            assert_eq!(self.state.references.get(id), Some(earned), "{id:?} follows from them");
        }
        for (id, used) in &turn.budgets {
            assert_eq!(self.state.budgets.get(id), Some(used), "{id:?} follows from the entries");
        }
    }

    /// The entries of a wallet, oldest first.
    fn entries_of(&self, id: &WalletId) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let journal = &self.journals[usize::from(id.book(self.state.books))];
        journal.iter().filter(|entry| entry.wallet().as_ref() == Some(id))
    }
}

/// The values of those keys that are there.
fn found<K: Clone + Eq + std::hash::Hash, V: Clone>(keys: &[K], values: &Map<K, V>) -> Map<K, V> {
    let there = |key: &K| Some((key.clone(), values.get(key)?.clone()));
    keys.iter().filter_map(there).collect()
}

impl points::Books for Books {
    fn books(&self) -> u16 {
        self.content.lock().state.books
    }

    fn head(&self, book: u16) -> Result<Head, Error> {
        self.content.lock().head(book).cloned()
    }

    fn turn(
        &self,
        books: &[u16],
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Vec<Head>, Error> {
        let mut content = self.content.lock();
        let heads = content.heads_of(books)?;
        let turn = decide(&heads, content.load(books, footprint));
        let encoded = EncodedTurn::of(&heads, &turn)?;
        content.write(&turn, encoded)?;
        content.heads_of(books)
    }

    fn due(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        let content = self.content.lock();
        let books = content.state.books;
        let of_book = content.state.wallets.iter().filter(|(id, _)| id.book(books) == book);
        let due = of_book.filter_map(|(id, wallet)| {
            let hour = wallet.due_hour.filter(|hour| *hour <= until_hour)?;
            Some(DueWallet { hour, wallet: id.clone() })
        });

        let mut due: Vec<_> = due.filter(|due| after.is_none_or(|after| due > after)).collect();
        due.sort_unstable();
        due.truncate(len_max);
        Ok(due)
    }

    fn read(&self, book: u16, from: u64, bytes_max: usize) -> Result<Vec<Arc<Entry>>, Error> {
        let content = self.content.lock();
        content.head(book)?;
        let mut bytes = Vec::new();
        let rest = content.journals[usize::from(book)].iter().skip(from.max(1) as usize - 1);
        let fitting = rest.take_while(|entry| {
            let is_within = bytes.len() < bytes_max.max(1);
            entry.encode(&mut bytes);
            is_within
        });
        Ok(fitting.cloned().collect())
    }

    fn place(&self, consumer: &str, book: u16) -> Result<u64, Error> {
        let content = self.content.lock();
        Ok(content.places.get(&(consumer.to_owned(), book)).copied().unwrap_or(0))
    }

    fn set_place(&self, consumer: &str, book: u16, sequence: u64) -> Result<(), Error> {
        self.content.lock().places.insert((consumer.to_owned(), book), sequence);
        Ok(())
    }
}

fn done<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(ready(Ok(value)))
}

impl BookReader for Books {
    fn wallets(&self, ids: Vec<WalletId>) -> BoxFuture<'_, Result<Vec<Option<Wallet>>, Error>> {
        let content = self.content.lock();
        done(ids.iter().map(|id| content.state.wallets.get(id).cloned()).collect())
    }

    fn statement(
        &self,
        id: WalletId,
        before: Option<u64>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, Error>> {
        let content = self.content.lock();
        let is_before =
            |entry: &&Arc<Entry>| before.is_none_or(|before| entry.member_sequence < before);
        done(content.entries_of(&id).rev().filter(is_before).take(len_max).cloned().collect())
    }

    fn as_of(&self, id: WalletId, at_ms: i64) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        let content = self.content.lock();
        done(content.entries_of(&id).rev().find(|entry| entry.recorded_ms <= at_ms).cloned())
    }

    fn by_key(&self, key: Key) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        done(self.content.lock().state.keys.get(&key).cloned())
    }

    fn entry(&self, book: u16, sequence: u64) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        let content = self.content.lock();
        let journal = content.journals.get(usize::from(book));
        let place = sequence.checked_sub(1).map(|place| place as usize);
        done(journal.zip(place).and_then(|(journal, place)| journal.get(place)).cloned())
    }

    fn totals(&self, programme: Arc<str>) -> BoxFuture<'_, Result<Totals, Error>> {
        let content = self.content.lock();
        let sums = content.state.totals.0.iter().filter(|(id, _)| id.programme == programme);
        done(Totals(sums.map(|(id, sum)| (id.clone(), *sum)).collect()))
    }

    fn budgets(&self, ids: Vec<BudgetId>) -> BoxFuture<'_, Result<Vec<Points>, Error>> {
        let content = self.content.lock();
        done(ids.iter().map(|id| content.state.budgets.get(id).copied().unwrap_or(0)).collect())
    }
}

#[cfg(test)]
mod tests;
