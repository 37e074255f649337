//! Random groups, as a service makes them, and the twin in memory that they are compared with.

use super::super::state::Shared;
use super::super::{expiry, reader};
use crate::files::simulated::Random;
use bytes::Bytes;
use raingauge_memory::Objects;
use raingauge_ports::contract::books::wait;
use raingauge_ports::objects::{Effect, Group, Key, ObjectStore, Old};
use std::collections::BTreeMap;

const DATABASES: [u8; 3] = [0, 1, 16];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const SUBS: [&str; 4] = ["", "f", "g", "h"];
/// A time at which what expires in the past is due, however an engine rounds.
const NOW_MS: i64 = 1_000_000;
const FAR_MS: i64 = 9_000_000_000_000;

/// All groups that were submitted, and what a service knows after them.
pub struct Scene {
    random: Random,
    pub groups: Vec<Group>,
    heads: BTreeMap<(u8, &'static str), KnownHead>,
    next_id: u64,
    values: u64,
}

/// What a service knows of a head.
#[derive(Clone, Copy)]
struct KnownHead {
    /// The wide object that it describes.
    wide: Option<u64>,
    expires_ms: Option<i64>,
}

impl Scene {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed ^ 0x0b7e),
            groups: Vec::new(),
            heads: BTreeMap::new(),
            next_id: 0,
            values: 0,
        }
    }

    /// A group of a few commands, which the caller submits.
    pub fn group(&mut self) -> Group {
        let mut effects = Vec::new();
        for _ in 0..self.random.below(4) {
            self.command(&mut effects);
        }
        let group = Group { effects };
        self.groups.push(group.clone());
        group
    }

    /// Takes back the last group, which was refused, and all behind a stamp.
    pub fn keep(&mut self, stamp: u64) {
        self.groups.truncate(stamp as usize);
        self.heads.clear();
        for group in std::mem::take(&mut self.groups) {
            for effect in &group.effects {
                self.learn(effect);
            }
            self.groups.push(group);
        }
    }

    fn learn(&mut self, effect: &Effect) {
        let name_of = |key: &Key| {
            let name = NAMES.iter().find(|name| name.as_bytes() == key.name);
            (key.database, *name.expect("one of these"))
        };
        match effect {
            Effect::PutHead { key, wide, expires_ms, .. } => {
                let head = KnownHead { wide: *wide, expires_ms: *expires_ms };
                self.heads.insert(name_of(key), head);
            }
            Effect::DropHead { key, .. } => drop(self.heads.remove(&name_of(key))),
            Effect::Flush { database } => self.heads.retain(|(of, _), _| of != database),
            Effect::Swap { a, b } => {
                let other = |of: u8| {
                    if of == *a {
                        *b
                    } else if of == *b {
                        *a
                    } else {
                        of
                    }
                };
                let heads = std::mem::take(&mut self.heads).into_iter();
                self.heads = heads.map(|((of, name), head)| ((other(of), name), head)).collect();
            }
            _ => {}
        }
    }

    fn push(&mut self, effects: &mut Vec<Effect>, effect: Effect) {
        self.learn(&effect);
        effects.push(effect);
    }

    fn value(&mut self) -> Bytes {
        self.values += 1;
        // Now and then one that fjall keeps apart, and that makes a layer grow.
        let len = if self.random.chance(10) { 700 } else { 0 };
        Bytes::from(format!("value {:>len$}", self.values))
    }

    fn key(&mut self) -> (u8, &'static str) {
        let database = DATABASES[self.random.below(DATABASES.len())];
        (database, NAMES[self.random.below(NAMES.len())])
    }

    fn old(&self, key: (u8, &'static str)) -> Old {
        self.heads.get(&key).map_or(Old::Absent, |head| Old::held(head.expires_ms))
    }

    fn wide(&self, key: (u8, &'static str)) -> Option<u64> {
        self.heads.get(&key)?.wide
    }

    /// What a service says of a head that goes. It kills the wide object if it says what was there.
    fn leave(&mut self, key: (u8, &'static str), effects: &mut Vec<Effect>) -> Old {
        if self.random.chance(50) {
            return Old::Unknown;
        }
        if let Some(id) = self.wide(key) {
            effects.push(Effect::Kill { database: key.0, id });
        }
        self.old(key)
    }

    fn put(&mut self, key: (u8, &'static str), wide: Option<u64>, old: Old) -> Effect {
        let expires_ms = match self.random.below(6) {
            0 => Some(1_000 + self.random.below(5_000) as i64),
            1 => Some(FAR_MS + self.random.below(1_000) as i64),
            _ => None,
        };
        let head = self.value();
        Effect::PutHead { key: Key::new(key.0, key.1), head, expires_ms, wide, old }
    }

    fn command(&mut self, effects: &mut Vec<Effect>) {
        let key = self.key();
        match self.random.below(100) {
            0..35 => {
                let old = self.leave(key, effects);
                let put = self.put(key, None, old);
                self.push(effects, put);
            }
            35..50 => {
                let old = self.leave(key, effects);
                self.push(effects, Effect::DropHead { key: Key::new(key.0, key.1), old });
            }
            50..65 => {
                let old = self.leave(key, effects);
                let id = self.next_id;
                self.next_id += 1;
                let put = self.put(key, Some(id), old);
                self.push(effects, put);
                self.change_entries(key.0, id, effects);
            }
            65..85 => {
                if let Some(id) = self.wide(key) {
                    let old = if self.random.chance(50) { self.old(key) } else { Old::Unknown };
                    let put = self.put(key, Some(id), old);
                    self.push(effects, put);
                    self.change_entries(key.0, id, effects);
                }
            }
            85..93 => self.rename(key, effects),
            93..96 => self.push(effects, Effect::Flush { database: key.0 }),
            _ => {
                let other = DATABASES[self.random.below(DATABASES.len())];
                self.push(effects, Effect::Swap { a: key.0, b: other });
            }
        }
    }

    fn change_entries(&mut self, database: u8, id: u64, effects: &mut Vec<Effect>) {
        for _ in 0..1 + self.random.below(3) {
            let sub = Bytes::from(SUBS[self.random.below(SUBS.len())]);
            let effect = if self.random.chance(70) {
                Effect::PutEntry { database, id, sub, value: self.value() }
            } else {
                Effect::DropEntry { database, id, sub }
            };
            effects.push(effect);
        }
    }

    /// Moves a head to another key of its database.
    fn rename(&mut self, from: (u8, &'static str), effects: &mut Vec<Effect>) {
        let to = (from.0, NAMES[self.random.below(NAMES.len())]);
        let Some(head) = self.heads.get(&from).copied().filter(|_| from.1 != to.1) else {
            return;
        };
        let old = self.old(from);
        let dropped = Effect::DropHead { key: Key::new(from.0, from.1), old };
        self.push(effects, dropped);
        if let Some(id) = self.wide(to) {
            effects.push(Effect::Kill { database: to.0, id });
        }
        let old = self.old(to);
        let put = self.put(to, head.wide, old);
        self.push(effects, put);
    }

    /// A twin to which the groups up to a stamp were submitted.
    pub fn twin(&self, stamp: u64) -> Objects {
        let twin = Objects::new();
        for group in &self.groups[..stamp as usize] {
            twin.submit(group.clone()).expect("it is taken");
        }
        assert_eq!(twin.orphans(), [], "the scene leaves nothing behind");
        twin
    }

    /// Compares all that can be read.
    pub fn compare(&mut self, shared: &Shared) {
        let stamp = shared.progress.submitted();
        let twin = self.twin(stamp);
        for database in DATABASES {
            let expected = wait(twin.scan(database, None, 100)).expect("heads");
            let found = reader::scan(shared, database, None, 100).expect("heads");
            assert_eq!(found, expected, "keys of {database} at {stamp}");

            let len_max = 1 + self.random.below(3);
            let after = Some(Bytes::from(NAMES[self.random.below(NAMES.len())]));
            let expected = wait(twin.scan(database, after.clone(), len_max)).expect("heads");
            let found = reader::scan(shared, database, after, len_max).expect("heads");
            assert_eq!(found, expected, "a part of the keys of {database} at {stamp}");

            let keys: Vec<Key> = NAMES.iter().map(|name| Key::new(database, *name)).collect();
            let bytes_max = self.random.below(100);
            let expected = wait(twin.heads(keys.clone(), bytes_max)).expect("heads");
            let pending = reader::pending_heads(shared, keys);
            let found = reader::read_missing(shared, pending, bytes_max).expect("heads");
            assert_eq!(found, expected, "heads of {database} at {stamp}");

            if self.random.chance(50) {
                let expected = wait(twin.count(database)).expect("a count");
                let found = reader::count(shared, database).expect("a count");
                assert_eq!(found, expected, "the count of {database} at {stamp}");
            }
        }
        self.compare_entries(shared, &twin);

        let mut expected = wait(twin.due(NOW_MS, 100)).expect("due keys");
        let mut found = expiry::due(shared, NOW_MS, 100).expect("due keys");
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "due keys at {stamp}");
    }

    /// Compares the entries of the wide objects that heads describe. Of the others the disk may
    /// still have some, until a checkpoint finds out.
    fn compare_entries(&mut self, shared: &Shared, twin: &Objects) {
        let stamp = shared.progress.submitted();
        let wides: Vec<(u8, u64)> =
            self.heads.iter().filter_map(|((of, _), head)| Some((*of, head.wide?))).collect();
        for (database, id) in wides {
            let expected = wait(twin.entries(database, id, None, 1 << 20)).expect("entries");
            let found = reader::entries(shared, database, id, None, 1 << 20).expect("entries");
            assert_eq!(found, expected, "entries of {id} in {database} at {stamp}");

            let mut pages = Vec::new();
            let mut after = None;
            loop {
                let page = reader::entries(shared, database, id, after, 1).expect("a page");
                after = page.entries.last().map(|(sub, _)| sub.clone());
                assert!(!page.entries.is_empty() || !page.has_more, "a page is empty");
                pages.extend(page.entries);
                if !page.has_more {
                    break;
                }
            }
            assert_eq!(pages, expected.entries, "pages of {id} in {database} at {stamp}");
        }
    }
}
