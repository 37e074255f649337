//! The books as doors read them.

use super::place::Place;
use super::records::View as _;
use super::state::{self, malformed};
use super::{Inner, PointBooks, keys};
use crate::store::in_background;
use raingauge_points::{BudgetId, Entry, Key, Points, Totals, Wallet, WalletId};
use raingauge_ports::BoxFuture;
use raingauge_ports::points::{BookReader, Error, FoundEntry};
use std::ops::ControlFlow;
use std::sync::Arc;

impl Inner {
    /// Entries of a wallet before a member sequence, newest first.
    pub(super) fn statement(
        &self,
        id: &WalletId,
        before: Option<u64>,
        len_max: usize,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        let range = keys::rows_before(id, before.unwrap_or(u64::MAX));
        let mut places = Vec::new();
        if len_max == 0 || range.start >= range.end {
            return Ok(Vec::new());
        }

        self.records.scan(range, true, &mut |_, value| {
            places.push(Place::from_bytes(value).ok_or_else(|| malformed("a statement row"))?);
            let is_enough = places.len() == len_max;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        places.iter().map(|place| self.pages.entry_at(place)).collect()
    }

    /// The entry of a wallet with a member sequence, which is there.
    fn row(&self, id: &WalletId, member_sequence: u64) -> Result<Arc<Entry>, Error> {
        let row = self.records.get(&keys::row(id, member_sequence))?;
        let place = row.as_deref().and_then(Place::from_bytes);
        self.pages.entry_at(&place.ok_or_else(|| malformed("a statement row"))?)
    }

    /// The last entry of a wallet at or before a time: a search, since times never go back.
    pub(super) fn as_of(&self, id: &WalletId, at_ms: i64) -> Result<FoundEntry, Error> {
        let Some(newest) = self.statement(id, None, 1)?.pop() else {
            return Ok(None);
        };
        let mut found = None;
        let mut from = 1;
        let mut to = newest.member_sequence;

        while from <= to {
            let middle = from.midpoint(to);
            let entry = self.row(id, middle)?;
            if entry.recorded_ms <= at_ms {
                from = middle + 1;
                found = Some(entry);
            } else {
                to = middle - 1;
            }
        }
        Ok(found)
    }
}

impl PointBooks {
    /// Runs blocking work outside the asynchronous threads.
    fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        in_background(&self.inner, work)
    }
}

impl BookReader for PointBooks {
    fn wallets(&self, ids: Vec<WalletId>) -> BoxFuture<'_, Result<Vec<Option<Wallet>>, Error>> {
        self.in_background(move |inner| state::wallets(&inner.records, &ids))
    }

    fn statement(
        &self,
        id: WalletId,
        before: Option<u64>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<Entry>>, Error>> {
        self.in_background(move |inner| inner.statement(&id, before, len_max))
    }

    fn as_of(&self, id: WalletId, at_ms: i64) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        self.in_background(move |inner| inner.as_of(&id, at_ms))
    }

    fn by_key(&self, key: Key) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        self.in_background(move |inner| state::entry_of_key(&*inner.records, &inner.pages, key))
    }

    fn entry(&self, book: u16, sequence: u64) -> BoxFuture<'_, Result<FoundEntry, Error>> {
        self.in_background(move |inner| match inner.check_book(book) {
            Ok(()) => inner.pages.entry(sequence),
            Err(_) => Ok(None),
        })
    }

    fn totals(&self, programme: Arc<str>) -> BoxFuture<'_, Result<Totals, Error>> {
        self.in_background(move |inner| state::totals(&*inner.records, &programme))
    }

    fn budgets(&self, ids: Vec<BudgetId>) -> BoxFuture<'_, Result<Vec<Points>, Error>> {
        self.in_background(move |inner| {
            let used = state::budgets(&inner.records, &ids)?;
            Ok(used.into_iter().map(Option::unwrap_or_default).collect())
        })
    }
}
