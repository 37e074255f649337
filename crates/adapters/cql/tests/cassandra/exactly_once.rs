//! Crashes, zombies and repeated writes change no count.

use crate::support::{Place, Store};
use raingauge_core::bucket::DAY_S;
use raingauge_core::plan::Plan;
use raingauge_core::retention::Horizons;
use raingauge_ports::buckets::{
    Addition, BucketReader, BucketWriter, Checkpoint, Query, generation_of,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const BEGIN_S: i64 = 20_000 * DAY_S;
const STAMP_BASE_US: i64 = 1_700_000_000_000_000;
const KEYS: usize = 4;

/// One partition of a log: of each offset the key, the time and the value.
struct Log(Vec<(usize, i64, i64)>);

impl Log {
    fn random(random: &mut StdRng, len: usize) -> Self {
        let entry = |_| {
            let time_s = BEGIN_S + random.random_range(0..3 * DAY_S);
            (random.random_range(0..KEYS), time_s, random.random_range(-3..20))
        };
        Self((0..len).map(entry).collect())
    }

    fn expected(&self, key: usize) -> i128 {
        self.0.iter().filter(|entry| entry.0 == key).map(|entry| i128::from(entry.2)).sum()
    }
}

/// A writer of the log, or a process that believes that it still is one.
struct Counting<'a> {
    store: Store,
    log: &'a Log,
    position: usize,
}

impl<'a> Counting<'a> {
    fn resume(place: &Place, log: &'a Log) -> Self {
        let store = place.store(7);
        let position = store.checkpoint().expect("a checkpoint").position as usize;
        store.stamp_from(STAMP_BASE_US);
        Self { store, log, position }
    }

    fn apply(&mut self, len: usize) {
        for offset in self.position..(self.position + len).min(self.log.0.len()) {
            let (key, time_s, value) = self.log.0[offset];
            let added = Addition { offset: offset as u64, time_s, value };
            self.store
                .add(generation_of(1, 0), &format!("k{key}"), added, &Horizons::default())
                .expect("added");
            self.position = offset + 1;
        }
    }

    fn commit(&self) {
        let position = self.position as u64;
        let stamp_us = STAMP_BASE_US + position as i64 - 1;
        self.store
            .commit(&Checkpoint { position, state: Vec::new(), stamp_us, progress: None })
            .expect("committed");
    }
}

/// Writers come and go: each one dies at some moment, or sleeps and wakes as a zombie beside its
/// successors, and writes what it had in mind, checkpoint and all.
#[test]
fn zombies_and_crashes_change_no_count() {
    let Some(place) = Place::new() else { return };
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");

    let mut random = StdRng::seed_from_u64(seed);
    let log = Log::random(&mut random, 400);
    let mut counting: Vec<Counting<'_>> = Vec::new();

    for _ in 0..40 {
        match random.random_range(0..10) {
            0..3 => counting.push(Counting::resume(&place, &log)),
            3 if !counting.is_empty() => {
                drop(counting.swap_remove(random.random_range(0..counting.len())))
            }
            4..8 if !counting.is_empty() => {
                let index = random.random_range(0..counting.len());
                counting[index].apply(random.random_range(1..60));
            }
            _ if !counting.is_empty() => counting[random.random_range(0..counting.len())].commit(),
            _ => {}
        }
    }

    let mut last = Counting::resume(&place, &log);
    last.apply(log.0.len());

    // One that slept all the time wakes while the last one has not written yet.
    counting.iter().for_each(Counting::commit);
    last.commit();

    for key in 0..KEYS {
        let plan = Plan::new(BEGIN_S, BEGIN_S + 3 * DAY_S).unwrap();
        let query = Query { generation: generation_of(1, 0), key: format!("k{key}"), plan };
        let sum = place.block_on(last.store.reader.sums(vec![query])).remove(0).expect("a sum");
        assert_eq!(sum, log.expected(key), "key {key}, seed {seed}");
    }
}
