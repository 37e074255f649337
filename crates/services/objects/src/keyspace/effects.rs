//! From changes to effects: the end of a hold.

use super::eviction::Probation;
use super::slot::Dirty;
use super::{Keyspace, Place, Slot};
use crate::failures;
use bytes::Bytes;
use raingauge_ports::objects::{Effect, Error, Group, Key, Old};
use raingauge_values::{Object, head};
use std::collections::HashSet;

impl Keyspace {
    /// Whether the hold has changed anything so far.
    pub(crate) fn has_group(&self) -> bool {
        !self.dirty.is_empty() || !self.effects.is_empty()
    }

    /// Whether a command of the hold has changed anything so far. If not, the group has what
    /// expired, and nothing else.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Ends a hold: `submit` takes its group, if there is one, and gives its stamp. When it
    /// refuses, what changed is forgotten, so that memory agrees with the store, and nothing is
    /// published; but of a store that may take groups again, the first `answered` messages are,
    /// since the replies to their commands stay.
    pub(crate) fn finish(
        &mut self,
        answered: usize,
        submit: impl FnOnce(Group) -> Result<u64, Error>,
    ) -> Result<Option<u64>, Error> {
        self.seal();
        let effects = std::mem::take(&mut self.effects);
        let submitted =
            if effects.is_empty() { Ok(None) } else { submit(Group { effects }).map(Some) };

        match submitted {
            Ok(stamp) => {
                self.newest_stamp = stamp.unwrap_or(self.newest_stamp);
                self.stamp_sealed(self.newest_stamp);
                self.deliver(stamp.unwrap_or_default());
                self.waiting.end_hold(self.newest_stamp);
                self.totals.groups += u64::from(stamp.is_some());
                self.totals.expired += self.expired - self.expired_internal;
                Ok(stamp)
            }
            Err(error) => {
                self.forget_sealed();
                self.keep_messages(if failures::is_passing(&error) { answered } else { 0 });
                self.deliver(0);
                if failures::is_passing(&error) {
                    self.waiting.retry_served();
                } else {
                    self.waiting.refuse_served(&failures::of_store(&error));
                }
                Err(error)
            }
        }
    }

    /// Removes all objects of a database.
    pub(crate) fn flush(&mut self, database: u8) {
        self.seal();
        self.has_written = true;
        self.watchers.touch_all(database, |_| false);

        self.clear_database(database);
        self.sealed.retain(|change| change.place.database != database);
        self.databases[usize::from(database)].is_flushed = true;
        self.replaced.push(database);
        self.effects.push(Effect::Flush { database });
    }

    /// Exchanges two databases.
    pub(crate) fn swap(&mut self, a: u8, b: u8) {
        self.seal();
        self.has_written = true;
        for (one, other) in [(a, b), (b, a)] {
            let has_object = |database: u8, name: &Bytes| {
                let slots = &self.databases[usize::from(database)].slots;
                slots.get(name).is_none_or(|slot| slot.object.is_some())
            };
            self.watchers.touch_all(one, |name| has_object(other, name));
        }

        self.databases.swap(usize::from(a), usize::from(b));
        for Dirty { place, .. } in &mut self.sealed {
            place.database = match place.database {
                database if database == a => b,
                database if database == b => a,
                database => database,
            };
        }
        self.loads.change_all();
        self.set_swapped_ready(a, b);
        self.replaced.extend([a, b]);
        self.effects.push(Effect::Swap { a, b });
    }

    /// Notes which keys of two exchanged databases may have something to pop. Those that are not in
    /// memory come last: a command that waits for one of them is tried again, unless another key
    /// serves it.
    fn set_swapped_ready(&mut self, a: u8, b: u8) {
        let mut unknown = Vec::new();
        for (database, name) in self.waiting.keys_of(a, b) {
            match self.find(database, &name) {
                Some(place) => self.set_ready(place),
                None => unknown.push((database, name)),
            }
        }
        for (database, name) in unknown {
            self.waiting.set_ready(database, &name);
        }
    }

    /// Makes the effects of all changes so far.
    fn seal(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        let mut left = Vec::new();
        for change in &dirty {
            left.extend(self.seal_one(*change));
        }

        // A wide object that another key of its database has now was renamed.
        if !left.is_empty() {
            let wide_of = |change: &Dirty| {
                let object = self.slot(change.place).object.as_ref()?;
                Some((change.place.database, object.wide?))
            };
            let moved: HashSet<(u8, u64)> = dirty.iter().filter_map(wide_of).collect();
            left.retain(|left| !moved.contains(left));
        }
        self.effects.extend(left.into_iter().map(|(database, id)| Effect::Kill { database, id }));

        dirty.clear();
        self.dirty = dirty;
    }

