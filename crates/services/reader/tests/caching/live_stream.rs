//! Loads and changes in any order: what is in memory in the end is what the source has.

use crate::live::{ANSWERED, FOUND, GENERATION, PARTITIONS, Setup, Stage, options, setup};
use crate::support::NOON_S;
use proptest::prelude::*;
use raingauge_core::bucket::{DAY_S, Granularity, QUARTER_S};
use raingauge_core::plan::Plan;
use raingauge_ports::BoxFuture;
use raingauge_ports::buckets::{BucketReader, Error, Query};
use raingauge_ports::clock::Clock;
use raingauge_ports::log::{Offset, Partition};
use raingauge_ports::tiles::{Hearing, TileChanges};
use raingauge_reader::LiveOptions;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const KEYS: usize = 3;
const DAYS: i64 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// An event is counted, and its tiles published.
    Write {
        key: usize,
        partition: Partition,
        quarter: i64,
        value: i64,
    },
    Beat(Partition),
    /// The next message of a partition arrives.
    Deliver(Partition),
    /// The next message of a partition is lost, and the loss is noticed.
    Lose(Partition),
    /// The writer of a partition dies with what it did not tell, and another one goes on.
    Resume(Partition),
    /// The store is asked how far it includes a partition.
    Stored(Partition),
    /// A caller asks for a range.
    Ask {
        key: usize,
        from: i64,
        quarters: i64,
    },
    /// A read of the source gets as far as finding, or as answering.
    Move {
        load: usize,
        stage: u8,
    },
    /// No message arrives for this long.
    Wait(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let partition = 0..PARTITIONS;
    prop_oneof![
        6 => (0..KEYS, partition.clone(), 0..DAYS * 96, 1..100_i64)
            .prop_map(|(key, partition, quarter, value)| {
                Step::Write { key, partition, quarter, value }
            }),
        2 => partition.clone().prop_map(Step::Beat),
        8 => partition.clone().prop_map(Step::Deliver),
        1 => partition.clone().prop_map(Step::Lose),
        1 => partition.clone().prop_map(Step::Resume),
        3 => partition.prop_map(Step::Stored),
        5 => (0..KEYS, 0..DAYS * 96, 1..DAYS * 96)
            .prop_map(|(key, from, quarters)| Step::Ask { key, from, quarters }),
        8 => (0..8_usize, FOUND..=ANSWERED).prop_map(|(load, stage)| Step::Move { load, stage }),
        1 => (1..7_i64).prop_map(Step::Wait),
    ]
}

/// One event: key, second, value.
type Event = (usize, i64, i64);

/// A question that is not answered yet.
struct Question {
    key: usize,
    plan: Plan,
    stage: Stage,
    future: BoxFuture<'static, Vec<Result<i128, Error>>>,
    /// The sum over what the stream had brought when it was asked.
    least: i128,
}

struct World {
    setup: Setup,
    offsets: [Offset; PARTITIONS as usize],
    stream: [VecDeque<(TileChanges, Option<Event>)>; PARTITIONS as usize],
    written: Vec<Event>,
    delivered: Vec<Event>,
    questions: Vec<Question>,
    now_s: i64,
}

fn name(key: usize) -> String {
    format!("c1:{key}")
}

fn sum(events: &[Event], key: usize, plan: &Plan) -> i128 {
    let inside = events
        .iter()
        .filter(|(of, time_s, _)| *of == key && (plan.from_s..plan.to_s).contains(time_s));
    inside.map(|(_, _, value)| i128::from(*value)).sum()
}

impl World {
    fn new(cache_bytes: usize) -> Self {
        Self {
            setup: setup(LiveOptions { cache_bytes, ..options() }),
            offsets: Default::default(),
            stream: Default::default(),
            written: Vec::new(),
            delivered: Vec::new(),
            questions: Vec::new(),
            now_s: NOON_S,
        }
    }

