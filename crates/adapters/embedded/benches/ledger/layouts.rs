//! The same load over other layouts of fjall, as raw keys and values.

use super::{
    ACTIONS_PER_TIMER, BODY_LEN, BUDGETS, CACHE_BYTES, CAMPAIGNS, EVENTS_PER_ACTION, EVENTS_PER_MS,
    Figures, Meter, SUBJECTS, TALLIES, random, text,
};
use fjall::config::{
    BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, PinningPolicy,
};
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch, PersistMode,
};
use std::collections::{HashMap, VecDeque};
use std::path::Path;

const DECISION_LEN: usize = 450;
/// Bytes that an entry of the cache takes beside its key and its value.
const ENTRY_BYTES: usize = 80;

/// How the records are laid out over keyspaces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// Everything in one keyspace.
    One,
    /// The same, with values from 256 bytes on in files of their own.
    OneSeparated,
    /// A keyspace for each kind of record.
    Several,
    /// The same, with the large values of decisions and bodies in files of their own.
    SeveralSeparated,
}

impl Layout {
    const ALL: [(&str, Self); 4] = [
        ("one", Self::One),
        ("one-separated", Self::OneSeparated),
        ("several", Self::Several),
        ("several-separated", Self::SeveralSeparated),
    ];

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, layout)| layout)
    }
}

/// Kinds of records. Each is the first byte of its keys.
const META: u8 = 0;
const STATE: u8 = 1;
const ACTION: u8 = 2;
const DECISION: u8 = 3;
const INDEX: u8 = 4;
const TIMER: u8 = 5;
const DELIVERY: u8 = 6;
const BODY: u8 = 7;
const QUEUE: u8 = 8;
const BUDGET: u8 = 9;
const KINDS: usize = 10;

struct Store {
    database: Database,
    keyspaces: Vec<Keyspace>,
    number: u64,
}

impl Store {
    fn open(folder: &Path, layout: Layout) -> Self {
        let database = Database::builder(folder)
            .cache_size(64 << 20)
            .max_journaling_size(128 << 20)
            .worker_threads(1)
            .open()
            .expect("a database");

        let options = |kind: u8| {
            let separated = match layout {
                Layout::One | Layout::Several => false,
                Layout::OneSeparated => true,
                Layout::SeveralSeparated => matches!(kind, DECISION | BODY),
            };
            KeyspaceCreateOptions::default()
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(
                    BloomConstructionPolicy::BitsPerKey(10.0),
                )))
                .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
                .max_memtable_size(32 << 20)
                .with_kv_separation(
                    separated.then(|| KvSeparationOptions::default().separation_threshold(256)),
                )
        };

        let keyspaces = match layout {
            Layout::One | Layout::OneSeparated => {
                let only = database.keyspace("ledger", || options(STATE)).expect("a keyspace");
                vec![only; KINDS]
            }
            Layout::Several | Layout::SeveralSeparated => (0..KINDS as u8)
                .map(|kind| {
                    database.keyspace(&format!("k{kind}"), || options(kind)).expect("a keyspace")
                })
                .collect(),
        };
        Self { database, keyspaces, number: 0 }
    }

    fn of(&self, key: &[u8]) -> &Keyspace {
        &self.keyspaces[usize::from(key[0])]
    }

    fn commit(&mut self, mut writes: Vec<(Vec<u8>, Option<Vec<u8>>)>, mode: PersistMode) {
        self.number += 1;
        for (key, number) in [("commits", 0), ("ring", self.number % 16_384)] {
            let key = [&[META], key.as_bytes(), &number.to_be_bytes()].concat();
            writes.push((key, Some(self.number.to_le_bytes().to_vec())));
        }
        writes.sort_unstable();
        let mut batch: OwnedWriteBatch = self.database.batch().durability(Some(mode));
        for (key, value) in writes {
            let keyspace = self.of(&key).clone();
            match value {
                Some(value) => batch.insert(&keyspace, key, value),
                None => batch.remove(&keyspace, key),
            }
        }
        batch.commit().expect("committed");
    }
}

/// Values in memory, in two ages: a full young one becomes the old one, and what nobody read again
/// since is forgotten.
#[derive(Default)]
struct Cache {
    young: HashMap<Vec<u8>, Option<Vec<u8>>>,
    old: HashMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Cache {
    fn get(&mut self, store: &Store, key: &[u8]) -> Option<Vec<u8>> {
        if let Some(value) = self.young.get(key) {
            return value.clone();
        }
        let value = match self.old.remove(key) {
            Some(value) => value,
            None => store.of(key).get(key).expect("read").map(|value| value.to_vec()),
        };
        self.put(key.to_vec(), value.clone());
        value
    }

    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let len = key.len() + value.as_ref().map_or(0, Vec::len) + ENTRY_BYTES;
        if self.young.insert(key, value).is_none() {
            self.bytes += len;
        }
        if self.bytes > CACHE_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }
}

/// The load: what a batch of events makes of the ledger.
#[derive(Default)]
struct Load {
    seed: u64,
    now_ms: u64,
    action: u64,
    timers: VecDeque<(u64, [u8; 16])>,
    deliveries: VecDeque<(u64, [u8; 16])>,
    cache: Cache,
}

type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn key(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    fields.iter().for_each(|field| key.extend_from_slice(field));
    key
}

