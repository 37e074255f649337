//! What a turn writes, in the order that all turns keep.

use super::many::Many;
use super::rows::{bytes, number, versions_of};
use crate::database::{Statement, Value};
use raingauge_points::{Entry, ReferenceId, Turn, WalletId};
use raingauge_ports::points::{Error, Head};
use std::collections::HashMap;

const ADD_KEYS: Many = Many {
    before: "INSERT INTO points_keys (hash, book, sequence) VALUES ",
    row: "(?,?,?)",
    after: "",
};
const ADD_REFERENCES: Many = Many {
    before: "INSERT INTO points_references (programme, reference, record) VALUES ",
    row: "(?,?,?)",
    after: "",
};
const CHANGE_REFERENCE: &str = "UPDATE points_references SET record = ?
    WHERE programme = ? AND reference = ? AND record = ?";
const ADD_ENTRIES: Many = Many {
    before: "INSERT INTO points_entries
        (book, sequence, programme, member, member_sequence, recorded_ms, body) VALUES ",
    row: "(?,?,?,?,?,?,?)",
    after: "",
};
const PUT_WALLETS: Many = Many {
    before: "REPLACE INTO points_wallets (book, programme, member, due_hour, record) VALUES ",
    row: "(?,?,?,?,?)",
    after: "",
};
const PUT_TOTALS: Many = Many {
    before: "REPLACE INTO points_totals (book, programme, total, amount) VALUES ",
    row: "(?,?,?,?)",
    after: "",
};
const CHANGE_BUDGET: &str = "UPDATE points_budgets SET used = ? WHERE programme = ? AND name = ?";
const MOVE_HEAD: &str = "UPDATE points_heads
    SET sequence = ?, recorded_ms = ?, hash = ?, position = ?, versions = ? WHERE book = ?";

/// A statement of a turn.
pub struct Write {
    pub statement: Statement,
    /// How many rows it must find; another number means that the turn met another one.
    pub rows: Option<u64>,
}

impl From<Statement> for Write {
    fn from(statement: Statement) -> Self {
        Self { statement, rows: None }
    }
}

/// Returns what makes a turn durable, and moves the heads. Keys and references come first, in
/// ascending order: where two turns meet, one waits for the other and is then decided again.
pub fn writes(
    turn: &Turn,
    count: u16,
    heads: &mut [Head],
    references: &HashMap<ReferenceId, Vec<u8>>,
) -> Result<Vec<Write>, Error> {
    let entries = entries(turn, heads)?;
    if let Some(position) = turn.position {
        heads.iter_mut().for_each(|head| head.position = position);
    }

    let mut writes = Vec::new();
    writes.extend(ADD_KEYS.writing(keys(turn)).into_iter().map(Write::from));
    writes.extend(references_of(turn, references));
    writes.extend(ADD_ENTRIES.writing(entries).into_iter().map(Write::from));
    writes.extend(PUT_WALLETS.writing(wallets(turn, count, heads)?).into_iter().map(Write::from));
    writes.extend(PUT_TOTALS.writing(totals(turn)).into_iter().map(Write::from));
    writes.extend(budgets(turn));
    writes.extend(heads.iter().map(|head| Write::from(moved(head))));
    Ok(writes)
}

/// Returns the rows of the entries, and appends them to the heads of their books.
fn entries(turn: &Turn, heads: &mut [Head]) -> Result<Vec<Vec<Value>>, Error> {
    let mut rows = Vec::with_capacity(turn.entries.len());
    for entry in &turn.entries {
        let head = heads.iter_mut().find(|head| head.book == entry.book);
        let follows = |head: &&mut Head| {
            entry.sequence == head.sequence + 1 && entry.recorded_ms >= head.recorded_ms
        };
        let Some(head) = head.filter(follows) else {
            return Err(Error::Invalid(format!(
                "entry {} of book {} does not follow the head of the book",
                entry.sequence, entry.book
            )));
        };

        let mut body = Vec::with_capacity(256);
        entry.encode(&mut body);
        head.apply(entry, &body);
        rows.push(row_of(entry, body));
    }
    Ok(rows)
}

