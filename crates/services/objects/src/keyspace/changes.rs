//! Changes of keys within a hold, and what happens at the end of each command.

use super::slot::{Dirty, Touch};
use super::{Keyspace, Place};
use crate::notify::Class;
use raingauge_values::{Kind, Object, Value};

impl Keyspace {
    /// Notes that the running command changes a key.
    pub(crate) fn touch(&mut self, place: Place) {
        let command = self.command;
        let slot = self.slot_mut(place);
        if slot.touched_by == command {
            return;
        }

        slot.touched_by = command;
        let was_dirty = slot.is_dirty;
        self.mark_dirty(place);
        self.touched.push(Touch { place, was_dirty, is_new: false });
    }

    /// Takes back that the running command changes a key.
    pub(crate) fn untouch(&mut self, place: Place) {
        let Some(at) = self.touched.iter().rposition(|touch| touch.place == place) else {
            return;
        };

        let touch = self.touched.swap_remove(at);
        self.undo(touch);
    }

    /// Puts an object in the place of what a key had.
    pub(crate) fn put(&mut self, database: u8, name: &[u8], object: Object) {
        let place = self.find(database, name);
        let place = place.unwrap_or_else(|| self.add_blind(database, name));
        let is_new = self.slot(place).object.is_none();
        self.touch(place);

        let load = self.load_number();
        let now_ms = self.now_ms;
        let slot = self.slot_mut(place);
        slot.object = Some(object);
        slot.load = load;
        slot.used_ms = now_ms;
        if is_new && self.looks_for_new {
            self.notify(Class::New, "new", database, name);
        }
    }

    /// Gives a key an empty value where it has none.
    pub(crate) fn create(&mut self, place: Place, value: impl FnOnce() -> Value) {
        if self.slot(place).object.is_some() {
            return;
        }

        self.touch(place);
        if let Some(touch) = self.touched.iter_mut().rfind(|touch| touch.place == place) {
            touch.is_new = true;
        }

        let load = self.load_number();
        let slot = self.slot_mut(place);
        slot.load = load;
        slot.object = Some(Object::new(value()));

        let name = self.name(place).clone();
        self.notify(Class::New, "new", place.database, &name);
    }

    /// Takes the object of a key away.
    pub(crate) fn take(&mut self, place: Place) -> Option<Object> {
        self.slot(place).object.as_ref()?;
        self.touch(place);
        self.slot_mut(place).object.take()
    }

    /// Ends a command that succeeded: collections without entries go, watchers learn of changes.
    pub(crate) fn end_command(&mut self) {
        self.has_written |= !self.touched.is_empty();
        for at in 0..self.touched.len() {
            let Touch { place, was_dirty, .. } = self.touched[at];
            let object = self.slot(place).object.as_ref();
            if object.is_some_and(|object| object.value.is_empty_collection()) {
                self.slot_mut(place).object = None;
                let name = self.name(place).clone();
                self.notify(Class::Generic, "del", place.database, &name);
            }

            self.count_change(place, was_dirty);
            if !self.watchers.is_empty() {
                let name = self.name(place).clone();
                self.watchers.touch(place.database, &name);
            }
            if !self.waiting.is_empty() {
                self.set_ready(place);
            }
        }
        self.touched.clear();
        self.command += 1;
    }

    /// Notes that those who wait for a key may have something to pop.
    pub(super) fn set_ready(&mut self, place: Place) {
        let object = self.slot(place).object.as_ref();
        let pops =
            object.is_some_and(|object| matches!(object.value.kind(), Kind::List | Kind::Sorted));
        if pops {
            let name = self.name(place).clone();
            self.waiting.set_ready(place.database, &name);
        }
    }

    /// Ends a command that failed, which has changed nothing.
    pub(crate) fn undo_command(&mut self) {
        while let Some(touch) = self.touched.pop() {
            self.undo(touch);
        }
        self.command += 1;
    }

    /// Notes that a key differs from the store.
    pub(super) fn mark_dirty(&mut self, place: Place) {
        let slot = self.slot(place);
        let wide = slot.object.as_ref().and_then(|object| object.wide);
        if !slot.is_dirty {
            self.mark_dirty_wide(place, wide);
        }
    }

    /// As [`Keyspace::mark_dirty`], for a key whose wide object in the store is this one.
    pub(super) fn mark_dirty_wide(&mut self, place: Place, wide: Option<u64>) {
        let slot = self.slot_mut(place);
        slot.is_dirty = true;
        let stored = slot.stored;
        self.dirty.push(Dirty { place, stored, wide });
    }

    /// Counts what a command changed: the whole object where the group will have all of it, or by
    /// how much it grew or shrank.
    fn count_change(&mut self, place: Place, was_dirty: bool) {
        let before = self.slot(place).weight;
        self.count_weight(place);

        let slot = self.slot(place);
        let is_wide = slot.object.as_ref().is_none_or(|object| object.wide.is_some());
        let is_part = was_dirty || is_wide;
        self.changed_bytes += if is_part { slot.weight.abs_diff(before) } else { slot.weight };
    }

    /// Counts what a key takes after a change.
    pub(super) fn count_weight(&mut self, place: Place) {
        let weight = self.slot(place).weigh(self.name(place));
        let slot = self.slot_mut(place);
        let before = std::mem::replace(&mut slot.weight, weight);
        let is_on_probation = slot.is_on_probation;
        self.resident_bytes = self.resident_bytes + weight - before;
        if is_on_probation {
            let probation = &mut self.databases[usize::from(place.database)].probation;
            probation.bytes = probation.bytes + weight - before;
        }
    }

    fn undo(&mut self, touch: Touch) {
        let slot = self.slot_mut(touch.place);
        slot.touched_by = 0;
        if touch.is_new {
            slot.object = None;
        }
        if !touch.was_dirty {
            slot.is_dirty = false;
            let at = self.dirty.iter().rposition(|dirty| dirty.place == touch.place);
            at.map(|at| self.dirty.swap_remove(at));
        }
    }
}
