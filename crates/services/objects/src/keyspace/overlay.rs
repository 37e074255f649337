//! What a hold has changed so far, over what the store answers about all keys.

use super::{Keyspace, Place};
use crate::answer::{Answer, Page};
use crate::scan::Walk;
use bytes::Bytes;
use raingauge_resp::{Arguments, Failure, glob};
use raingauge_values::Kind;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The keys of one database that a hold has changed so far.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Whether the hold flushed the database: what the store answered about it is void.
    is_flushed: bool,
    keys: HashMap<Bytes, ChangedKey>,
}

#[derive(Clone, Copy, Debug)]
struct ChangedKey {
    /// Whether the store has an object of that name.
    was_there: bool,
    /// The type of the object that the key has now; `None` without one.
    kind: Option<Kind>,
}

impl Keyspace {
    /// How many changes of the hold an overlay looks at.
    pub(crate) fn overlay_len(&self) -> usize {
        self.sealed.len() + self.dirty.len()
    }

    /// What this hold has changed in a database so far. The commands of the hold know what they
    /// replace, see [`Keyspace::look_for_new`].
    pub(crate) fn overlay(&self, database: u8) -> Overlay {
        let is_flushed = self.databases[usize::from(database)].is_flushed;
        let mut keys = HashMap::new();
        for change in self.sealed.iter().chain(&self.dirty) {
            let place = change.place;
            if place.database != database {
                continue;
            }

            // The first change of a key knows what the store has, its place what there is now.
            if let Entry::Vacant(entry) = keys.entry(self.name(place).clone()) {
                let was_there = change.stored.is_held();
                entry.insert(ChangedKey { was_there, kind: self.kind(place) });
            }
        }
        Overlay { is_flushed, keys }
    }

    fn kind(&self, place: Place) -> Option<Kind> {
        self.slot(place).object.as_ref().map(|object| object.value.kind())
    }
}

impl Overlay {
    /// The answer to a command about all keys, as the changes make it.
    pub(crate) fn apply(
        &self,
        answer: Answer,
        arguments: Arguments<'_>,
    ) -> Result<Answer, Failure> {
        Ok(match answer {
            Answer::Count(count) => Answer::Count(self.count(count)),
            Answer::Any(names) => Answer::Any(self.names(names, |_, _| true)),
            Answer::Names(names) => {
                let pattern = arguments.at(1);
                let wants = |name: &Bytes, _| glob::matches(pattern, name, false);
                Answer::Names(self.names(names, wants))
            }
            Answer::Page(page) => {
                let walk = Walk::parse(arguments)?;
                let range = page.range.clone();
                let wants = |name: &Bytes, kind: Kind| {
                    range.has(name) && walk.wants(name, Some(kind.name()))
                };
                Answer::Page(Page { names: self.names(page.names, wants), ..page })
            }
        })
    }

    fn count(&self, stored: u64) -> u64 {
        let now = self.keys.values().filter(|key| key.kind.is_some()).count() as u64;
        if self.is_flushed {
            return now;
        }
        let before = self.keys.values().filter(|key| key.was_there).count() as u64;
        (stored + now).saturating_sub(before)
    }

    fn names(&self, mut names: Vec<Bytes>, wants: impl Fn(&Bytes, Kind) -> bool) -> Vec<Bytes> {
        if self.is_flushed {
            names.clear();
        }
        names.retain(|name| !self.keys.contains_key(name));
        let changed = self.keys.iter().filter_map(|(name, key)| Some((name, key.kind?)));
        names.extend(
            changed.filter(|(name, kind)| wants(name, *kind)).map(|(name, _)| name.clone()),
        );
        names
    }
}
