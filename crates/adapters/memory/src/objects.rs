//! Objects in memory.

use bytes::Bytes;
use parking_lot::Mutex;
use raingauge_ports::BoxFuture;
use raingauge_ports::objects::{
    Durability, Effect, EntryPage, Error, FoundHead, Group, Key, KeyCount, ObjectControl,
    ObjectStore, Old, Progress, Status, SyncMode,
};
use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::mem::swap;
use std::ops::Bound;
use tokio::sync::Notify;

/// Groups are as durable as they will be when they are submitted, unless a test holds them.
#[derive(Default)]
pub struct Objects {
    content: Mutex<Content>,
    progress: Progress,
    changed: Notify,
}

#[derive(Default)]
struct Content {
    databases: BTreeMap<u8, Database>,
    /// The stamp of the newest group.
    stamp: u64,
    next_id: u64,
    sync_mode: SyncMode,
    lent_bytes: usize,
    is_held: bool,
    is_full: bool,
    closed: Option<String>,
    checkpoints: u64,
}

#[derive(Default)]
struct Database {
    heads: BTreeMap<Bytes, Head>,
    entries: BTreeMap<(u64, Bytes), Bytes>,
}

struct Head {
    bytes: Bytes,
    expires_ms: Option<i64>,
    wide: Option<u64>,
}

impl Content {
    fn database(&mut self, number: u8) -> &mut Database {
        self.databases.entry(number).or_default()
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::PutHead { key, head: bytes, expires_ms, wide, old } => {
                self.note_id(wide);
                let database = self.database(key.database);
                let head = Head { bytes, expires_ms, wide };
                let before = database.heads.insert(key.name, head);
                check_claim(old, before.as_ref());
                database.leave(before.filter(|before| before.wide != wide), old);
            }
            Effect::DropHead { key, old } => {
                let database = self.database(key.database);
                let before = database.heads.remove(&key.name);
                check_claim(old, before.as_ref());
                database.leave(before, old);
            }
            Effect::PutEntry { database, id, sub, value } => {
                self.note_id(Some(id));
                self.database(database).entries.insert((id, sub), value);
            }
            Effect::DropEntry { database, id, sub } => {
                self.database(database).entries.remove(&(id, sub));
            }
            Effect::Kill { database, id } => self.database(database).kill(id),
            Effect::Flush { database } => *self.database(database) = Database::default(),
            Effect::Swap { a, b } if a != b => {
                let mut of_a = self.databases.remove(&a).unwrap_or_default();
                swap(&mut of_a, self.database(b));
                self.databases.insert(a, of_a);
            }
            Effect::Swap { .. } => {}
        }
    }

    fn note_id(&mut self, id: Option<u64>) {
        self.next_id = self.next_id.max(id.map_or(0, |id| id + 1));
    }
}

/// Panics if a group is wrong about what a key had: other engines count by it.
fn check_claim(claim: Old, before: Option<&Head>) {
    let before = before.map_or(Old::Absent, |before| Old::held(before.expires_ms));
    assert!(claim == Old::Unknown || claim == before, "{before:?} is taken for {claim:?}");
}

impl Database {
    /// Kills the wide object that a key leaves behind, where that is left to the store.
    fn leave(&mut self, before: Option<Head>, old: Old) {
        if let (Old::Unknown, Some(id)) = (old, before.and_then(|before| before.wide)) {
            self.kill(id);
        }
    }

    fn kill(&mut self, id: u64) {
        self.entries.retain(|(owner, _), _| *owner != id);
    }
}

impl Objects {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes [`ObjectStore::durable`] wait for the groups that are submitted from now on.
    pub fn hold(&self) {
        self.content.lock().is_held = true;
    }

    /// Makes all groups durable.
    pub fn release(&self) {
        let mut content = self.content.lock();
        content.is_held = false;
        self.settle(content.stamp);
    }

    /// Refuses groups as on a disk that is almost full, but for those that only remove.
    pub fn set_full(&self, is_full: bool) {
        self.content.lock().is_full = is_full;
    }

    /// Closes the store, as a failed write does.
    pub fn fail(&self, why: &str) {
        self.content.lock().closed = Some(why.to_owned());
        self.changed.notify_waiters();
    }

    /// Wide objects with entries to which no head leads: a group left them behind.
    pub fn orphans(&self) -> Vec<(u8, u64)> {
        let content = self.content.lock();
        let mut orphans = Vec::new();
        for (number, database) in &content.databases {
            let led: BTreeSet<u64> = database.heads.values().filter_map(|head| head.wide).collect();
            let ids = database.entries.keys().map(|(id, _)| *id).filter(|id| !led.contains(id));
            orphans.extend(ids.map(|id| (*number, id)));
        }
        orphans.dedup();
        orphans
    }

    fn settle(&self, stamp: u64) {
        self.progress.raise_written(stamp);
        self.progress.raise_synced(stamp);
        self.changed.notify_waiters();
    }

    fn read<T>(&self, read: impl FnOnce(&mut Content) -> T) -> BoxFuture<'_, Result<T, Error>>
    where
        T: Send + 'static,
    {
        Box::pin(ready(Ok(read(&mut self.content.lock()))))
    }
}

/// The bound of what lies behind a name.
fn behind(after: Option<Bytes>) -> Bound<Bytes> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

