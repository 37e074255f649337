//! Reads: what is pending, over what the disk has.

use super::keys::{self, Generation, Head, Place};
use super::layer::Layer;
use super::lookups::{malformed, resolve};
use super::state::{Shared, State};
use crate::store::Fault;
use bytes::Bytes;
use raingauge_ports::objects::{EntryPage, Error, FoundHead, Key, KeyCount};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// Pending names that a scan looks at in one step.
const STEP_LEN: usize = 4_096;
/// Bytes that an entry counts beside its name and its value.
const ENTRY_BYTES: usize = 16;

/// The heads of keys, as far as they are pending.
pub struct PendingHeads {
    pub heads: Vec<Option<Bytes>>,
    /// Keys that only the disk knows, with their places in `heads`, in this order.
    pub missing: Vec<(Generation, Bytes, usize)>,
}

pub fn pending_heads(shared: &Shared, keys: Vec<Key>) -> PendingHeads {
    let state = shared.state.lock();
    let mut pending = PendingHeads { heads: vec![None; keys.len()], missing: Vec::new() };
    for (place, key) in keys.into_iter().enumerate() {
        let generation = state.current.generation(key.database);
        match state.pending_head(generation, &key.name) {
            Some(head) => pending.heads[place] = head.map(|head| head.bytes),
            None => pending.missing.push((generation, key.name, place)),
        }
    }

    // Where nothing was ever written, nothing has to be looked up.
    pending.missing.retain(|(generation, ..)| shared.records.has(Place::Heads(*generation)));
    pending
}

/// Completes heads from the disk, and leaves out those behind more than `bytes_max` bytes.
pub fn read_missing(
    shared: &Shared,
    pending: PendingHeads,
    bytes_max: usize,
) -> Result<Vec<Option<Bytes>>, Error> {
    let PendingHeads { mut heads, missing } = pending;
    let mut missing = missing.into_iter().peekable();
    let mut bytes = 0;
    for place in 0..heads.len() {
        if bytes > bytes_max {
            heads.truncate(place);
            break;
        }

        if let Some((generation, name, _)) = missing.next_if(|(.., at)| *at == place) {
            let head = read_head(shared, generation, &name)?;
            heads[place] = head.map(|head| head.bytes);
        }
        bytes += heads[place].as_ref().map_or(0, Bytes::len);
    }
    Ok(heads)
}

/// The head that the disk has.
pub fn read_head(
    shared: &Shared,
    generation: Generation,
    name: &[u8],
) -> Result<Option<Head>, Fault> {
    let record = shared.records.get(Place::Heads(generation), &keys::head(name))?;
    record.map(|record| Head::decode(record).ok_or_else(|| malformed(name))).transpose()
}

/// Pending changes of a range, with where they end if there are more.
type Pending<T> = (BTreeMap<Bytes, Option<T>>, Option<Bytes>);

pub fn entries(
    shared: &Shared,
    database: u8,
    id: u64,
    after: Option<Bytes>,
    bytes_max: usize,
) -> Result<EntryPage, Error> {
    let mut after = after;
    loop {
        let (generation, is_dead, (pending, pending_end)) = {
            let state = shared.state.lock();
            let generation = state.current.generation(database);
            let is_dead = state.is_dead(generation, id);
            (generation, is_dead, state.pending_entries(generation, id, after.as_ref(), bytes_max))
        };

        let page = if is_dead {
            merged(pending, pending_end.as_ref(), bytes_max)
        } else {
            let place = Place::Entries(generation);
            let range = keys::entries(id, after.as_deref());
            merge_entries(shared, place, range, pending, pending_end.as_ref(), bytes_max)?
        };
        // What was dropped is no page.
        match pending_end {
            Some(end) if page.entries.is_empty() => after = Some(end),
            _ => return Ok(page),
        }
    }
}

