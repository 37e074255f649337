//! Connections that watch keys until their next EXEC.

use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The watch of one connection: whether a key that it watches has changed.
#[derive(Debug, Default)]
pub(crate) struct Watch(AtomicBool);

impl Watch {
    pub(crate) fn has_changed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set_changed(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A watch, and whether the key was there when it began.
type Watched = (Arc<Watch>, bool);

/// The watched keys of all connections.
#[derive(Debug, Default)]
pub(crate) struct Watchers(HashMap<(u8, Bytes), Vec<Watched>>);

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, database: u8, name: Bytes, watch: &Arc<Watch>, exists: bool) {
        self.0.entry((database, name)).or_default().push((Arc::clone(watch), exists));
    }

    pub(crate) fn remove(&mut self, database: u8, name: &Bytes, watch: &Arc<Watch>) {
        let key = (database, name.clone());
        let Some(watches) = self.0.get_mut(&key) else {
            return;
        };

        watches.retain(|(other, _)| !Arc::ptr_eq(other, watch));
        if watches.is_empty() {
            self.0.remove(&key);
        }
    }

    /// Notes that a key changed.
    pub(crate) fn touch(&self, database: u8, name: &Bytes) {
        if let Some(watches) = self.0.get(&(database, name.clone())) {
            watches.iter().for_each(|(watch, _)| watch.set_changed());
        }
    }

    /// Notes that a key expired: it changes for those who saw it. For the others it was gone
    /// before, though the store may still have it.
    pub(crate) fn expire(&self, database: u8, name: &Bytes) {
        if let Some(watches) = self.0.get(&(database, name.clone())) {
            let changed = watches.iter().filter(|(_, existed)| *existed);
            changed.for_each(|(watch, _)| watch.set_changed());
        }
    }

    /// Notes that the keys of a database are gone: those change that were there. Those change as
    /// well that others have taken the place of, as `is_replaced` says.
    pub(crate) fn touch_all(&self, database: u8, is_replaced: impl Fn(&Bytes) -> bool) {
        for ((_, name), watches) in self.0.iter().filter(|((other, _), _)| *other == database) {
            let is_replaced = is_replaced(name);
            let changed = watches.iter().filter(|(_, existed)| *existed || is_replaced);
            changed.for_each(|(watch, _)| watch.set_changed());
        }
    }

    /// The watched keys of a database.
    pub(crate) fn names(&self, database: u8) -> impl Iterator<Item = &Bytes> {
        let watched = self.0.keys().filter(move |(other, _)| *other == database);
        watched.map(|(_, name)| name)
    }
}