impl ObjectStore for Objects {
    fn heads(
        &self,
        keys: Vec<Key>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Option<Bytes>>, Error>> {
        self.read(|content| {
            let head = |key: &Key| {
                let heads = &content.databases.get(&key.database)?.heads;
                heads.get(&key.name).map(|head| head.bytes.clone())
            };
            let mut bytes = 0;
            let mut heads = Vec::new();
            for key in &keys {
                if bytes > bytes_max {
                    break;
                }
                let head = head(key);
                bytes += head.as_ref().map_or(0, Bytes::len);
                heads.push(head);
            }
            heads
        })
    }

    fn entries(
        &self,
        database: u8,
        id: u64,
        after: Option<Bytes>,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<EntryPage, Error>> {
        self.read(|content| {
            let from = match after {
                Some(after) => Bound::Excluded((id, after)),
                None => Bound::Included((id, Bytes::new())),
            };
            let mut page = EntryPage::default();
            let mut bytes = 0;

            let entries = &content.database(database).entries;
            let own = entries.range((from, Bound::Unbounded));
            for ((_, sub), value) in own.take_while(|((owner, _), _)| *owner == id) {
                if bytes > bytes_max {
                    page.has_more = true;
                    break;
                }
                bytes += sub.len() + value.len();
                page.entries.push((sub.clone(), value.clone()));
            }
            page
        })
    }

    fn scan(
        &self,
        database: u8,
        after: Option<Bytes>,
        len_max: usize,
    ) -> BoxFuture<'_, Result<Vec<FoundHead>, Error>> {
        self.read(|content| {
            let heads = content.database(database).heads.range((behind(after), Bound::Unbounded));
            let found = heads.map(|(name, head)| FoundHead::new(name.clone(), &head.bytes));
            found.take(len_max).collect()
        })
    }

    fn count(&self, database: u8) -> BoxFuture<'_, Result<KeyCount, Error>> {
        self.read(|content| {
            let heads = &content.database(database).heads;
            let expiring = heads.values().filter(|head| head.expires_ms.is_some()).count();
            KeyCount { keys: heads.len() as u64, expiring: expiring as u64 }
        })
    }

    fn due(&self, until_ms: i64, len_max: usize) -> BoxFuture<'_, Result<Vec<Key>, Error>> {
        self.read(|content| {
            let heads = content.databases.iter().flat_map(|(number, database)| {
                database.heads.iter().map(|(name, head)| (*number, name, head))
            });
            let mut due: Vec<_> = heads
                .filter_map(|(number, name, head)| {
                    let at_ms = head.expires_ms.filter(|at_ms| *at_ms <= until_ms)?;
                    Some((at_ms, Key::new(number, name.clone())))
                })
                .collect();

            due.sort_unstable();
            due.into_iter().map(|(_, key)| key).take(len_max).collect()
        })
    }

    fn submit(&self, group: Group) -> Result<u64, Error> {
        group.check()?;
        let mut content = self.content.lock();
        if let Some(why) = &content.closed {
            return Err(Error::Closed(why.clone()));
        }
        if content.is_full && !group.is_removal() {
            return Err(Error::Full { free_bytes: 0, reserve_bytes: 1 });
        }

        content.stamp += 1;
        group.effects.into_iter().for_each(|effect| content.apply(effect));
        self.progress.raise_submitted(content.stamp);
        if !content.is_held {
            self.settle(content.stamp);
        }
        Ok(content.stamp)
    }

    fn durable(&self, stamp: u64, durability: Durability) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            loop {
                let changed = self.changed.notified();
                let reached = match durability {
                    Durability::Written => self.progress.written(),
                    Durability::Synced => self.progress.synced(),
                };
                if reached >= stamp {
                    return Ok(());
                }
                if let Some(why) = &self.content.lock().closed {
                    return Err(Error::Closed(why.clone()));
                }
                changed.await;
            }
        })
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl ObjectControl for Objects {
    fn status(&self) -> Status {
        let content = self.content.lock();
        let keys = content.databases.values().map(|database| database.heads.len() as u64).sum();
        Status {
            next_id: content.next_id,
            keys,
            lent_bytes: content.lent_bytes as u64,
            checkpoints: content.checkpoints,
            closed: content.closed.clone(),
            ..Status::default()
        }
    }

    fn sync_mode(&self) -> SyncMode {
        self.content.lock().sync_mode
    }

    fn set_sync_mode(&self, mode: SyncMode) {
        self.content.lock().sync_mode = mode;
    }

    fn lend(&self, bytes: usize) {
        self.content.lock().lent_bytes = bytes;
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.read(|content| content.checkpoints += 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_ports::contract::objects as contract;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        contract::suite(async || Objects::new()).await;
    }

    #[test]
    fn a_full_twin_takes_what_only_removes() {
        let store = Objects::new();
        store.set_full(true);
        let key = || Key::new(0, "a");
        let put = Effect::PutHead {
            key: key(),
            head: Bytes::new(),
            expires_ms: None,
            wide: None,
            old: Old::Absent,
        };
        let drop = Effect::DropHead { key: key(), old: Old::Absent };

        let removal = Group { effects: vec![drop.clone(), Effect::Flush { database: 0 }] };
        assert_eq!(store.submit(removal), Ok(1));
        let mixed = store.submit(Group { effects: vec![drop, put] });
        assert!(matches!(mixed, Err(Error::Full { .. })), "{mixed:?}");
    }
}