    fn plan(from: i64, quarters: i64) -> Plan {
        let begin_s = Granularity::Day.floor(NOON_S);
        let to = (from + quarters).min(DAYS * 96);
        Plan::new(begin_s + from * QUARTER_S, begin_s + to * QUARTER_S).expect("a range")
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write { key, partition, quarter, value } => {
                let place = usize::from(partition);
                let time_s = Self::plan(quarter, 1).from_s;
                self.offsets[place] += 1;

                let event = (key, time_s, value);
                self.written.push(event);

                let changes = self.setup.source.write(
                    &name(key),
                    partition,
                    self.offsets[place],
                    time_s,
                    value,
                );

                let last = changes.len() - 1;
                let told = changes.into_iter().enumerate();

                // The event has arrived with the last of its tiles.
                self.stream[place]
                    .extend(told.map(|(index, change)| (change, (index == last).then_some(event))));
            }
            Step::Beat(partition) => {
                let place = usize::from(partition);
                let position = self.offsets[place];
                let at_ms = self.setup.clock.now_ms();

                self.stream[place]
                    .push_back((TileChanges::Heartbeat { partition, position, at_ms }, None));
            }
            Step::Deliver(partition) => {
                if let Some((message, event)) = self.stream[usize::from(partition)].pop_front() {
                    self.setup.live.apply(message);
                    self.delivered.extend(event);
                }
            }
            Step::Lose(partition) => {
                if self.stream[usize::from(partition)].pop_front().is_some() {
                    self.setup.live.apply(TileChanges::Gap);
                }
            }
            Step::Resume(partition) => {
                let place = usize::from(partition);
                self.stream[place].clear();
                let resumed = TileChanges::Resumed { partition, position: self.offsets[place] };
                self.stream[place].push_back((resumed, None));
            }
            Step::Stored(partition) => {
                let position = self.offsets[usize::from(partition)];
                self.setup.live.note_stored(partition, position, Instant::now());
            }
            Step::Ask { key, from, quarters } => self.ask(key, Self::plan(from, quarters)),
            Step::Move { load, stage } => {
                if load < self.questions.len() {
                    self.questions[load].stage.fetch_max(stage, Ordering::SeqCst);
                    self.poll(load);
                }
            }
            Step::Wait(seconds) => {
                self.now_s += seconds;
                self.setup.clock.set_s(self.now_s);
            }
        }
    }

    fn ask(&mut self, key: usize, plan: Plan) {
        let stage = Stage::default();
        *self.setup.source.stage.lock().unwrap() = Some(Arc::clone(&stage));
        let live = Arc::clone(&self.setup.live);
        let query = Query { generation: GENERATION, key: name(key), plan };
        let future = Box::pin(async move { live.sums(vec![query]).await });
        // What was lost may never come: it bounds nothing.
        let least = sum(&self.delivered, key, &plan);
        self.questions.push(Question { key, plan, stage, future, least });
        self.poll(self.questions.len() - 1);
        // What is read later, beside memory, is answered at once.
        *self.setup.source.stage.lock().unwrap() = None;
    }

    /// Lets a question get as far as it may; its answer lies between the count when it was
    /// asked and the present one.
    fn poll(&mut self, index: usize) {
        let question = &mut self.questions[index];
        let polled = question.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(mut answers) = polled {
            let answer = answers.remove(0).expect("a sum");
            let most = sum(&self.written, question.key, &question.plan);
            assert!(
                (question.least..=most).contains(&answer),
                "{answer} is not in {}..={most}",
                question.least
            );
            drop(self.questions.remove(index));
        }
    }

    fn drain(&mut self) {
        for partition in 0..PARTITIONS {
            while !self.stream[usize::from(partition)].is_empty() {
                self.step(Step::Deliver(partition));
            }
            self.step(Step::Beat(partition));
            self.step(Step::Deliver(partition));
        }
        while !self.questions.is_empty() {
            self.step(Step::Move { load: 0, stage: ANSWERED });
        }
    }

    /// In memory is what the source has; and after one more read, everything is in memory.
    fn check(&mut self, must_be_cached: bool) {
        for key in 0..KEYS {
            for (from, quarters) in [(0, DAYS * 96), (5, 100), (90, 12), (97, 3), (100, 188)] {
                let plan = Self::plan(from, quarters);
                let expected = sum(&self.written, key, &plan);
                let cached =
                    |world: &Self| world.setup.live.sum_cached(GENERATION, &name(key), &plan);
                assert!(
                    cached(self).is_none_or(|cached| cached == Ok(expected)),
                    "{:?} != {expected}",
                    cached(self)
                );
                self.ask(key, plan);

                while !self.questions.is_empty() {
                    self.step(Step::Move { load: 0, stage: ANSWERED });
                }
                assert!(!must_be_cached || cached(self) == Some(Ok(expected)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 400,
        ..ProptestConfig::default()
    })]
    #[test]
    fn what_is_in_memory_is_what_the_source_has(
        steps in prop::collection::vec(any_step(), 0..250),
        is_tight in any::<bool>(),
    ) {
        prop_assert_eq!(NOON_S % DAY_S, DAY_S / 2);
        // A tight cache evicts all the time.
        let mut world = World::new(if is_tight { 64 * 500 } else { 64 << 20 });
        (0..PARTITIONS).for_each(|partition| {
            world.step(Step::Beat(partition));
            world.step(Step::Deliver(partition));
        });
        steps.into_iter().for_each(|step| world.step(step));
        world.drain();
        prop_assert!(world.setup.live.is_live());
        for partition in 0..PARTITIONS {
            prop_assert_eq!(
                world.setup.live.position(partition),
                Some(world.offsets[usize::from(partition)])
            );
        }
        world.check(!is_tight);
    }
}
