//! What follows from the journal: reading and writing it as records.

use super::journal::{ADVICE, Pages};
use super::keys;
use super::pending::Pending;
use super::place::Place;
use super::records::{View, Writes};
use hashbrown::HashMap;
use raingauge_points::{
    BudgetId, Entry, Footprint, Key, Points, Snapshot, TotalId, Totals, Turn, Wallet, WalletId,
};
use raingauge_ports::points::{Chain, DueWallet, Error, Head};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The only book of a data folder.
pub const BOOK: u16 = 0;
const HEAD_VERSION: u8 = 1;

/// Bytes that are set aside for the record of a wallet. Most need fewer.
const WALLET_LEN: usize = 128;

/// The hours at which wallets are due.
pub type DueHours = HashMap<WalletId, u32>;

/// Returns the error about a value that this program cannot read.
pub fn malformed(what: &str) -> Error {
    Error::Corrupt(format!(
        "{what} is malformed, or was written by a newer version: `raingauge points verify --rebuild` \
         makes the state again from the journal"
    ))
}

/// Returns how far the records include the journal. The position is not among them.
pub fn head(records: &dyn View) -> Result<Head, Error> {
    let Some(bytes) = records.get(&keys::HEAD)? else {
        return Ok(Head::of_book(BOOK));
    };
    decode_head(&bytes).ok_or_else(|| malformed("the head"))
}

