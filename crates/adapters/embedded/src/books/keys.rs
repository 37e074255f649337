//! The keys of the records. Names in them end with a zero byte, which no name contains.
//!
//! ```text
//! 0x00                                             head
//! 0x01 programme 0 member                          wallet
//! 0x02 key u128                                    place of the entry that has it
//! 0x03 hour u32 programme 0 member                 due (no value)
//! 0x04 programme 0 reference                       what it earned
//! 0x05 programme 0 total                           sum i128
//! 0x06 programme 0 budget                          used i64
//! 0x07 programme 0 member 0 member sequence u64    place of an entry of the statement
//! ```
//!
//! Numbers in keys are big-endian.

use raingauge_points::{BudgetId, Key, ReferenceId, TotalId, WalletId};
use raingauge_ports::points::DueWallet;
use std::ops::Range;
use std::sync::Arc;

pub const HEAD: [u8; 1] = [0x00];

const WALLET: u8 = 0x01;
const KEY: u8 = 0x02;
const DUE: u8 = 0x03;
const REFERENCE: u8 = 0x04;
const TOTAL: u8 = 0x05;
const BUDGET: u8 = 0x06;
const ROW: u8 = 0x07;

/// What a row of a statement has behind its names.
const ROW_END_LEN: usize = 1 + size_of::<u64>();

/// A key of one kind, its names each but the last ended by a zero byte.
fn named(kind: u8, programme: &str, name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(2 + programme.len() + name.len() + ROW_END_LEN);
    key.push(kind);
    key.extend_from_slice(programme.as_bytes());
    key.push(0);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The two names behind `skip` bytes of a key.
fn names_in(key: &[u8], skip: usize) -> Option<(&str, &str)> {
    std::str::from_utf8(key.get(skip..)?).ok()?.split_once('\0')
}

pub fn wallet(id: &WalletId) -> Vec<u8> {
    named(WALLET, &id.programme, &id.member)
}

pub fn key(key: Key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + size_of::<Key>());
    bytes.push(KEY);
    bytes.extend_from_slice(&key.0.to_be_bytes());
    bytes
}

pub fn due(due: &DueWallet) -> Vec<u8> {
    let mut bytes = due_from(due.hour);
    bytes.extend_from_slice(&wallet(&due.wallet)[1..]);
    bytes
}

/// The first key of wallets that are due at an hour or later.
fn due_from(hour: u32) -> Vec<u8> {
    let mut bytes = vec![DUE];
    bytes.extend_from_slice(&hour.to_be_bytes());
    bytes
}

/// The keys of wallets behind `after` that are due at an hour or later, and at or before another.
pub fn due_range(from: u32, after: Option<&DueWallet>, until_hour: u32) -> Range<Vec<u8>> {
    let from = match after {
        // No key lies between this one and the next.
        Some(after) => [due(after), vec![0]].concat(),
        None => due_from(from),
    };
    let to = until_hour.checked_add(1).map_or_else(|| vec![DUE + 1], due_from);
    from..to
}

pub fn due_of(key: &[u8]) -> Option<DueWallet> {
    let hour = u32::from_be_bytes(*key.get(1..)?.first_chunk()?);
    let (programme, member) = names_in(key, 5)?;
    let wallet = WalletId { programme: Arc::from(programme), member: Arc::from(member) };
    Some(DueWallet { hour, wallet })
}

pub fn is_reference(key: &[u8]) -> bool {
    key.first() == Some(&REFERENCE)
}

pub fn reference(id: &ReferenceId) -> Vec<u8> {
    named(REFERENCE, &id.programme, &id.text)
}

pub fn total(id: &TotalId) -> Vec<u8> {
    named(TOTAL, &id.programme, &id.total.to_string())
}

/// The sums of a programme.
pub fn totals(programme: &str) -> Range<Vec<u8>> {
    let from = named(TOTAL, programme, "");
    let mut to = from.clone();
    *to.last_mut().expect("it ends with a zero byte") = 1;
    from..to
}

/// The sum of a key in [`totals`].
pub fn total_of(book: u16, key: &[u8]) -> Option<TotalId> {
    let (programme, total) = names_in(key, 1)?;
    Some(TotalId { book, programme: Arc::from(programme), total: total.parse().ok()? })
}

pub fn budget(id: &BudgetId) -> Vec<u8> {
    named(BUDGET, &id.programme, &id.name)
}

/// A row of the statement of a wallet.
pub fn row(id: &WalletId, member_sequence: u64) -> Vec<u8> {
    let mut key = named(ROW, &id.programme, &id.member);
    key.push(0);
    key.extend_from_slice(&member_sequence.to_be_bytes());
    key
}

/// The rows of a wallet before a member sequence.
pub fn rows_before(id: &WalletId, member_sequence: u64) -> Range<Vec<u8>> {
    row(id, 0)..row(id, member_sequence)
}

/// Whether a key is one of few, over which one ranges: due rows and sums.
pub fn is_in_order(key: &[u8]) -> bool {
    matches!(key.first(), Some(&(DUE | TOTAL)))
}

/// Whether a key is one of a sum.
pub fn is_total(key: &[u8]) -> bool {
    key.first() == Some(&TOTAL)
}

/// What the keys of the rows of a wallet begin with, if this is one.
pub fn wallet_of_row(key: &[u8]) -> Option<&[u8]> {
    let is_row = key.first() == Some(&ROW) && key.len() > ROW_END_LEN;
    is_row.then(|| &key[..key.len() - ROW_END_LEN])
}

/// All records but the head.
pub fn all() -> Range<Vec<u8>> {
    vec![WALLET]..vec![ROW + 1]
}

/// What a record is about, for people.
pub fn description(key: &[u8]) -> String {
    let names = |skip| names_in(key, skip).map(|(first, second)| format!("{first}/{second}"));
    let hex = || key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (kind, name) = match key.first() {
        Some(&WALLET) => ("wallet", names(1)),
        Some(&KEY) => ("key", None),
        Some(&DUE) => ("due row", names(5)),
        Some(&REFERENCE) => ("reference", names(1)),
        Some(&TOTAL) => ("total", names(1)),
        Some(&BUDGET) => ("budget", names(1)),
        Some(&ROW) => ("statement row", None),
        _ => ("record", None),
    };
    format!("{kind} {}", name.unwrap_or_else(hex))
}
