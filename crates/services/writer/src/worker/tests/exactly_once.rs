//! Random histories with crashes: the store ends as a naive walk through the log says.

use super::model::{Cells, Entry, Happened, Model};
use super::world::{ALLOWANCE_S, Medium, START_S, World, counter, of_json};
use crate::conductor::free_of;
use crate::control::{Bucket, Control};
use crate::state::{Answer, BackfillStatus, Request};
use proptest::prelude::*;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::event::Event;
use raingauge_core::plan::Slice;
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{EventLog, Offset};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

const COUNTERS: u32 = 3;
const KEYS: u32 = 3;
/// No event is older than this.
const FIRST_S: i64 = START_S - 41 * DAY_S;

#[derive(Clone, Debug)]
enum Op {
    /// Events by id, age in seconds, key, value and type.
    Append(Vec<(u16, i64, u32, i64, bool)>),
    /// A counter becomes another of its variants.
    Change(u32, usize),
    /// Buckets by counter, key, granularity, age and count, by a request that may have a key.
    Set(Vec<(u32, u32, usize, i64, i64)>, Option<u8>),
    Backfill(u32),
    /// One key of a counter is erased, or all of them.
    Erase(u32, u32),
    EraseAll(u32),
    /// Entries that count nothing.
    Voids(usize),
    Apply,
    ContinueBackfills,
    /// Conducts the backfills; what was replaced may be retired at once, or not.
    Conduct(bool),
    Commit,
    KeepUp,
    /// Allows the log to be trimmed up to now.
    LetGo,
    Pass(i64),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    let age_s = prop_oneof![
        6 => 0..2 * 3_600_i64,
        3 => 0..3 * DAY_S,
        1 => 0..40 * DAY_S,
        2 => -ALLOWANCE_S..0_i64,
    ];
    let event = (0..300_u16, age_s.clone(), 0..KEYS, -3..9_i64, prop::bool::weighted(0.85));
    let bucket = (1..=COUNTERS, 0..KEYS, 0..3_usize, age_s, 1..500_i64);

    prop_oneof![
        8 => prop::collection::vec(event, 1..12).prop_map(Op::Append),
        3 => (1..=COUNTERS, 0..VARIANTS).prop_map(|(id, variant)| Op::Change(id, variant)),
        3 => (prop::collection::vec(bucket, 1..4), prop::option::weighted(0.7, 0..3_u8))
            .prop_map(|(buckets, key)| Op::Set(buckets, key)),
        2 => (1..=COUNTERS).prop_map(Op::Backfill),
        1 => (1..=COUNTERS, 0..KEYS).prop_map(|(id, key)| Op::Erase(id, key)),
        1 => (1..=COUNTERS).prop_map(Op::EraseAll),
        2 => (1..4_usize).prop_map(Op::Voids),
        6 => Just(Op::Apply),
        5 => Just(Op::ContinueBackfills),
        4 => prop::bool::ANY.prop_map(Op::Conduct),
        2 => Just(Op::Commit),
        2 => Just(Op::KeepUp),
        1 => Just(Op::LetGo),
        2 => (1..2 * DAY_S).prop_map(Op::Pass),
        2 => Just(Op::Crash),
    ]
}

const VARIANTS: usize = 9;

fn variant(id: u32, variant: usize) -> Json {
    counter(
        id,
        match variant {
            0 => json!({}),
            1 => json!({"value": {"field": "data.v"}}),
            2 => json!({"filter": {"operator": "gte", "lhs": "data.v", "rhs": 2}}),
            3 => json!({"state": "paused"}),
            4 => json!({"state": "archived"}),
            5 => json!({"state": "draft"}),
            6 => json!({"retentionDays": {"quarter": 1, "hour": 2, "day": 30}}),
            7 => json!({"template": format!("d{id}:{{k}}")}),
            _ => json!({"eventType": "u", "description": "listens to others"}),
        },
    )
}

struct History {
    world: World,
    model: Model,
    versions: [u32; COUNTERS as usize + 1],
    /// When a request of each key was obeyed last.
    requests: [Option<i64>; 3],
    /// The stamp at each position where the worker was seen.
    stamps: BTreeMap<Offset, i64>,
}

