//! The ports of books over the statements.

use super::Books;
use super::load::{BUDGET, BY_KEY, WALLETS, named, wallet_searches};
use super::rows::{TotalRow, bytes, entry_of, number, text_of, total_of, wallet_of};
use crate::database::{Change as _, Database, Statement};
use raingauge_points::{
    BudgetId, Entry, Footprint, Key, Points, Snapshot, Totals, Turn, Wallet, WalletId,
};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{self, BookReader, DueWallet, Error, FoundEntry, Head};
use std::collections::HashMap;
use std::sync::Arc;

/// Most entries of one statement that reads them in order.
const ENTRIES_MAX: usize = 4_096;
/// Fewest bytes of a usual entry: they decide how many entries are asked for.
const ENTRY_LEN: usize = 128;

const DUE: &str = "SELECT due_hour, programme, member FROM points_wallets
    WHERE book = ? AND due_hour <= ? ORDER BY due_hour, programme, member LIMIT ?";
/// Later hours first, then what is behind a wallet in its own hour: a condition that an index can
/// follow from one place on.
const DUE_AFTER: &str = "SELECT due_hour, programme, member FROM points_wallets
    WHERE book = ? AND due_hour <= ? AND due_hour >= ?
    AND (due_hour > ? OR programme > ? OR (programme = ? AND member > ?))
    ORDER BY due_hour, programme, member LIMIT ?";
const READ: &str = "SELECT body FROM points_entries
    WHERE book = ? AND sequence >= ? ORDER BY sequence LIMIT ?";
const ENTRY: &str = "SELECT body FROM points_entries WHERE book = ? AND sequence = ?";
const STATEMENT: &str = "SELECT body FROM points_entries
    WHERE book = ? AND programme = ? AND member = ? AND member_sequence < ?
    ORDER BY member_sequence DESC LIMIT ?";
const AS_OF: &str = "SELECT body FROM points_entries
    WHERE book = ? AND programme = ? AND member = ? AND recorded_ms <= ?
    ORDER BY member_sequence DESC LIMIT 1";
const TOTALS: &str = "SELECT book, total, amount FROM points_totals
    WHERE book < ? AND programme = ?";
const PLACE: &str = "SELECT sequence FROM points_positions WHERE consumer = ? AND book = ?";
const PUT_PLACE: &str = "REPLACE INTO points_positions (consumer, book, sequence) VALUES (?, ?, ?)";

type WalletRow = (Vec<u8>, Vec<u8>);
type DueRow = (i64, Vec<u8>, Vec<u8>);

impl<D: Database> Books<D> {
    async fn entries(&self, statement: Statement) -> Result<Vec<Arc<Entry>>, Error> {
        let rows: Vec<(Vec<u8>,)> = self.database.rows(statement).await?;
        rows.iter().map(|(body,)| entry_of(body)).collect()
    }

    async fn due_now(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        let first = Statement::new(if after.is_some() { DUE_AFTER } else { DUE });
        let mut statement = first.with(i64::from(book)).with(i64::from(until_hour));
        if let Some(DueWallet { hour, wallet }) = after {
            let hour = i64::from(*hour);
            let programme = || bytes(&wallet.programme);
            statement = statement.with(hour).with(hour).with(programme()).with(programme());
            statement = statement.with(bytes(&wallet.member));
        }

        let rows: Vec<DueRow> = self.database.rows(statement.with(len_max as i64)).await?;
        let due = |(hour, programme, member): DueRow| {
            let wallet = WalletId { programme: text_of(programme)?, member: text_of(member)? };
            Ok(DueWallet { hour: hour as u32, wallet })
        };
        rows.into_iter().map(due).collect()
    }

    async fn read_now(
        &self,
        book: u16,
        from: u64,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        let len_max = (bytes_max / ENTRY_LEN).clamp(1, ENTRIES_MAX);
        let statement = Statement::new(READ).with(i64::from(book)).with(number(from));
        let rows: Vec<(Vec<u8>,)> = self.database.rows(statement.with(len_max as i64)).await?;

        let mut entries = Vec::with_capacity(rows.len());
        let mut left = bytes_max;
        for (body,) in rows {
            if body.len() > left && !entries.is_empty() {
                break;
            }
            left = left.saturating_sub(body.len());
            entries.push(entry_of(&body)?);
        }
        Ok(entries)
    }

