//! What is in memory: objects and known absences that the store brought.

use super::{Keyspace, Loaded, LoadedObject, Miss, Place, Slot, name};
use crate::notify::Class;
use bytes::Bytes;
use raingauge_ports::objects::{INTERNAL_DATABASE, Key, Old};
use raingauge_resp::Failure;
use raingauge_values::{Object, Text, Value};

impl Keyspace {
    pub(crate) fn miss(&mut self, database: u8, name: &[u8]) -> Miss {
        let name = name::copy_of(name);
        let load = self.loads.begin(database, &name);
        Miss::new(Key { database, name }, load)
    }

    /// Makes a key resident, unless it is already, or has changed since it was read.
    /// Returns why its object cannot be read.
    pub(crate) fn insert(&mut self, loaded: Loaded) -> Option<(Miss, Failure)> {
        let Loaded { miss, object, claim } = loaded;
        if let LoadedObject::Changed(failure) = object {
            let holds = !miss.is_stale() && self.find(miss.key.database, &miss.key.name).is_none();
            return holds.then_some((miss, failure));
        }

        let Miss { key: Key { database, name }, load, .. } = miss;
        // Those who wait for their turn look for it when this hold is over.
        if claim.is_some() {
            load.note_insert();
        }
        let holds = self.loads.end(database, &name, load);
        if !holds || self.find(database, &name).is_some() {
            return None;
        }
        self.totals.loads += 1;

        let (object, stored, expired) = match object {
            LoadedObject::Absent => (None, Old::Absent, None),
            LoadedObject::Whole(object) => {
                let stored = Old::held(object.expires_ms);
                (Some(object), stored, None)
            }
            LoadedObject::Expired { wide } => (None, Old::Expiring, Some(wide)),
            LoadedObject::Resident | LoadedObject::Changed(_) => return None,
        };

        let floor = self.databases[usize::from(database)].floor;
        let stamp = self.shards.floor(database, &name).max(floor);
        let place = self.add_slot(database, name, object, stored);
        let slot = self.slot_mut(place);
        slot.stamp = stamp;
        slot.uses = -1;
        if let Some(wide) = expired {
            self.mark_dirty_wide(place, wide);
            self.note_expired(place);
        }
        None
    }

    /// Makes a key that is not resident absent, where its database was flushed in this hold.
    pub(crate) fn add_flushed(&mut self, database: u8, name: &[u8]) -> Option<Place> {
        let is_flushed = self.databases[usize::from(database)].is_flushed;
        is_flushed.then(|| self.add_slot(database, name::copy_of(name), None, Old::Absent))
    }

    /// Makes a key resident whose object in the store is not known, for a change that does not
    /// depend on it.
    pub(crate) fn add_blind(&mut self, database: u8, name: &[u8]) -> Place {
        self.add_slot(database, name::copy_of(name), None, Old::Unknown)
    }

    fn add_slot(
        &mut self,
        database: u8,
        name: Bytes,
        object: Option<Object>,
        stored: Old,
    ) -> Place {
        let load = self.load_number();
        let mut slot = Slot::new(object, stored, self.now_ms, load);
        slot.weight = slot.weigh(&name);
        self.resident_bytes += slot.weight;

        let in_database = &mut self.databases[usize::from(database)];
        let (index, replaced) = in_database.slots.insert_full(name, slot);
        debug_assert!(replaced.is_none(), "a key becomes resident once");
        in_database.try_out(index, &mut self.gone);
        Place { database, index }
    }

    /// Takes a key of a command: removes its object if it has expired, and marks it as used.
    /// Raises `newest` to its stamp, or to that of its database where that is newer: a flush or a
    /// swap changes all keys. Returns whether it has an object.
    pub(crate) fn admit(&mut self, place: Place, uses: bool, newest: &mut u64) -> bool {
        if self.slot(place).is_expired(self.expired_ms) {
            self.expire(place);
        }

        let now_ms = self.now_ms;
        let floor = self.databases[usize::from(place.database)].floor;
        let slot = self.slot_mut(place);
        if uses {
            slot.count_use();
            slot.used_ms = now_ms;
        }
        *newest = slot.stamp.max(floor).max(*newest);
        slot.object.is_some()
    }

    /// Makes a key resident for its removal alone: its object is too large to be read. The command
    /// may name it several times.
    pub(crate) fn add_unread(&mut self, database: u8, name: &[u8]) {
        if self.find(database, name).is_some() {
            return;
        }

        let place = self.add_blind(database, name);
        self.slot_mut(place).object = Some(Object::new(Value::Text(Text::new(b""))));
        self.mark_dirty(place);
    }

    pub(crate) fn count_hits(&mut self, hits: u64) {
        self.totals.hits += hits;
    }

    /// Counts a read of a key that is not there, with an event or without one.
    pub(crate) fn count_miss(&mut self, database: u8, name: &[u8], with_event: bool) {
        self.totals.misses += 1;
        if with_event {
            self.notify(Class::Missed, "keymiss", database, name);
        }
    }

    /// Removes an object whose time is over.
    fn expire(&mut self, place: Place) {
        self.mark_dirty(place);
        self.slot_mut(place).object = None;
        self.count_weight(place);
        self.note_expired(place);
    }

    fn note_expired(&mut self, place: Place) {
        self.expired += 1;
        self.expired_internal += u64::from(place.database == INTERNAL_DATABASE);
        let name = self.name(place).clone();
        self.watchers.expire(place.database, &name);

        let messages = self.messages.len();
        self.notify(Class::Expired, "expired", place.database, &name);
        self.expired_messages.extend(messages..self.messages.len());
    }
}
