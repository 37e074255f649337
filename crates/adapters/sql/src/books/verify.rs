//! Proves that the rows of books are what follows from their entries.
//!
//! ```text
//!   each book   entries by member ─▶ wallets, references, sums ─▶ their rows
//!               entries by number ─▶ hash, versions, keys      ─▶ the head, the rows of keys
//!   at the end  budgets, and how many rows there are
//! ```
//!
//! One transaction reads everything, so all of it is from one moment, and turns go on beside it. By
//! member, a wallet is complete before the next one begins: memory holds one page of entries, what
//! follows from it, and the references of one member.

use super::Books;
use super::load::{self, BUDGET, named, wallet_searches};
use super::many::Many;
use super::rows::{HeadRow, entry_of, heads_of, number, text_of, total_of, wallet_of};
use crate::database::{Change, Database, Statement, Unavailable};
use raingauge_points::{BookHead, BudgetId, Entry, Key, Map, Snapshot, TotalId, WalletId};
use raingauge_ports::points::{BookDifference, Error, Head, Verified, VerifiedBooks};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Entries that are read at once.
const PAGE_LEN: i64 = 512;

/// The index alone finds the page, and its entries are read afterwards.
const BY_MEMBER: &str = "SELECT e.sequence, e.programme, e.member, e.member_sequence,
        e.recorded_ms, e.body
    FROM (SELECT book, sequence FROM points_entries
        WHERE book = ? AND (programme > ? OR (programme = ? AND member > ?)
            OR (programme = ? AND member = ? AND member_sequence > ?))
        ORDER BY programme, member, member_sequence LIMIT ?) AS page
    JOIN points_entries e ON e.book = page.book AND e.sequence = page.sequence
    ORDER BY e.programme, e.member, e.member_sequence";
const BY_NUMBER: &str = "SELECT sequence, programme, member, member_sequence, recorded_ms, body
    FROM points_entries WHERE book = ? AND sequence > ? ORDER BY sequence LIMIT ?";