fn encode_head(head: &Head) -> Vec<u8> {
    let mut bytes = vec![HEAD_VERSION];
    bytes.extend_from_slice(&head.sequence.to_le_bytes());
    bytes.extend_from_slice(&head.recorded_ms.to_le_bytes());
    bytes.extend_from_slice(&head.chain.0);
    for (programme, version) in &head.versions {
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(programme.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn decode_head(bytes: &[u8]) -> Option<Head> {
    let rest = bytes.strip_prefix(&[HEAD_VERSION])?;
    let (sequence, rest) = rest.split_first_chunk()?;
    let (recorded_ms, rest) = rest.split_first_chunk()?;
    let (chain, mut rest) = rest.split_first_chunk()?;
    let mut versions = Vec::new();

    while let Some((version, behind)) = rest.split_first_chunk() {
        let end = behind.iter().position(|byte| *byte == 0)?;
        let programme = std::str::from_utf8(&behind[..end]).ok()?;
        versions.push((Arc::from(programme), u32::from_le_bytes(*version)));
        rest = &behind[end + 1..];
    }

    rest.is_empty().then(|| Head {
        sequence: u64::from_le_bytes(*sequence),
        recorded_ms: i64::from_le_bytes(*recorded_ms),
        chain: Chain(*chain),
        versions,
        ..Head::of_book(BOOK)
    })
}

/// Wallets of one moment.
pub fn wallets(records: &Pending, ids: &[WalletId]) -> Result<Vec<Option<Wallet>>, Error> {
    let keys: Vec<Vec<u8>> = ids.iter().map(keys::wallet).collect();
    let found = records.get_all(&keys)?;
    found.into_iter().map(|bytes| bytes.as_deref().map(decode_wallet).transpose()).collect()
}

pub fn decode_wallet(bytes: &[u8]) -> Result<Wallet, Error> {
    Wallet::decode(bytes).map_err(|_| malformed("a wallet"))
}

pub fn entry_of_key(
    records: &dyn View,
    pages: &Pages,
    key: Key,
) -> Result<Option<Arc<Entry>>, Error> {
    let Some(bytes) = records.get(&keys::key(key))? else {
        return Ok(None);
    };
    let place = Place::from_bytes(&bytes).ok_or_else(|| malformed("a key"))?;
    pages.entry_at(&place).map(Some)
}

/// What was used of budgets at one moment.
pub fn budgets(records: &Pending, ids: &[BudgetId]) -> Result<Vec<Option<Points>>, Error> {
    let keys: Vec<Vec<u8>> = ids.iter().map(keys::budget).collect();
    let found = records.get_all(&keys)?;
    let decode = |bytes: &[u8]| {
        bytes.try_into().map(Points::from_le_bytes).map_err(|_| malformed("a budget"))
    };
    found.into_iter().map(|bytes| bytes.as_deref().map(decode).transpose()).collect()
}

/// The sums of a programme.
pub fn totals(records: &dyn View, programme: &str) -> Result<Totals, Error> {
    let mut totals = Totals::default();
    records.scan(keys::totals(programme), false, &mut |key, value| {
        let id = keys::total_of(BOOK, key).ok_or_else(|| malformed("a total"))?;
        let sum = value.try_into().map(i128::from_le_bytes).map_err(|_| malformed("a total"))?;
        totals.0.insert(id, sum);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(totals)
}

/// Returns when wallets are due, as far as they are.
pub fn due_hours(snapshot: &Snapshot) -> DueHours {
    let due = |(id, wallet): (&WalletId, &Wallet)| Some((id.clone(), wallet.due_hour?));
    snapshot.wallets.iter().filter_map(due).collect()
}

/// The records of the wallets of a turn.
fn put_wallets(turn: &Turn, writes: &mut Writes) {
    for (id, wallet) in &turn.wallets {
        let mut bytes = Vec::with_capacity(WALLET_LEN);
        wallet.encode(&mut bytes);
        writes.push((keys::wallet(id), Some(bytes)));
    }
}

/// What a turn makes of the records, the wallets first. `due_before` is when they were due before,
/// and `sums` what those that the turn moves are now.
pub fn writes_of(
    head: &Head,
    turn: &Turn,
    places: &[Place],
    due_before: &DueHours,
    sums: &[(TotalId, i128)],
) -> Writes {
    let mut writes = Writes::with_capacity(2 * turn.wallets.len() + 2 * turn.entries.len() + 8);
    put_wallets(turn, &mut writes);
    for (id, wallet) in &turn.wallets {
        put_due(id, due_before.get(id).copied(), wallet.due_hour, &mut writes);
    }

    for (entry, place) in turn.entries.iter().zip(places) {
        let place = place.to_bytes().to_vec();
        if let Some(id) = entry.wallet() {
            writes.push((keys::row(&id, entry.member_sequence), Some(place.clone())));
        }
        if let Some(key) = &entry.key {
            writes.push((keys::key(key.hash), Some(place)));
        }
    }

    for (id, earned) in &turn.references {
        let mut bytes = Vec::new();
        earned.encode(&mut bytes);
        writes.push((keys::reference(id), Some(bytes)));
    }
    put_sums(sums, &turn.budgets, &mut writes);
    writes.push((keys::HEAD.to_vec(), Some(encode_head(head))));
    writes
}

fn put_due(id: &WalletId, before: Option<u32>, after: Option<u32>, writes: &mut Writes) {
    if before == after {
        return;
    }
    let key = |hour| keys::due(&DueWallet { hour, wallet: id.clone() });
    writes.extend(before.map(|hour| (key(hour), None)));
    writes.extend(after.map(|hour| (key(hour), Some(Vec::new()))));
}

fn put_sums(sums: &[(TotalId, i128)], budgets: &[(BudgetId, Points)], writes: &mut Writes) {
    for (id, sum) in sums {
        writes.push((keys::total(id), Some(sum.to_le_bytes().to_vec())));
    }
    for (id, used) in budgets {
        writes.push((keys::budget(id), Some(used.to_le_bytes().to_vec())));
    }
}

/// The turn that entries were, as far as it follows from them.
pub fn turn_of(snapshot: Snapshot, footprint: &Footprint, entries: Vec<Arc<Entry>>) -> Turn {
    let Snapshot { mut wallets, mut references, mut budgets, totals, .. } = snapshot;
    let wallets = footprint.wallets.iter().filter_map(|id| wallets.remove_entry(id)).collect();
    let references =
        footprint.references.iter().filter_map(|id| references.remove_entry(id)).collect();
    let budgets = footprint.budgets.iter().filter_map(|id| budgets.remove_entry(id)).collect();
    let moved = totals.0.into_iter().collect();
    let recorded_ms = entries.last().map_or(0, |entry| entry.recorded_ms);
    Turn { recorded_ms, entries, wallets, moved, references, budgets, position: None }
}

/// Refuses a store that is not a prefix of the journal: it includes more, or other entries.
pub fn check_prefix(head: &Head, pages: &Pages) -> Result<(), Error> {
    let sequence = head.sequence;
    let end = pages.end();
    if sequence > end {
        return Err(Error::Corrupt(format!(
            "its state includes {sequence} entries, but the journal ends at entry {end}: {ADVICE}"
        )));
    }

    let Some(last) = sequence.checked_sub(1) else {
        return Ok(());
    };
    let page = pages.blocks(last, 0)?.pop();
    if page.is_some_and(|page| page.end() == sequence && page.after == head.chain) {
        return Ok(());
    }
    Err(Error::Corrupt(format!(
        "its state includes other entries up to {sequence} than the journal has: {ADVICE}"
    )))
}
