//! What members have, and why. Reads are settled to the time of the clock; nothing is written.

mod allowances;
mod balance;
mod explanation;

pub use allowances::{Allowance, Allowances};
pub use balance::{Balance, BalanceLot, StatementRow};
pub use explanation::{Explanation, LeftPoints, SpentPoints};

use crate::deps::Deps;
use crate::error::Error;
use crate::limits::{BALANCES_LEN_MAX, EXPLAIN_ROWS_MAX, STATEMENT_LEN_MAX};
use crate::shared::Shared;
use raingauge_core::code::{Code, Refusal};
use raingauge_points::{
    Day, Entry, Key, Kind, Liability, Programme, Total, Wallet, WalletId, explain,
};
use raingauge_ports::clock::Clock;
use raingauge_ports::points::BookReader;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was exchanged with a partner, from the side of the programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub programme: String,
    pub partner: String,
    /// Points that members gave to the partner, less those that came from there, in units of
    /// 10^-decimals of the programme.
    pub balance: i128,
    /// The same by the day on which it was exchanged, as far as entries have it.
    pub days: BTreeMap<Day, i128>,
}

/// Reads of members.
#[derive(Clone)]
pub struct Members {
    reader: Arc<dyn BookReader>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

impl Members {
    pub(crate) fn new(deps: &Deps, shared: Arc<Shared>) -> Self {
        Self { reader: Arc::clone(&deps.reader), clock: Arc::clone(&deps.clock), shared }
    }

    /// Balances now, as they were at an earlier time, or as they will be at a later one if nothing
    /// else happens, in the order of the ids. A member that was never seen has nothing.
    pub async fn balances(
        &self,
        ids: Vec<WalletId>,
        at_ms: Option<i64>,
    ) -> Result<Vec<Result<Balance, Refusal>>, Error> {
        if ids.len() > BALANCES_LEN_MAX {
            let detail = format!("at most {BALANCES_LEN_MAX} members are read at once");
            return Err(Error::TooLarge(detail));
        }
        let now_ms = self.clock.now_ms();
        let at_ms = at_ms.unwrap_or(now_ms);
        if at_ms < now_ms {
            let mut balances = Vec::new();
            for id in ids {
                balances.push(self.balance_at(id, at_ms).await?);
            }
            return Ok(balances);
        }

        let wallets = self.reader.wallets(ids.clone()).await?;
        let balance = |(id, wallet): (WalletId, Option<Wallet>)| {
            let programme = self.programme(&id.programme)?;
            let (settled, _) = wallet.unwrap_or_default().settled(&id, at_ms, &programme);
            Ok(Balance::of(id, &settled, &programme))
        };
        Ok(ids.into_iter().zip(wallets).map(balance).collect())
    }

