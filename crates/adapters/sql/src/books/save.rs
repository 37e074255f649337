//! What a turn writes, in the order that all turns keep.

use super::load::StoredRows;
use super::many::Many;
use super::rows::{bytes, number, versions_of};
use crate::database::{Statement, Value};
use raingauge_points::{Entry, TotalId, Turn, WalletId};
use raingauge_ports::points::{EncodedTurn, Error, Head};

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
    WHERE programme = ? AND reference = ?";
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

/// Returns what makes a turn durable, and the heads after it. `sums` are what those that it moves
/// become. Keys come first, in ascending order: where two turns meet in one, one waits for the
/// other and is then decided again.
pub fn writes(
    turn: &Turn,
    count: u16,
    before: &[Head],
    stored: &StoredRows,
    sums: &[(TotalId, i128)],
) -> Result<(Vec<Write>, Vec<Head>), Error> {
    let encoded = EncodedTurn::of(before, turn)?;
    let bodies = encoded.entries().map(<[u8]>::to_vec);
    let entries = turn.entries.iter().zip(bodies).map(|(entry, body)| row_of(entry, body));
    let entries = entries.collect();

    let mut writes = Vec::new();
    writes.extend(many(&ADD_KEYS, keys(turn, stored)?));
    writes.extend(references(turn, stored));
    writes.extend(many(&ADD_ENTRIES, entries));
    writes.extend(many(&PUT_WALLETS, wallets(turn, count, before)?));
    writes.extend(many(&PUT_TOTALS, totals(sums)));
    writes.extend(budgets(turn));
    writes.extend(encoded.heads.iter().map(|head| Write::from(moved(head))));
    Ok((writes, encoded.heads))
}

fn many(statement: &Many, rows: Vec<Vec<Value>>) -> impl Iterator<Item = Write> {
    statement.writing(rows).into_iter().map(Write::from)
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

/// A key that was not looked for, or was found, is a defect. One that another book took since is
/// not: the database refuses its row.
fn keys(turn: &Turn, stored: &StoredRows) -> Result<Vec<Vec<Value>>, Error> {
    let mut keys = Vec::new();
    for entry in &turn.entries {
        let Some(key) = &entry.key else { continue };
        if !stored.free_keys.contains(&key.hash) {
            let why = format!("the key of entry {} is known, or was not loaded", entry.sequence);
            return Err(Error::Invalid(why));
        }
        keys.push((key.hash.to_bytes(), entry.book, entry.sequence));
    }
    keys.sort_unstable();

    let row = |(hash, book, sequence): ([u8; 16], u16, u64)| {
        vec![hash.to_vec().into(), i64::from(book).into(), number(sequence)]
    };
    Ok(keys.into_iter().map(row).collect())
}

/// A replacement would lock the gap beside a reference, into which turns of other books insert.
fn references(turn: &Turn, stored: &StoredRows) -> Vec<Write> {
    let mut references: Vec<_> = turn.references.iter().collect();
    references.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));

    let mut added = Vec::new();
    let mut changes = Vec::new();
    for (id, earned) in references {
        let mut record = Vec::new();
        earned.encode(&mut record);
        if stored.references.contains(id) {
            let change = Statement::new(CHANGE_REFERENCE).with(record);
            let statement = change.with(bytes(&id.programme)).with(bytes(&id.text));
            changes.push(Write { statement, rows: Some(1) });
        } else {
            added.push(vec![bytes(&id.programme), bytes(&id.text), record.into()]);
        }
    }
    many(&ADD_REFERENCES, added).chain(changes).collect()
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

fn totals(sums: &[(TotalId, i128)]) -> Vec<Vec<Value>> {
    let row = |(id, amount): &(TotalId, i128)| {
        vec![
            i64::from(id.book).into(),
            bytes(&id.programme),
            bytes(&id.total.to_string()),
            amount.to_string().into(),
        ]
    };
    sums.iter().map(row).collect()
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