impl State {
    /// Whether the entries of an object that the disk has are those of a dead one.
    fn is_dead(&self, generation: Generation, id: u64) -> bool {
        let is_killed = |layer: &Layer| {
            layer.generations.get(&generation).is_some_and(|changes| changes.killed.contains(&id))
        };
        let of_frozen = self.frozen.as_ref().is_some_and(|frozen| {
            let found = frozen.found.get(&generation);
            is_killed(&frozen.layer) || found.is_some_and(|found| found.left.contains(&id))
        });
        is_killed(&self.current)
            || of_frozen
            || self.dead.get(&generation).is_some_and(|ids| ids.contains(&id))
    }

    /// The pending entries of an object behind a name, about `bytes_max` bytes of them.
    fn pending_entries(
        &self,
        generation: Generation,
        id: u64,
        after: Option<&Bytes>,
        bytes_max: usize,
    ) -> Pending<Bytes> {
        let mut pending = BTreeMap::new();
        let mut end: Option<Bytes> = None;
        let frozen = self.frozen.as_ref().map(|frozen| &*frozen.layer);
        let is_killed = self
            .current
            .generations
            .get(&generation)
            .is_some_and(|changes| changes.killed.contains(&id));
        let layers = [frozen.filter(|_| !is_killed), Some(&self.current)];

        for layer in layers.into_iter().flatten() {
            let Some(entries) =
                layer.generations.get(&generation).and_then(|changes| changes.entries.get(&id))
            else {
                continue;
            };
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let mut bytes = 0;
            let mut last = None;
            for (sub, value) in entries.range::<Bytes, _>((from, Bound::Unbounded)) {
                if let Some(last) = last.filter(|_| bytes > bytes_max) {
                    end = Some(nearer(&end, last));
                    break;
                }
                bytes += sub.len() + value.as_ref().map_or(0, Bytes::len) + ENTRY_BYTES;
                pending.insert(sub.clone(), value.clone());
                last = Some(sub);
            }
        }

        if let Some(end) = &end {
            pending.retain(|sub, _| sub <= end);
        }
        (pending, end)
    }

    /// The pending names of a generation behind one, whether each has a head.
    fn pending_names(&self, generation: Generation, after: Option<&Bytes>) -> Pending<Bytes> {
        let mut names = BTreeMap::new();
        let mut end: Option<Bytes> = None;
        let frozen = self.frozen.as_ref().map(|frozen| &*frozen.layer);
        for layer in [frozen, Some(&self.current)].into_iter().flatten() {
            let Some(changes) = layer.generations.get(&generation) else {
                continue;
            };
            let behind = changes.names_behind(after, STEP_LEN);
            if let Some(last) = behind.last().filter(|_| behind.len() == STEP_LEN) {
                end = Some(nearer(&end, last));
            }
            for name in behind {
                // What a checkpoint has written the disk knows.
                if let Some(change) = changes.heads.read().get(&name) {
                    let head = change.head.as_ref().map(|head| head.bytes.clone());
                    names.insert(name, head);
                }
            }
        }

        if let Some(end) = &end {
            names.retain(|name, _| name <= end);
        }
        (names, end)
    }
}

/// The end of both layers, which is the nearer one.
fn nearer(end: &Option<Bytes>, at: &Bytes) -> Bytes {
    end.as_ref().map_or(at, |end| end.min(at)).clone()
}

/// A page of pending entries alone.
fn merged(
    pending: BTreeMap<Bytes, Option<Bytes>>,
    end: Option<&Bytes>,
    bytes_max: usize,
) -> EntryPage {
    let mut page = Page::new(bytes_max);
    for (sub, value) in pending {
        if value.is_some_and(|value| page.push(sub, value).is_break()) {
            break;
        }
    }
    page.page.has_more |= end.is_some();
    page.page
}