    /// The balance at a time in the past, made of the entries until then.
    async fn balance_at(
        &self,
        id: WalletId,
        at_ms: i64,
    ) -> Result<Result<Balance, Refusal>, Error> {
        let programme = match self.programme(&id.programme) {
            Ok(programme) => programme,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(last) = self.reader.as_of(id.clone(), at_ms).await? else {
            return Ok(Ok(Balance::of(id, &Wallet::default(), &programme)));
        };
        if last.member_sequence > EXPLAIN_ROWS_MAX as u64 {
            let detail = format!(
                "the wallet had {} entries by then, and at most {EXPLAIN_ROWS_MAX} are read: the \
                 statement has its balance after each",
                last.member_sequence
            );
            return Ok(Err(Refusal::new(Code::LimitOutOfRange, detail)));
        }

        let entries = self.entries(&id, last.member_sequence).await?;
        let mut wallet = Wallet::default();
        entries.iter().for_each(|entry| wallet.apply(entry));
        let (settled, _) = wallet.settled(&id, at_ms, &programme);
        Ok(Ok(Balance::of(id, &settled, &programme)))
    }

    /// At most `len_max` rows of a statement, newest first, from the one before `before` on. What
    /// is due and not yet written comes first, without a sequence, and in addition: a caller goes
    /// on behind the last row, which has one.
    pub async fn statement(
        &self,
        id: &WalletId,
        before: Option<u64>,
        len_max: usize,
    ) -> Result<Vec<StatementRow>, Error> {
        let len_max = len_max.min(STATEMENT_LEN_MAX);
        let mut rows = Vec::new();
        let mut before = before;
        if before.is_none() {
            let wallet = self.wallet(id).await?;
            // What is written between the two reads is in the first one, as due.
            before = Some(wallet.sequence + 1);
            if let Ok(programme) = self.programme(&id.programme) {
                let (_, due) = wallet.settled(id, self.clock.now_ms(), &programme);
                rows.extend(due.iter().rev().map(StatementRow::of));
            }
        }

        let entries = self.reader.statement(id.clone(), before, len_max).await?;
        rows.extend(entries.iter().map(|entry| StatementRow::of(entry)));
        Ok(rows)
    }

    /// An entry by its number in its book.
    pub async fn entry(
        &self,
        programme: &str,
        book: u16,
        sequence: u64,
    ) -> Result<Option<Arc<Entry>>, Error> {
        let found = self.reader.entry(book, sequence).await?;
        Ok(found.filter(|entry| &*entry.programme == programme))
    }

    /// The entries of its member that a command with a key of a source has made.
    pub async fn by_key(
        &self,
        programme: &str,
        source: &str,
        key: &str,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        let found = self.reader.by_key(Key::of(programme, source, key)).await?;
        // Hashes of two keys may meet.
        let is_it = |entry: &Arc<Entry>| {
            entry.key.as_ref().is_some_and(|own| &*own.text == key && &*own.source == source)
        };
        match found.filter(is_it) {
            Some(first) => self.of_command(&first).await,
            None => Ok(Vec::new()),
        }
    }

    /// The entries of its member that the command of `first` made, which carries the key of the
    /// command.
    pub async fn of_command(&self, first: &Arc<Entry>) -> Result<Vec<Arc<Entry>>, Error> {
        let mut entries = vec![Arc::clone(first)];
        let Some(id) = first.wallet() else { return Ok(entries) };
        loop {
            let behind = first.member_sequence + entries.len() as u64;
            let mut newest = self.reader.statement(id.clone(), Some(behind + 1), 1).await?;
            // What another command made has a key, unless it came from another member; and what
            // became due later has a later time.
            let is_next = |next: &Arc<Entry>| {
                next.member_sequence == behind
                    && next.key.is_none()
                    && next.kind != Kind::TransferIn
                    && next.recorded_ms == first.recorded_ms
            };
            match newest.pop().filter(is_next) {
                Some(next) => entries.push(next),
                None => return Ok(entries),
            }
        }
    }

    /// Why an entry has its points, in a line. `None` when its programme is not in force.
    pub fn explain_entry(&self, entry: &Entry) -> Option<String> {
        let snapshot = self.shared.snapshot();
        let programme = snapshot.programme(&entry.programme)?;
        Some(explain::of_entry(entry, programme))
    }

    /// What the points of a member come from, and what took the others.
    pub async fn explain(&self, id: &WalletId) -> Result<Result<Explanation, Refusal>, Error> {
        let programme = match self.programme(&id.programme) {
            Ok(programme) => programme,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let wallet = self.wallet(id).await?;
        let (settled, due) = wallet.settled(id, self.clock.now_ms(), &programme);
        let mut entries = self.entries(id, wallet.sequence).await?;
        let is_whole = entries.len() as u64 == wallet.sequence;
        entries.extend(due.into_iter().map(Arc::new));
        let balance = Balance::of(id.clone(), &settled, &programme);
        Ok(Ok(Explanation::of(balance, settled.rolling_expires, entries, is_whole, &programme)))
    }

    /// What is owed to the members of a programme, by the month in which it expires.
    pub async fn liability(&self, programme: &str) -> Result<Result<Liability, Refusal>, Error> {
        if let Err(refusal) = self.programme(programme) {
            return Ok(Err(refusal));
        }
        let totals = self.reader.totals(programme.into()).await?;
        Ok(Ok(totals.liability(programme)))
    }

    /// What the budgets of a programme and the stocks of its rewards have left.
    pub async fn allowances(&self, programme: &str) -> Result<Result<Allowances, Refusal>, Error> {
        let programme = match self.programme(programme) {
            Ok(programme) => programme,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (mut allowances, ids) = Allowances::unused(&programme);
        allowances.set_used(self.reader.budgets(ids).await?);
        Ok(Ok(allowances))
    }

    /// What is to be settled with a partner.
    pub async fn settlement(&self, programme: &str, partner: &str) -> Result<Settlement, Error> {
        let totals = self.reader.totals(programme.into()).await?;
        let mut balance = 0;
        let mut days = BTreeMap::new();
        for (id, points) in &totals.0 {
            match &id.total {
                Total::Partner(name, day) if **name == *partner => {
                    balance += points;
                    day.inspect(|day| *days.entry(*day).or_default() += points);
                }
                _ => {}
            }
        }
        Ok(Settlement {
            programme: programme.to_owned(),
            partner: partner.to_owned(),
            balance,
            days,
        })
    }

    fn programme(&self, name: &str) -> Result<Arc<Programme>, Refusal> {
        let snapshot = self.shared.snapshot();
        let unknown = || {
            let detail = format!("there is no programme {name}");
            Refusal::new(Code::ProgrammeUnknown, detail)
        };
        snapshot.programme(name).cloned().ok_or_else(unknown)
    }

    async fn wallet(&self, id: &WalletId) -> Result<Wallet, Error> {
        let mut wallets = self.reader.wallets(vec![id.clone()]).await?;
        Ok(wallets.pop().flatten().unwrap_or_default())
    }

    /// The last entries of a wallet up to a sequence, oldest first, at most
    /// [`EXPLAIN_ROWS_MAX`].
    async fn entries(&self, id: &WalletId, through: u64) -> Result<Vec<Arc<Entry>>, Error> {
        let mut newest_first = Vec::new();
        let mut before = through + 1;
        while before > 1 && newest_first.len() < EXPLAIN_ROWS_MAX {
            let read = self.reader.statement(id.clone(), Some(before), STATEMENT_LEN_MAX).await?;
            let Some(last) = read.last() else { break };
            before = last.member_sequence;
            newest_first.extend(read);
        }
        newest_first.reverse();
        Ok(newest_first)
    }
}
