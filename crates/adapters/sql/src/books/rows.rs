//! Rows of books and what they mean. One that was altered by hand is an error that names it.

use crate::database::Value;
use raingauge_points::{Earned, Entry, ReferenceId, Total, TotalId, Wallet, WalletId};
use raingauge_ports::points::{Chain, Error, Head};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// Book, sequence, time, hash, position, versions, and the time of the database.
pub type HeadRow = (i64, i64, i64, Vec<u8>, i64, String, Option<i64>);

/// Book, total, amount.
pub type TotalRow = (i64, Vec<u8>, String);

/// Names and ids are stored as the bytes of their UTF-8.
pub fn bytes(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

pub fn number(value: u64) -> Value {
    Value::Whole(Some(value as i64))
}

fn damaged(what: impl Display, why: impl Display) -> Error {
    Error::Corrupt(format!("{what}: {why}"))
}

pub fn text_of(bytes: Vec<u8>) -> Result<Arc<str>, Error> {
    let text = String::from_utf8(bytes).map_err(|error| damaged("a name", error))?;
    Ok(text.into())
}

/// Returns the heads of books in the order of `books`.
pub fn heads_of(rows: Vec<HeadRow>, books: &[u16]) -> Result<Vec<Head>, Error> {
    let mut heads = BTreeMap::new();
    for row in rows {
        let head = head_of(row)?;
        heads.insert(head.book, head);
    }
    let head = |book: &u16| {
        heads.get(book).cloned().ok_or_else(|| Error::Invalid(format!("there is no book {book}")))
    };
    books.iter().map(head).collect()
}

fn head_of(row: HeadRow) -> Result<Head, Error> {
    let (book, sequence, recorded_ms, hash, position, versions, _) = row;
    let what = format!("the head of book {book}");
    let hash = hash.try_into().map_err(|_| damaged(&what, "its hash has not 32 bytes"))?;
    let versions: BTreeMap<Arc<str>, u32> =
        serde_json::from_str(&versions).map_err(|error| damaged(&what, error))?;
    Ok(Head {
        book: u16::try_from(book).map_err(|error| damaged(&what, error))?,
        sequence: sequence as u64,
        recorded_ms,
        chain: Chain(hash),
        versions: versions.into_iter().collect(),
        position: position as u64,
    })
}

/// The versions of a head as they are stored.
pub fn versions_of(head: &Head) -> Value {
    let versions: BTreeMap<&str, u32> =
        head.versions.iter().map(|(name, version)| (&**name, *version)).collect();
    Value::Text(serde_json::to_string(&versions).expect("names and numbers have a form in JSON"))
}

pub fn entry_of(body: &[u8]) -> Result<Arc<Entry>, Error> {
    Entry::decode(body).map(Arc::new).map_err(|error| damaged("an entry", error))
}

pub fn wallet_of(id: &WalletId, record: &[u8]) -> Result<Wallet, Error> {
    let what = || format!("the wallet of {} in {}", id.member, id.programme);
    Wallet::decode(record).map_err(|error| damaged(what(), error))
}

pub fn earned_of(id: &ReferenceId, record: &[u8]) -> Result<Earned, Error> {
    let what = || format!("the reference {} of {}", id.text, id.programme);
    Earned::decode(record).map_err(|error| damaged(what(), error))
}

pub fn total_of(programme: &Arc<str>, row: TotalRow) -> Result<(TotalId, i128), Error> {
    let (book, total, amount) = row;
    let name = text_of(total)?;
    let what = || format!("the total {name} of {programme} in book {book}");
    let total: Total = name.parse().map_err(|_| damaged(what(), "no total is called this"))?;
    let amount = amount.parse().map_err(|error| damaged(what(), error))?;
    let book = u16::try_from(book).map_err(|error| damaged(what(), error))?;
    Ok((TotalId { book, programme: Arc::clone(programme), total }, amount))
}