fn row_of(entry: &Entry, body: Vec<u8>) -> Vec<Value> {
    vec![
        i64::from(entry.book).into(),
        number(entry.sequence),
        bytes(&entry.programme),
        bytes(entry.member.as_deref().unwrap_or_default()),
        number(entry.member_sequence),
        entry.recorded_ms.into(),
        body.into(),
    ]
}

fn keys(turn: &Turn) -> Vec<Vec<Value>> {
    let key = |entry: &Entry| entry.key.as_ref().map(|key| key.hash.to_bytes());
    let mut keys: Vec<_> = turn
        .entries
        .iter()
        .filter_map(|entry| Some((key(entry)?, entry.book, entry.sequence)))
        .collect();
    keys.sort_unstable();

    let row = |(hash, book, sequence): ([u8; 16], u16, u64)| {
        vec![hash.to_vec().into(), i64::from(book).into(), number(sequence)]
    };
    keys.into_iter().map(row).collect()
}

/// A reference that nobody has is added; another one changes only if it still is what was loaded.
fn references_of(turn: &Turn, stored: &HashMap<ReferenceId, Vec<u8>>) -> Vec<Write> {
    let mut references: Vec<_> = turn.references.iter().collect();
    references.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));

    let mut added = Vec::new();
    let mut changes = Vec::new();
    for (id, earned) in references {
        let mut record = Vec::new();
        earned.encode(&mut record);
        let Some(before) = stored.get(id) else {
            added.push(vec![bytes(&id.programme), bytes(&id.text), record.into()]);
            continue;
        };

        let change = Statement::new(CHANGE_REFERENCE).with(record).with(bytes(&id.programme));
        let statement = change.with(bytes(&id.text)).with(before.clone());
        changes.push(Write { statement, rows: Some(1) });
    }
    let added = ADD_REFERENCES.writing(added).into_iter().map(Write::from);
    added.chain(changes).collect()
}

fn wallets(turn: &Turn, count: u16, heads: &[Head]) -> Result<Vec<Vec<Value>>, Error> {
    let book_of = |id: &WalletId| {
        let book = id.book(count);
        let is_locked = heads.iter().any(|head| head.book == book);
        let foreign = || {
            Error::Invalid(format!(
                "the wallet of {} is in book {book}, which is not locked",
                id.member
            ))
        };
        is_locked.then_some(book).ok_or_else(foreign)
    };
    let mut rows = Vec::with_capacity(turn.wallets.len());
    for (id, wallet) in &turn.wallets {
        let mut record = Vec::with_capacity(128);
        wallet.encode(&mut record);
        rows.push(vec![
            i64::from(book_of(id)?).into(),
            bytes(&id.programme),
            bytes(&id.member),
            wallet.due_hour.map(i64::from).into(),
            record.into(),
        ]);
    }
    Ok(rows)
}

fn totals(turn: &Turn) -> Vec<Vec<Value>> {
    let row = |(id, amount): &(raingauge_points::TotalId, i128)| {
        vec![
            i64::from(id.book).into(),
            bytes(&id.programme),
            bytes(&id.total.to_string()),
            amount.to_string().into(),
        ]
    };
    turn.totals.iter().map(row).collect()
}

/// The rows of budgets were added when they were locked.
fn budgets(turn: &Turn) -> impl Iterator<Item = Write> {
    turn.budgets.iter().map(|(id, used)| {
        let statement = Statement::new(CHANGE_BUDGET).with(*used);
        let statement = statement.with(bytes(&id.programme)).with(bytes(&id.name));
        Write { statement, rows: Some(1) }
    })
}

fn moved(head: &Head) -> Statement {
    Statement::new(MOVE_HEAD)
        .with(head.sequence as i64)
        .with(head.recorded_ms)
        .with(head.chain.0.to_vec())
        .with(head.position as i64)
        .with(versions_of(head))
        .with(i64::from(head.book))
}