/// A page of what the disk has, with the pending entries over it.
fn merge_entries(
    shared: &Shared,
    place: Place,
    range: std::ops::Range<Vec<u8>>,
    pending: BTreeMap<Bytes, Option<Bytes>>,
    end: Option<&Bytes>,
    bytes_max: usize,
) -> Result<EntryPage, Error> {
    const ID_LEN: usize = 8;
    let mut page = Page::new(bytes_max);
    let mut pending = pending.into_iter().peekable();
    let mut is_over = false;

    shared.records.scan(place, range, &mut |key, value| {
        let sub = key.get(ID_LEN..).unwrap_or_default();
        if end.is_some_and(|end| sub > &end[..]) {
            is_over = true;
            return Ok(ControlFlow::Break(()));
        }
        while let Some((first, change)) = pending.next_if(|(first, _)| &first[..] < sub) {
            if change.is_some_and(|change| page.push(first, change).is_break()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        let change = pending.next_if(|(first, _)| &first[..] == sub);
        let value = change.map_or(Some(value), |(_, change)| change);
        let pushed = value.map(|value| page.push(Bytes::copy_from_slice(sub), value));
        Ok(pushed.unwrap_or(ControlFlow::Continue(())))
    })?;

    for (sub, change) in pending {
        if page.page.has_more {
            break;
        }
        if let Some(value) = change {
            let _ = page.push(sub, value);
        }
    }
    page.page.has_more |= is_over || end.is_some();
    Ok(page.page)
}

/// A page that is being filled.
struct Page {
    page: EntryPage,
    bytes: usize,
    bytes_max: usize,
}

impl Page {
    fn new(bytes_max: usize) -> Self {
        Self { page: EntryPage::default(), bytes: 0, bytes_max }
    }

    /// Adds an entry, or breaks when the page is full.
    fn push(&mut self, sub: Bytes, value: Bytes) -> ControlFlow<()> {
        if !self.page.entries.is_empty() && self.bytes >= self.bytes_max {
            self.page.has_more = true;
            return ControlFlow::Break(());
        }
        self.bytes += sub.len() + value.len() + ENTRY_BYTES;
        self.page.entries.push((sub, value));
        ControlFlow::Continue(())
    }
}

pub fn scan(
    shared: &Shared,
    database: u8,
    after: Option<Bytes>,
    len_max: usize,
) -> Result<Vec<FoundHead>, Error> {
    let mut found = Vec::new();
    let mut after = after;
    while found.len() < len_max {
        let (generation, (pending, end)) = {
            let state = shared.state.lock();
            let generation = state.current.generation(database);
            (generation, state.pending_names(generation, after.as_ref()))
        };
        let mut pending = pending.into_iter().peekable();
        let place = Place::Heads(generation);
        let range = keys::heads(after.as_deref(), end.as_deref());

        shared.records.scan(place, range, &mut |key, record| {
            let name = keys::name_of(key);
            while let Some((first, head)) = pending.next_if(|(first, _)| &first[..] < name) {
                found.extend(head.map(|head| FoundHead::new(first, &head)));
            }
            if pending.peek().is_none_or(|(first, _)| &first[..] != name) {
                let head = Head::decode(record).ok_or_else(|| malformed(name))?;
                found.push(FoundHead::new(Bytes::copy_from_slice(name), &head.bytes));
            }
            let is_enough = found.len() >= len_max;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;

        if found.len() < len_max {
            found.extend(pending.filter_map(|(name, head)| Some(FoundHead::new(name, &head?))));
        }
        match end {
            Some(end) => after = Some(end),
            None => break,
        }
    }
    found.truncate(len_max);
    Ok(found)
}

/// Counts the heads of a database. Keys of which nothing is known are looked up first.
pub fn count(shared: &Shared, database: u8) -> Result<KeyCount, Error> {
    // No layer is frozen with keys of which nothing is known while this is held.
    let _resolving = shared.resolving.lock();
    let generation = shared.state.lock().current.generation(database);
    resolve(shared, generation, usize::MAX)?;

    let state = shared.state.lock();
    let State { current, frozen, counts, .. } = &*state;
    let of_frozen = frozen.as_ref().map(|frozen| {
        let found = frozen.found.get(&generation).map(|found| found.present);
        frozen.layer.added(generation) - found.unwrap_or_default()
    });
    let on_disk = counts.get(&generation).copied().unwrap_or_default();
    Ok((on_disk + of_frozen.unwrap_or_default() + current.added(generation)).into())
}