impl History {
    fn new(medium: Medium) -> Self {
        Self {
            world: World::new(medium),
            model: Model::default(),
            versions: [0; COUNTERS as usize + 1],
            requests: [None; 3],
            stamps: BTreeMap::new(),
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Append(events) => self.append(&events),
            Op::Change(id, to) => {
                self.versions[id as usize] += 1;
                let counter = variant(id, to);
                self.world.set_counter(self.versions[id as usize], &counter);
                self.model.log.push(Entry::Counter(Box::new(of_json(&counter))));
            }
            Op::Set(buckets, key) => self.set(&buckets, key),
            Op::Backfill(counter) => {
                // The end of an earlier backfill shows only until this one begins.
                while self.apply() {}
                self.world.control(&Control::backfill(counter));
                self.model.log.push(Entry::Backfill);
            }
            Op::Erase(counter, key) => {
                let key = format!("c{counter}:k{key}");
                self.world.control(&Control::Erase { counter, key: key.clone() });
                self.model.log.push(Entry::Erase(counter, key));
            }
            Op::EraseAll(counter) => self.erase_all(counter),
            Op::Voids(len) => {
                for _ in 0..len {
                    self.world.append_void();
                    self.world.append_foreign();
                    self.model.log.extend([Entry::Void, Entry::Void]);
                }
            }
            Op::Apply => {
                self.apply();
            }
            Op::ContinueBackfills => {
                self.world.worker().backfill_some().unwrap();
            }
            Op::Conduct(retires) => {
                self.conduct(retires);
            }
            Op::Commit => self.world.worker().commit().unwrap(),
            Op::KeepUp => self.world.keep_up(),
            Op::LetGo => self.world.log.let_go(),
            Op::Pass(seconds) => self.world.pass_s(seconds),
            Op::Crash => self.world.crash(),
        }
        assert_eq!(
            self.world.log.end(),
            self.model.log.len() as u64,
            "the log takes each event once"
        );
    }

    /// Erases everything of a counter, under a number that is new when all is applied. The caller
    /// has made sure that the counter is known.
    fn erase_all(&mut self, counter: u32) {
        while self.apply() {}
        if !self.world.worker().state.counters.contains_key(&counter) {
            return;
        }
        let shown = self.world.worker().shown.lock().clone();
        let number = free_of(&BTreeMap::from([(0, shown)]), counter);
        self.world.control(&Control::EraseAll { counter, number, replaces: None });
        self.model.log.push(Entry::EraseAll(counter));
    }

    /// Applies some of the log. An entry that is applied again after a crash has the same stamp as
    /// before.
    fn apply(&mut self) -> bool {
        let applied = self.world.worker().apply_some().unwrap();
        let position = self.world.worker().position;
        let stamp_us = self.world.worker().stamp_us;
        assert_eq!(
            *self.stamps.entry(position).or_insert(stamp_us),
            stamp_us,
            "at offset {position}"
        );
        self.note_finished();
        applied
    }

    fn conduct(&mut self, retires: bool) -> bool {
        let written = self.world.conduct(retires);
        self.model.log.extend((0..written).map(|_| Entry::Void));
        written > 0
    }