impl Load {
    /// Adds to a number under a key, and notes its absolute value.
    fn add(&mut self, store: &Store, changed: &mut HashMap<Vec<u8>, Vec<u8>>, key: Vec<u8>) {
        let value = match changed.get(&key) {
            Some(value) => Some(value.clone()),
            None => self.cache.get(store, &key),
        };
        let mut value = value.unwrap_or_else(|| vec![0; 24]);
        let count = u64::from_le_bytes(value[..8].try_into().expect("8 bytes")) + 1;
        value[..8].copy_from_slice(&count.to_le_bytes());
        value[8..16].copy_from_slice(&self.now_ms.to_le_bytes());
        changed.insert(key, value);
    }

    fn batch(&mut self, store: &Store, events: u64) -> Writes {
        let mut changed = HashMap::with_capacity(events as usize * 2);
        let mut writes: Writes = Vec::with_capacity(events as usize * 2);

        for event in 0..events {
            let subject = format!("user-{:06}", random(&mut self.seed) % SUBJECTS);
            let tally = random(&mut self.seed) % TALLIES;
            for tally in tally..=tally + event % 2 {
                let owner = (tally % TALLIES).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                self.add(store, &mut changed, key(STATE, &[b"t", &owner, subject.as_bytes()]));
            }
            if event % EVENTS_PER_ACTION == 0 {
                self.grant(store, &mut changed, &mut writes, subject.as_bytes());
            }
        }

        for (key, value) in changed {
            if key[0] == STATE {
                self.cache.put(key.clone(), Some(value.clone()));
            }
            writes.push((key, Some(value)));
        }
        let position = key(META, &[b"position"]);
        writes.push((position, Some(vec![0; 64])));
        self.now_ms += events / EVENTS_PER_MS;
        writes
    }

    fn grant(
        &mut self,
        store: &Store,
        changed: &mut HashMap<Vec<u8>, Vec<u8>>,
        writes: &mut Writes,
        subject: &[u8],
    ) {
        self.action += 1;
        let mut id = [0; 16];
        for half in id.chunks_mut(8) {
            half.copy_from_slice(&random(&mut self.seed).to_be_bytes());
        }
        let campaign = (random(&mut self.seed) % CAMPAIGNS).to_be_bytes();
        let now = self.now_ms.to_be_bytes();

        assert!(!store.of(&[ACTION]).contains_key(key(ACTION, &[&id])).expect("read"));
        writes.push((key(ACTION, &[&id]), Some(now.to_vec())));
        let decision = text(&mut self.seed, DECISION_LEN);
        writes.push((key(DECISION, &[&now, &id]), Some(decision)));
        writes.push((key(INDEX, &[b"c", &campaign, &now, &id]), Some(Vec::new())));
        writes.push((key(INDEX, &[b"s", subject, &[0], &now, &id]), Some(Vec::new())));

        self.add(store, changed, key(STATE, &[b"u", &campaign, subject]));
        self.add(store, changed, key(STATE, &[b"u", &campaign]));
        let budget = (random(&mut self.seed) % u64::from(BUDGETS)).to_be_bytes();
        self.add(store, changed, key(BUDGET, &[&budget]));

        if self.action.is_multiple_of(ACTIONS_PER_TIMER) {
            let due = self.now_ms + 10_000;
            self.timers.push_back((due, id));
            let body = text(&mut self.seed, BODY_LEN);
            writes.push((key(TIMER, &[&due.to_be_bytes(), &id]), Some(body)));
        } else {
            self.deliver(writes, id);
        }
        while let Some((due, id)) = self.timers.pop_front_if(|(due, _)| *due <= self.now_ms) {
            writes.push((key(TIMER, &[&due.to_be_bytes(), &id]), None));
            self.deliver(writes, id);
        }
    }

    fn deliver(&mut self, writes: &mut Writes, id: [u8; 16]) {
        self.deliveries.push_back((self.now_ms, id));
        let head = text(&mut self.seed, 100);
        let body = text(&mut self.seed, BODY_LEN);
        let place = key(QUEUE, &[b"p", &self.now_ms.to_be_bytes(), &id]);
        writes.extend([
            (key(DELIVERY, &[&id]), Some(head)),
            (key(BODY, &[&id]), Some(body)),
            (place, Some(Vec::new())),
        ]);
    }

    /// What the deliveries of about the last batch write once they are made.
    fn settle(&mut self) -> Writes {
        let now = self.now_ms.to_be_bytes();
        let done: Vec<_> = self.deliveries.drain(..).collect();
        let settled = done.into_iter().flat_map(|(at, id)| {
            [
                (key(QUEUE, &[b"p", &at.to_be_bytes(), &id]), None),
                (key(QUEUE, &[b"d", &now, &id]), Some(Vec::new())),
                (key(DELIVERY, &[&id]), Some(vec![1; 100])),
            ]
        });
        settled.collect()
    }
}

pub fn run(folder: &Path, layout: Layout, events: u64, batch: u64) -> Figures {
    let mut store = Store::open(folder, layout);
    let mut load = Load { seed: 7, ..Load::default() };
    let mut meter = Meter::new(events);
    let mut bytes = 0;

    while meter.goes_on() {
        if meter.begins(batch) {
            bytes = 0;
        }
        let writes = load.batch(&store, batch);
        let lens = writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
        bytes += lens.sum::<usize>() as u64;

        meter.time(batch, || store.commit(writes, PersistMode::SyncAll));
        let settled = load.settle();
        store.commit(settled, PersistMode::Buffer);
    }

    meter.finish(bytes, super::disk_bytes(folder))
}