    /// Makes the effects of one key, and returns the wide object that it leaves behind.
    fn seal_one(&mut self, change: Dirty) -> Option<(u8, u64)> {
        let Dirty { place, stored, wide } = change;
        let Place { database, .. } = place;
        let name = self.name(place).clone();
        self.loads.change(database, &name);
        self.sealed.push(change);

        let slot = &mut self.databases[usize::from(database)].slots[place.index];
        slot.is_dirty = false;
        let object = slot.object.as_ref();
        slot.stored = object.map_or(Old::Absent, |object| Old::held(object.expires_ms));
        let key = Key { database, name };

        let Some(object) = &mut slot.object else {
            if stored != Old::Absent {
                self.effects.push(Effect::DropHead { key, old: stored });
            }
            return wide.map(|id| (database, id));
        };

        entry_effects(object, database, &mut self.next_id, &mut self.effects);
        let now_wide = object.wide;
        let expires_ms = object.expires_ms;
        let head = head::encode(object);
        self.effects.push(Effect::PutHead { key, head, expires_ms, wide: now_wide, old: stored });
        wide.filter(|_| wide != now_wide).map(|id| (database, id))
    }

    /// Gives the keys of the group its stamp.
    fn stamp_sealed(&mut self, stamp: u64) {
        let sealed = std::mem::take(&mut self.sealed);
        for change in &sealed {
            self.slot_mut(change.place).stamp = stamp;
        }

        for database in self.replaced.drain(..) {
            let database = &mut self.databases[usize::from(database)];
            database.floor = stamp;
            database.is_flushed = false;
        }
        self.sealed = sealed;
        self.sealed.clear();
    }

    /// Forgets the keys of a group that the store refused: they are loaded again, as new as they
    /// were.
    fn forget_sealed(&mut self) {
        let named = |Dirty { place, .. }: &Dirty| (place.database, self.name(*place).clone());
        let names: Vec<_> = self.sealed.iter().map(named).collect();
        for (database, name) in names {
            let stamp = self.remove_slot(database, &name).map_or(0, |slot| slot.stamp);
            self.shards.keep_stamp(database, &name, stamp);
        }

        self.sealed.clear();
        for database in std::mem::take(&mut self.replaced) {
            self.clear_database(database);
            let database = &mut self.databases[usize::from(database)];
            database.floor = self.newest_stamp;
            database.is_flushed = false;
        }
    }

    /// Empties the memory of a database; its objects in the store stay.
    fn clear_database(&mut self, database: u8) {
        let database = &mut self.databases[usize::from(database)];
        let slots = std::mem::take(&mut database.slots);
        database.probation = Probation::default();
        self.resident_bytes -= slots.values().map(|slot| slot.weight).sum::<usize>();
        self.loads.change_all();
        self.dropped.extend(slots.into_values());
    }

    fn remove_slot(&mut self, database: u8, name: &Bytes) -> Option<Slot> {
        let in_database = &mut self.databases[usize::from(database)];
        let slot = in_database.slots.swap_remove(name)?;
        in_database.probation.bytes -= if slot.is_on_probation { slot.weight } else { 0 };
        self.resident_bytes -= slot.weight;
        self.loads.change(database, name);
        Some(slot)
    }

    /// Keeps the first messages of a refused group, but for those about keys that expired: they
    /// will expire again.
    fn keep_messages(&mut self, answered: usize) {
        let mut expired = self.expired_messages.drain(..).peekable();
        let mut at = 0;
        self.messages.retain(|_| {
            let is_expiry = expired.next_if_eq(&at).is_some();
            at += 1;
            at <= answered && !is_expiry
        });
    }

    /// Sends the messages so far to their subscribers. Each gets there when the group of the stamp,
    /// 0 for none, and all earlier groups of the connection are durable.
    pub(crate) fn deliver(&mut self, stamp: u64) {
        self.expired_messages.clear();
        for mut message in self.messages.drain(..) {
            message.stamp = stamp.max(self.last_stamp);
            self.shared.pubsub.deliver(&message);
        }
    }
}

/// Writes the entries of a wide object that changed, or all of one that becomes wide.
fn entry_effects(object: &mut Object, database: u8, next_id: &mut u64, effects: &mut Vec<Effect>) {
    let Some(collection) = object.value.collection_mut() else {
        object.wide = None;
        return;
    };

    let Some(id) = object.wide else {
        if collection.fits_packed() {
            return collection.untrack();
        }

        let id = *next_id;
        *next_id += 1;
        object.wide = Some(id);
        let entry = |(sub, value)| Effect::PutEntry { database, id, sub, value };
        effects.extend(collection.entries().map(entry));
        collection.untrack();
        return collection.track();
    };

    let effect = |change: raingauge_values::Change| match change.value {
        Some(value) => Effect::PutEntry { database, id, sub: change.sub, value },
        None => Effect::DropEntry { database, id, sub: change.sub },
    };
    effects.extend(collection.take_changes().into_iter().map(effect));
}