    fn append(&mut self, events: &[(u16, i64, u32, i64, bool)]) {
        let now_s = self.world.clock.now_s();
        let happened = |(id, age_s, key, value, usual): &(u16, i64, u32, i64, bool)| Happened {
            id: *id,
            time_s: now_s - age_s,
            kind: if *usual { "t" } else { "u" },
            data: json!({"k": format!("k{key}"), "v": value}).to_string(),
        };

        let happened: Vec<Happened> = events.iter().map(happened).collect();
        let ids: Vec<String> = happened.iter().map(|event| event.id.to_string()).collect();
        let events = happened.iter().zip(&ids).map(|(event, id)| Event {
            id: id.as_str().into(),
            ..Event::of_data(event.kind, event.time_s * 1_000, &event.data)
        });
        self.world.append(&events.collect::<Vec<Event<'_>>>());

        for event in happened {
            let is_known =
                |entry: &Entry| matches!(entry, Entry::Event(known) if known.id == event.id);
            if !self.model.log.iter().any(is_known) {
                self.model.log.push(Entry::Event(event));
            }
        }
    }

    /// A request whose key was used within a day sets nothing, whatever it asks for.
    fn set(&mut self, buckets: &[(u32, u32, usize, i64, i64)], key: Option<u8>) {
        let now_s = self.world.clock.now_s();
        let bucket = |(id, key, granularity, age_s, count): &(u32, u32, usize, i64, i64)| {
            let granularity = Granularity::ALL[*granularity];
            let time = granularity.floor(now_s - age_s.max(&0));
            Bucket { key: format!("c{id}:k{key}"), granularity, time, count: *count }
        };

        let buckets: Vec<Bucket> = buckets.iter().map(bucket).collect();
        let request = key.map(|key| Request {
            id: key.to_string(),
            digest: String::new(),
            answer: Answer::default(),
        });

        self.world.set_buckets(buckets.clone(), request);
        let is_remembered =
            |key: u8| self.requests[usize::from(key)].is_some_and(|at_s| now_s - at_s <= DAY_S);
        if key.is_some_and(is_remembered) {
            self.model.log.push(Entry::Void);
        } else {
            key.into_iter().for_each(|key| self.requests[usize::from(key)] = Some(now_s));
            self.model.log.push(Entry::Buckets(buckets));
        }
    }

    fn note_finished(&mut self) {
        for (id, state) in &self.world.worker().state.counters {
            let Some(backfill) = state.backfill.as_ref() else {
                continue;
            };
            let known = self.model.finished.iter().any(|(of, known)| of == id && known == backfill);
            if backfill.status == BackfillStatus::Finished && !known {
                let before = &self.model.log[..backfill.from as usize];
                let missed = |entry: &Entry| {
                    matches!(
                        entry,
                        Entry::Event(event) if event.time_s >= backfill.after_s
                    )
                };
                assert!(
                    !before.iter().any(missed),
                    "the log holds all events of the time that is backfilled"
                );
                self.model.finished.push((*id, backfill.clone()));
            }
        }
    }

    fn drain(&mut self) {
        loop {
            let applied = self.apply();
            let backfilled = self.world.worker().backfill_some().unwrap();
            if !applied && !backfilled && !self.conduct(false) {
                return;
            }
        }
    }

    /// Retires everything that was replaced.
    fn retire(&mut self) {
        self.world.remove();
        while self.conduct(true) {
            self.drain();
            self.world.remove();
        }
    }

    /// What the store holds of the times that are kept equals the model.
    fn check(&self) {
        let now_s = self.world.clock.now_s();
        let view = self.world.published.view();
        for (index, rule) in view.ruleset.rules().iter().enumerate() {
            let horizons = view.horizons(index, now_s);
            let timeline = &view.timelines[index];
            let mut stored = Cells::new();

            for key in ["c", "d"].iter().flat_map(|head| (0..KEYS).map(move |key| (head, key))) {
                let key = format!("{}{}:k{}", key.0, rule.counter.id, key.1);
                for granularity in Granularity::ALL {
                    for (generation, from_s, to_s) in
                        timeline.split(horizons.of(granularity).max(FIRST_S), now_s + DAY_S)
                    {
                        let slice =
                            Slice { granularity, from_s, to_s: Granularity::Day.ceil(to_s) };
                        for cell in self.world.cells(generation, &key, slice) {
                            stored.insert((key.clone(), granularity, cell.time_s), cell.count);
                        }
                    }
                }
            }

            stored.retain(|_, count| *count != 0);
            let mut expected = self.model.cells(rule.counter.id);
            expected.retain(|(_, granularity, time_s), _| *time_s >= horizons.of(*granularity));
            assert_eq!(stored, expected, "counter {} of {:?}", rule.counter.id, timeline);
        }
    }
}

fn check_history(medium: Medium, ops: Vec<Op>) {
    let mut history = History::new(medium);
    for op in ops {
        history.run(op);
    }
    history.drain();
    history.check();
    assert!(
        history.stamps.values().is_sorted_by(|earlier, later| earlier < later),
        "{:?}",
        history.stamps
    );
    history.run(Op::KeepUp);
    history.run(Op::Crash);
    history.drain();
    history.check();
    history.retire();
    history.check();
    assert!(
        history.world.worker().state.retired.is_empty(),
        "what was retired is removed in the end"
    );
    history.run(Op::Commit);
    history.run(Op::Crash);
    assert!(!history.world.worker().apply_some().unwrap(), "the checkpoint includes the whole log");
    history.check();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn counts_in_memory_equal_a_naive_walk_through_the_log(
        ops in prop::collection::vec(op(), 1..70),
    ) {
        check_history(Medium::memory(), ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn counts_on_disk_equal_a_naive_walk_through_the_log(
        ops in prop::collection::vec(op(), 1..70),
    ) {
        check_history(Medium::disk(), ops);
    }
}
