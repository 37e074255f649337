//! Locks and loads what a turn is decided on.

use super::many::Many;
use super::rows::{
    HeadRow, TotalRow, bytes, earned_of, entry_of, heads_of, text_of, total_of, wallet_of,
};
use crate::database::{Change, Database, Row, Statement, Unavailable, Value, Written};
use raingauge_points::{
    BookHead, BudgetId, Earned, Footprint, Key, Map, ReferenceId, Snapshot, TotalId, Totals,
    Wallet, WalletId,
};
use raingauge_ports::points::{Error, Head};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A change of the row locks it, and no other lock of a head may be taken out of order.
const LOCK_HEAD: &str = "UPDATE points_heads SET turns = turns + 1 WHERE book = ?";
pub const WALLETS: Many = Many {
    before: "SELECT member, record FROM points_wallets
        WHERE book = ? AND programme = ? AND member IN (",
    row: "?",
    after: ")",
};
pub const BY_KEY: Many = Many {
    before: "SELECT k.hash, e.body FROM points_keys k
        JOIN points_entries e ON e.book = k.book AND e.sequence = k.sequence WHERE k.hash IN (",
    row: "?",
    after: ")",
};
const REFERENCES: Many = Many {
    before: "SELECT reference, record FROM points_references
        WHERE programme = ? AND reference IN (",
    row: "?",
    after: ")",
};
const TOTALS: Many = Many {
    before: "SELECT book, total, amount FROM points_totals
        WHERE book = ? AND programme = ? AND total IN (",
    row: "?",
    after: ")",
};
pub const BUDGET: &str = "SELECT used FROM points_budgets WHERE programme = ? AND name = ?";

/// What a turn is decided on.
pub struct Grounds {
    /// In the order of the books of the turn.
    pub heads: Vec<Head>,
    pub snapshot: Snapshot,
    pub stored: StoredRows,
}

/// What of a turn's rows is there already.
pub struct StoredRows {
    /// The keys of the footprint that no entry has.
    pub free_keys: HashSet<Key>,
    pub references: HashSet<ReferenceId>,
}

/// Locks the heads and budgets of a turn in the order that all turns keep, and loads its footprint.
/// The first read follows the locks of the heads, so it sees everything that was committed before.
/// `None` when the locks of two turns crossed.
///
/// `wanted` are the budgets to lock. Those that turn out to be needed are added: their locks come
/// late, behind the first read, where a database may refuse a row that another turn has changed
/// since. The next attempt locks them in time.
pub async fn grounds<D: Database>(
    change: &mut D::Change<'_>,
    count: u16,
    books: &[u16],
    footprint: &Footprint,
    wanted: &mut BTreeSet<BudgetId>,
) -> Result<Option<Grounds>, Error> {
    if !lock_heads(change, books).await? {
        return Ok(None);
    }
    let Some(budgets) = budgets::<D>(change, wanted).await? else {
        return Ok(None);
    };

    let heads: Vec<HeadRow> = change.rows(self::heads::<D>(books)).await?;
    let engine_ms = heads.first().and_then(|(.., now_ms)| *now_ms);
    let heads = heads_of(heads, books)?;
    let wallets = wallets(change, count, &footprint.wallets).await?;
    let keys = keys(change, &footprint.keys).await?;

    // A repeated command is answered from its entry, and from what its reference has earned.
    let of_keys = keys.values().filter_map(|entry| entry.reference_id());
    let named: BTreeSet<ReferenceId> =
        footprint.references.iter().cloned().chain(of_keys).collect();
    let references = references(change, named).await?;
    let is_free = |key: &&Key| !keys.contains_key(*key);
    let stored = StoredRows {
        free_keys: footprint.keys.iter().filter(is_free).copied().collect(),
        references: references.keys().cloned().collect(),
    };

    let mut snapshot = Snapshot {
        heads: heads.iter().map(book_head).collect(),
        books: count,
        wallets,
        keys,
        references,
        budgets,
        engine_ms,
        ..Snapshot::default()
    };

    // What a reversal gives back to is known only now.
    let missing: BTreeSet<BudgetId> = snapshot.missing().budgets.into_iter().collect();
    wanted.extend(missing.iter().cloned());
    let Some(given_back) = self::budgets::<D>(change, &missing).await? else {
        return Ok(None);
    };
    snapshot.budgets.extend(given_back);
    Ok(Some(Grounds { heads, snapshot, stored }))
}

/// Finds the heads of books.
pub fn heads<D: Database>(books: &[u16]) -> Statement {
    let places = vec!["?"; books.len()].join(",");
    let text = format!("{} WHERE book IN ({places})", D::POINTS.heads);
    books.iter().fold(Statement::composed(text), |statement, book| statement.with(i64::from(*book)))
}

/// Returns whether this turn alone may write to its books now.
async fn lock_heads(change: &mut impl Change, books: &[u16]) -> Result<bool, Error> {
    let books: BTreeSet<u16> = books.iter().copied().collect();
    for book in books {
        let lock = Statement::new(LOCK_HEAD).with(i64::from(book));
        match change.write(lock).await? {
            Written::Rows(1) => {}
            Written::Rows(_) => return Err(Error::Invalid(format!("there is no book {book}"))),
            Written::Collided => return Ok(false),
        }
    }
    Ok(true)
}

/// Locks budgets in the order of their names, and reads what of them is used. `None` when the locks
/// of two turns crossed.
async fn budgets<D: Database>(
    change: &mut D::Change<'_>,
    ids: &BTreeSet<BudgetId>,
) -> Result<Option<Map<BudgetId, i64>>, Error> {
    let mut budgets = Map::with_capacity(ids.len());
    for id in ids {
        let lock = named(D::POINTS.lock_budget, &id.programme, &id.name);
        if change.write(lock).await? == Written::Collided {
            return Ok(None);
        }
        let read = named(D::POINTS.read_locked_budget, &id.programme, &id.name);
        let rows: Vec<(i64,)> = change.rows(read).await?;
        budgets.insert(id.clone(), rows.first().map_or(0, |(used,)| *used));
    }
    Ok(Some(budgets))
}

pub async fn rows<R: Row>(
    change: &mut impl Change,
    statements: Vec<Statement>,
) -> Result<Vec<R>, Unavailable> {
    let mut rows = Vec::new();
    for statement in statements {
        rows.extend(change.rows(statement).await?);
    }
    Ok(rows)
}

async fn wallets(
    change: &mut impl Change,
    count: u16,
    ids: &[WalletId],
) -> Result<Map<WalletId, Wallet>, Error> {
    let mut wallets = Map::with_capacity(ids.len());
    for (programme, statements) in wallet_searches(&WALLETS, count, ids) {
        for (member, record) in rows::<(Vec<u8>, Vec<u8>)>(change, statements).await? {
            let id = WalletId { programme: Arc::clone(&programme), member: text_of(member)? };
            let wallet = wallet_of(&id, &record)?;
            wallets.insert(id, wallet);
        }
    }
    Ok(wallets)
}

/// Returns the statements that find wallets, for each book and programme.
pub fn wallet_searches(
    wallets: &Many,
    count: u16,
    ids: &[WalletId],
) -> Vec<(Arc<str>, Vec<Statement>)> {
    let mut members: BTreeMap<(u16, Arc<str>), Vec<Vec<Value>>> = BTreeMap::new();
    for id in ids {
        let place = (id.book(count), Arc::clone(&id.programme));
        members.entry(place).or_default().push(vec![bytes(&id.member)]);
    }
    let search = |((book, programme), members): ((u16, Arc<str>), Vec<Vec<Value>>)| {
        let first = [Value::from(i64::from(book)), bytes(&programme)];
        (programme, wallets.finding(&first, &members))
    };
    members.into_iter().map(search).collect()
}

pub async fn keys(
    change: &mut impl Change,
    keys: &[Key],
) -> Result<Map<Key, Arc<raingauge_points::Entry>>, Error> {
    let wanted: Vec<_> = keys.iter().map(|key| vec![key.to_bytes().to_vec().into()]).collect();
    let rows: Vec<(Vec<u8>, Vec<u8>)> = rows(change, BY_KEY.finding(&[], &wanted)).await?;
    let entry = |(hash, body): (Vec<u8>, Vec<u8>)| {
        let hash = hash.try_into();
        let hash = hash.map_err(|_| Error::Corrupt("a key has not 16 bytes".to_owned()))?;
        Ok((Key::from_bytes(hash), entry_of(&body)?))
    };
    rows.into_iter().map(entry).collect()
}

pub async fn references(
    change: &mut impl Change,
    ids: BTreeSet<ReferenceId>,
) -> Result<Map<ReferenceId, Earned>, Error> {
    let mut texts: BTreeMap<Arc<str>, Vec<Vec<Value>>> = BTreeMap::new();
    for id in ids {
        texts.entry(id.programme).or_default().push(vec![bytes(&id.text)]);
    }
    let mut references = Map::new();
    for (programme, texts) in texts {
        let statements = REFERENCES.finding(&[bytes(&programme)], &texts);
        for (text, record) in rows::<(Vec<u8>, Vec<u8>)>(change, statements).await? {
            let programme = Arc::clone(&programme);
            let id = ReferenceId { programme, text: text_of(text)? };
            let earned = earned_of(&id, &record)?;
            references.insert(id, earned);
        }
    }
    Ok(references)
}

/// Returns what the sums that a turn moves are after it.
pub async fn sums(
    change: &mut impl Change,
    moved: &[(TotalId, i128)],
) -> Result<Vec<(TotalId, i128)>, Error> {
    let mut names: BTreeMap<(u16, &Arc<str>), Vec<Vec<Value>>> = BTreeMap::new();
    for (id, _) in moved {
        let place = (id.book, &id.programme);
        names.entry(place).or_default().push(vec![bytes(&id.total.to_string())]);
    }
    let mut before = Totals::default();
    for ((book, programme), names) in names {
        let statements = TOTALS.finding(&[i64::from(book).into(), bytes(programme)], &names);
        for row in rows::<TotalRow>(change, statements).await? {
            let (id, amount) = total_of(programme, row)?;
            before.0.insert(id, amount);
        }
    }

    let after = |(id, amount): &(TotalId, i128)| (id.clone(), before.after(id, *amount));
    Ok(moved.iter().map(after).collect())
}

fn book_head(head: &Head) -> BookHead {
    BookHead { book: head.book, sequence: head.sequence, recorded_ms: head.recorded_ms }
}

/// A statement whose values are a programme, and a name in it.
pub fn named(text: &'static str, programme: &str, name: &str) -> Statement {
    Statement::new(text).with(bytes(programme)).with(bytes(name))
}