const WALLETS: Many = Many {
    before: "SELECT member, due_hour, record FROM points_wallets
        WHERE book = ? AND programme = ? AND member IN (",
    row: "?",
    after: ")",
};
const KEYS: Many = Many {
    before: "SELECT hash, book, sequence FROM points_keys WHERE hash IN (",
    row: "?",
    after: ")",
};
const TOTALS: &str = "SELECT programme, book, total, amount FROM points_totals WHERE book = ?";
const COUNT_WALLETS: &str = "SELECT COUNT(*) FROM points_wallets";
const COUNT_KEYS: &str = "SELECT COUNT(*) FROM points_keys";
const COUNT_REFERENCES: &str = "SELECT COUNT(*) FROM points_references";
/// A budget has a row as soon as it was looked at.
const COUNT_BUDGETS: &str = "SELECT COUNT(*) FROM points_budgets WHERE used <> 0";

/// Sequence, programme, member, member sequence, time, body.
type EntryRow = (i64, Vec<u8>, Vec<u8>, i64, i64, Vec<u8>);
/// Member, hour, wallet.
type WalletRow = (Vec<u8>, Option<i64>, Vec<u8>);
/// Programme, book, total, amount.
type ProgrammeTotalRow = (Vec<u8>, i64, Vec<u8>, String);

impl<D: Database> Books<D> {
    /// Computes all rows again from the entries, and compares, all as of one moment. Writes
    /// nothing. It is one call of the database: its timeout has to leave time for every entry.
    pub async fn verify(&self) -> Result<Verified, Error> {
        let mut change = self.database.begin(None).await?;
        let verified = Verification::new(&mut change, self.count).verify::<D>().await;
        change.give_up().await;
        match verified {
            Ok(verified) => Ok(Ok(verified)),
            Err(End::Difference(difference)) => Ok(Err(difference)),
            Err(End::Error(error)) => Err(error),
        }
    }
}

/// Why a verification ends early.
enum End {
    Difference(BookDifference),
    Error(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Unavailable> for End {
    fn from(unavailable: Unavailable) -> Self {
        Self::Error(unavailable.into())
    }
}

fn compare<T: PartialEq + Debug>(
    record: impl FnOnce() -> String,
    expected: Option<T>,
    found: Option<T>,
) -> Result<(), End> {
    if expected == found {
        return Ok(());
    }
    let [expected, found] = [expected, found].map(|value| value.map(|value| format!("{value:?}")));
    Err(End::Difference(BookDifference { record: record(), expected, found }))
}

/// A verification under way.
struct Verification<'a, C> {
    change: &'a mut C,
    /// How many books there are.
    count: u16,
    /// Wallets whose last entry was applied, with their references and the budgets that are theirs
    /// alone. The end of the page compares them.
    complete: Snapshot,
    /// What was used of the other budgets, in all books so far.
    budgets: Map<BudgetId, i64>,
    tally: Tally,
}

/// Rows that were found to be right.
#[derive(Default)]
struct Tally {
    wallets: u64,
    keys: u64,
    references: u64,
    budgets: u64,
    totals: u64,
}

impl<'a, C: Change> Verification<'a, C> {
    fn new(change: &'a mut C, count: u16) -> Self {
        let complete = Snapshot::default();
        Self { change, count, complete, budgets: Map::new(), tally: Tally::default() }
    }

    async fn verify<D: Database>(mut self) -> Result<VerifiedBooks, End> {
        let books: Vec<u16> = (0..self.count).collect();
        let heads: Vec<HeadRow> = self.change.rows(load::heads::<D>(&books)).await?;
        let mut verified = VerifiedBooks::default();
        for head in heads_of(heads, &books)? {
            self.compare_members(head.book).await?;
            self.compare_journal(&head).await?;

            verified.entries += head.sequence;
            verified.recorded_ms = verified.recorded_ms.max(head.recorded_ms);
            verified.position = verified.position.max(head.position);
            verified.chain = verified.chain.after(&head.chain.0);
        }

        let budgets = std::mem::take(&mut self.budgets);
        self.compare_budgets(budgets).await?;
        self.compare_counts().await?;
        let Tally { wallets, keys, references, budgets, totals } = self.tally;
        verified.records = wallets + keys + references + budgets + totals;
        Ok(verified)
    }

    /// Computes the wallets of a book and all that belongs to them, and compares.
    async fn compare_members(&mut self, book: u16) -> Result<(), End> {
        let mut snapshot = Snapshot { books: self.count, ..Snapshot::default() };
        let mut current: Option<WalletId> = None;
        let mut after = (Vec::new(), Vec::new(), 0);
        loop {
            let rows: Vec<EntryRow> = self.change.rows(by_member(book, &after)).await?;
            let Some((_, programme, member, member_sequence, ..)) = rows.last() else {
                break;
            };
            after = (programme.clone(), member.clone(), *member_sequence);

            for row in rows {
                let entry = entry_in(book, &row)?;
                // What concerns the programme alone changes its version, which the head has.
                let Some(id) = entry.wallet() else { continue };
                if current.as_ref() != Some(&id) {
                    self.finish(current.replace(id), &mut snapshot);
                }
                self.load_reversed(&entry, &mut snapshot).await?;
                apply(&mut snapshot, &entry)?;
            }
            snapshot.keys.clear();
            self.compare_complete().await?;
        }

        self.finish(current, &mut snapshot);
        self.compare_complete().await?;
        self.compare_totals(book, snapshot.totals.0).await
    }

    /// Takes over what follows from all entries of a wallet.
    fn finish(&mut self, id: Option<WalletId>, snapshot: &mut Snapshot) {
        let Some(id) = id else { return };
        self.complete.wallets.extend(snapshot.wallets.drain());
        self.complete.references.extend(snapshot.references.drain());
        for (budget, used) in snapshot.budgets.drain() {
            let is_own = budget.is_of_member(&id.member);
            let budgets = if is_own { &mut self.complete.budgets } else { &mut self.budgets };
            *budgets.entry(budget).or_default() += used;
        }
    }

    /// Loads the award that an entry reverses by its key, where it lies on an earlier page.
    async fn load_reversed(&mut self, entry: &Entry, snapshot: &mut Snapshot) -> Result<(), End> {
        let key = entry.changes.reversal.as_ref().and_then(|reversal| reversal.key);
        if let Some(key) = key.filter(|key| !snapshot.keys.contains_key(key)) {
            snapshot.keys.extend(load::keys(self.change, &[key]).await?);
        }
        Ok(())
    }

    async fn compare_complete(&mut self) -> Result<(), End> {
        let Snapshot { wallets, references, budgets, .. } = std::mem::take(&mut self.complete);
        let mut ids: Vec<WalletId> = wallets.keys().cloned().collect();
        ids.sort_unstable();
        let mut found = Map::with_capacity(ids.len());
        for (programme, statements) in wallet_searches(&WALLETS, self.count, &ids) {
            let rows: Vec<WalletRow> = load::rows(self.change, statements).await?;
            for (member, due_hour, record) in rows {
                let id = WalletId { programme: Arc::clone(&programme), member: text_of(member)? };
                let wallet = wallet_of(&id, &record)?;
                found.insert(id, (due_hour, wallet));
            }
        }
        for id in &ids {
            let wallet = &wallets[id];
            let expected = (wallet.due_hour.map(i64::from), wallet);
            let found = found.get(id).map(|(due_hour, wallet)| (*due_hour, wallet));
            compare(|| format!("the wallet of {id}"), Some(expected), found)?;
        }

        let ids: BTreeSet<_> = references.keys().cloned().collect();
        let found = load::references(self.change, ids).await?;
        for (id, earned) in &references {
            let name = || format!("the reference {:?} of {}", id.text, id.programme);
            let found = found.get(id);
            if !found.is_some_and(|found| earned.is_recorded_as(found)) {
                compare(name, Some(earned), found)?;
            }
        }

        self.tally.wallets += wallets.len() as u64;
        self.tally.references += references.len() as u64;
        self.compare_budgets(budgets).await
    }

    async fn compare_totals(&mut self, book: u16, totals: Map<TotalId, i128>) -> Result<(), End> {
        let statement = Statement::new(TOTALS).with(i64::from(book));
        let rows: Vec<ProgrammeTotalRow> = self.change.rows(statement).await?;
        let mut found = Map::with_capacity(rows.len());
        for (programme, book, total, amount) in rows {
            let (id, amount) = total_of(&text_of(programme)?, (book, total, amount))?;
            found.insert(id, amount);
        }

        let ids: BTreeSet<&TotalId> = totals.keys().chain(found.keys()).collect();
        for id in ids {
            let name = || format!("the sum {} of {} in book {book}", id.total, id.programme);
            // One that is absent is zero.
            let [expected, found] = [&totals, &found].map(|sums| sums.get(id).copied().or(Some(0)));
            compare(name, expected, found)?;
        }
        self.tally.totals += totals.len() as u64;
        Ok(())
    }

    async fn compare_budgets(&mut self, budgets: Map<BudgetId, i64>) -> Result<(), End> {
        for (id, used) in budgets {
            let statement = named(BUDGET, &id.programme, &id.name);
            let rows: Vec<(i64,)> = self.change.rows(statement).await?;
            let found = rows.first().map(|(used,)| *used);
            compare(|| format!("the budget {} of {}", id.name, id.programme), Some(used), found)?;
            self.tally.budgets += u64::from(used != 0);
        }
        Ok(())
    }

    /// Follows the entries of a book in their order, up to its head.
    async fn compare_journal(&mut self, stored: &Head) -> Result<(), End> {
        let book = stored.book;
        let mut head = Head { position: stored.position, ..Head::of_book(book) };
        loop {
            let statement = Statement::new(BY_NUMBER).with(i64::from(book));
            let statement = statement.with(number(head.sequence)).with(PAGE_LEN);
            let rows: Vec<EntryRow> = self.change.rows(statement).await?;
            if rows.is_empty() {
                break;
            }

            let mut keys = Vec::new();
            for row in rows {
                let entry = entry_in(book, &row)?;
                let next = head.sequence + 1;
                let name = || format!("the entry behind entry {} of book {book}", head.sequence);
                compare(name, Some(next), Some(entry.sequence))?;
                head.apply(&entry, &row.5);
                keys.extend(entry.key.as_ref().map(|key| (key.hash, entry.sequence)));
            }
            self.compare_keys(book, &keys).await?;
        }
        compare(|| format!("the head of book {book}"), Some(&head), Some(stored))
    }

    async fn compare_keys(&mut self, book: u16, keys: &[(Key, u64)]) -> Result<(), End> {
        let hash = |key: &Key| key.to_bytes().to_vec();
        let wanted: Vec<_> = keys.iter().map(|(key, _)| vec![hash(key).into()]).collect();
        let rows: Vec<(Vec<u8>, i64, i64)> =
            load::rows(self.change, KEYS.finding(&[], &wanted)).await?;
        let found: Map<Vec<u8>, (i64, i64)> =
            rows.into_iter().map(|(hash, book, sequence)| (hash, (book, sequence))).collect();

        for (key, sequence) in keys {
            let name = || format!("the key {key} of entry {sequence} in book {book}");
            let place = (i64::from(book), *sequence as i64);
            compare(name, Some(place), found.get(&hash(key)).copied())?;
        }
        self.tally.keys += keys.len() as u64;
        Ok(())
    }

    /// Proves that there are no rows but those that were compared.
    async fn compare_counts(&mut self) -> Result<(), End> {
        let Tally { wallets, keys, references, budgets, .. } = self.tally;
        for (name, statement, count) in [
            ("wallets", COUNT_WALLETS, wallets),
            ("keys", COUNT_KEYS, keys),
            ("references", COUNT_REFERENCES, references),
            ("budgets", COUNT_BUDGETS, budgets),
        ] {
            let rows: Vec<(i64,)> = self.change.rows(Statement::new(statement)).await?;
            let found = rows.first().map(|(count,)| *count as u64);
            compare(|| format!("the number of {name}"), Some(count), found)?;
        }
        Ok(())
    }
}

/// The next page behind a programme, a member and a member sequence.
fn by_member(book: u16, after: &(Vec<u8>, Vec<u8>, i64)) -> Statement {
    let (programme, member, member_sequence) = after;
    let [programme, member] = [programme, member].map(|name| || name.clone());
    let statement = Statement::new(BY_MEMBER).with(i64::from(book)).with(programme());
    let statement = statement.with(programme()).with(member());
    let statement = statement.with(programme()).with(member()).with(*member_sequence);
    statement.with(PAGE_LEN)
}

/// Decodes the entry of a row, whose columns have to be what it says.
fn entry_in(book: u16, row: &EntryRow) -> Result<Arc<Entry>, End> {
    let (sequence, programme, member, member_sequence, recorded_ms, body) = row;
    let name = || format!("entry {sequence} of book {book}");
    let damaged = |error: Error| Error::Corrupt(format!("{}: {error}", name()));
    let entry = entry_of(body).map_err(damaged)?;

    let text = String::from_utf8_lossy;
    let of_member = entry.member.as_deref().unwrap_or_default();
    let expected = (
        (entry.book, entry.sequence as i64, entry.recorded_ms),
        (text(entry.programme.as_bytes()), text(of_member.as_bytes())),
        entry.member_sequence as i64,
    );
    let found =
        ((book, *sequence, *recorded_ms), (text(programme), text(member)), *member_sequence);
    compare(name, Some(expected), Some(found))?;
    Ok(entry)
}

/// Applies the next entry of a wallet. Its place in the book is proved elsewhere.
fn apply(snapshot: &mut Snapshot, entry: &Arc<Entry>) -> Result<(), Error> {
    let Entry { book, sequence, recorded_ms, .. } = **entry;
    snapshot.heads = vec![BookHead { book, sequence: sequence.saturating_sub(1), recorded_ms }];

    // What must always be true is asserted. Here its breach is the finding.
    let applied = catch_unwind(AssertUnwindSafe(|| snapshot.apply(entry)));
    applied.map(drop).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let why = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        let why = format!("entry {sequence} of book {book} contradicts those before it: {why}");
        Error::Corrupt(why)
    })
}