    async fn wallets_now(&self, ids: &[WalletId]) -> Result<Vec<Option<Wallet>>, Error> {
        let searches = wallet_searches(&WALLETS, self.count, ids);
        let mut found = HashMap::with_capacity(ids.len());
        if let [(programme, statements)] = &searches[..]
            && let [statement] = &statements[..]
        {
            let rows: Vec<WalletRow> = self.database.rows(statement.clone()).await?;
            add_wallets(programme, rows, &mut found)?;
            return Ok(ids.iter().map(|id| found.get(id).cloned()).collect());
        }

        // A turn may change several of them, so all are read as they were at one moment.
        let mut change = self.database.begin(None).await?;
        for (programme, statements) in searches {
            for statement in statements {
                let rows: Vec<WalletRow> = change.rows(statement).await?;
                add_wallets(&programme, rows, &mut found)?;
            }
        }
        change.give_up().await;
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    async fn by_key_now(&self, key: Key) -> Result<FoundEntry, Error> {
        let mut found = None;
        for statement in BY_KEY.finding(&[], &[vec![key.to_bytes().to_vec().into()]]) {
            let rows: Vec<(Vec<u8>, Vec<u8>)> = self.database.rows(statement).await?;
            if let Some((_, body)) = rows.first() {
                found = Some(entry_of(body)?);
            }
        }
        Ok(found)
    }

    async fn totals_now(&self, programme: Arc<str>) -> Result<Totals, Error> {
        let statement = Statement::new(TOTALS).with(i64::from(self.count)).with(bytes(&programme));
        let rows: Vec<TotalRow> = self.database.rows(statement).await?;
        let totals = rows.into_iter().map(|row| total_of(&programme, row));
        Ok(Totals(totals.collect::<Result<_, Error>>()?))
    }

    async fn budgets_now(&self, ids: &[BudgetId]) -> Result<Vec<Points>, Error> {
        let mut used = Vec::with_capacity(ids.len());
        let mut change = self.database.begin(None).await?;
        for id in ids {
            let statement = named(BUDGET, &id.programme, &id.name);
            let rows: Vec<(i64,)> = change.rows(statement).await?;
            used.push(rows.first().map_or(0, |(used,)| *used));
        }
        change.give_up().await;
        Ok(used)
    }

    async fn place_now(&self, consumer: &str, book: u16) -> Result<u64, Error> {
        let statement = Statement::new(PLACE).with(consumer).with(i64::from(book));
        let rows: Vec<(i64,)> = self.database.rows(statement).await?;
        Ok(rows.first().map_or(0, |(sequence,)| *sequence as u64))
    }

    async fn set_place_now(&self, consumer: &str, book: u16, sequence: u64) -> Result<(), Error> {
        let statement = Statement::new(PUT_PLACE).with(consumer).with(i64::from(book));
        Ok(self.database.run(statement.with(number(sequence))).await?)
    }

    /// The statement of a member's entries, up to its own conditions.
    fn of_member(&self, text: &'static str, id: &WalletId) -> Statement {
        let statement = Statement::new(text).with(i64::from(id.book(self.count)));
        statement.with(bytes(&id.programme)).with(bytes(&id.member))
    }
}

fn add_wallets(
    programme: &Arc<str>,
    rows: Vec<WalletRow>,
    found: &mut HashMap<WalletId, Wallet>,
) -> Result<(), Error> {
    for (member, record) in rows {
        let id = WalletId { programme: Arc::clone(programme), member: text_of(member)? };
        let wallet = wallet_of(&id, &record)?;
        found.insert(id, wallet);
    }
    Ok(())
}

impl<D: Database> points::Books for Books<D> {
    fn books(&self) -> u16 {
        self.count
    }

    fn head(&self, book: u16) -> Result<Head, Error> {
        let mut heads = self.runtime.block_on(self.heads(&[book]))?;
        heads.pop().ok_or_else(|| Error::Invalid(format!("there is no book {book}")))
    }

    fn turn(
        &self,
        books: &[u16],
        footprint: &Footprint,
        decide: &mut dyn FnMut(&[Head], Snapshot) -> Turn,
    ) -> Result<Vec<Head>, Error> {
        self.runtime.block_on(self.turn_now(books, footprint, decide))
    }

    fn due(
        &self,
        book: u16,
        until_hour: u32,
        after: Option<&DueWallet>,
        len_max: usize,
    ) -> Result<Vec<DueWallet>, Error> {
        self.runtime.block_on(self.due_now(book, until_hour, after, len_max))
    }

    fn read(&self, book: u16, from: u64, bytes_max: usize) -> Result<Vec<Arc<Entry>>, Error> {
        self.runtime.block_on(self.read_now(book, from, bytes_max))
    }

    fn place(&self, consumer: &str, book: u16) -> Result<u64, Error> {
        self.runtime.block_on(self.place_now(consumer, book))
    }

    fn set_place(&self, consumer: &str, book: u16, sequence: u64) -> Result<(), Error> {
        self.runtime.block_on(self.set_place_now(consumer, book, sequence))
    }
}

impl<D: Database> BookReader for Books<D> {
    fn wallets(&self, ids: Vec<WalletId>) -> BoxFuture<'_, Result<Vec<Option<Wallet>>, Error>> {
        Box::pin(async move { self.wallets_now(&ids).await })
    }

    fn statement(
        &self,
        id: WalletId,
        before: Option<u64>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, Error>> {
        let before = before.map_or(i64::MAX, |before| before.min(i64::MAX as u64) as i64);
        let statement = self.of_member(STATEMENT, &id).with(before).with(len_max as i64);
        Box::pin(self.entries(statement))
    }

    fn as_of(&self, id: WalletId, at_ms: i64) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        let statement = self.of_member(AS_OF, &id).with(at_ms);
        Box::pin(async move { Ok(self.entries(statement).await?.pop()) })
    }

    fn by_key(&self, key: Key) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        Box::pin(self.by_key_now(key))
    }

    fn entry(&self, book: u16, sequence: u64) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        let statement = Statement::new(ENTRY).with(i64::from(book)).with(number(sequence));
        Box::pin(async move { Ok(self.entries(statement).await?.pop()) })
    }

    fn totals(&self, programme: Arc<str>) -> BoxFuture<'_, Result<Totals, Error>> {
        Box::pin(self.totals_now(programme))
    }

    fn budgets(&self, ids: Vec<BudgetId>) -> BoxFuture<'_, Result<Vec<Points>, Error>> {
        Box::pin(async move { self.budgets_now(&ids).await })
    }
}
