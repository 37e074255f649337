//! What has expired, what came too late, and what was replaced.

use super::world::{Medium, START_S, World, counter, of_json};
use crate::control::Control;
use crate::state::BackfillStatus;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::event::Event;
use raingauge_core::plan::Slice;
use raingauge_memory as memory;
use raingauge_ports::buckets::{Generation, generation_of};
use raingauge_ports::log::EventLog;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What counter 1 counts from the beginning, and what its first backfill fills.
const FIRST: Generation = generation_of(1, 0);
const SECOND: Generation = generation_of(1, 1);
const DATA: &str = r#"{"k":"x"}"#;

/// Keeps the counters of one test.
#[derive(Default)]
struct Counters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counters {
    /// The counters of this name that are not 0, by their labels.
    fn of(&self, name: &str) -> BTreeMap<String, u64> {
        let counters = self.0.lock();
        let found =
            counters.iter().filter_map(|(key, count)| Some((key.strip_prefix(name)?, count)));
        found
            .map(|(labels, count)| (labels.trim().to_owned(), count.load(Ordering::Relaxed)))
            .collect()
    }
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        Counter::from_arc(Arc::clone(self.0.lock().entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn event(id: &str, time_s: i64) -> Event<'_> {
    Event { id: id.into(), ..Event::of_data("t", time_s * 1_000, DATA) }
}

fn kept(quarter: u32, hour: u32, day: u32) -> serde_json::Value {
    json!({"retentionDays": {"quarter": quarter, "hour": hour, "day": day}})
}

/// The days, counted from the start of the test, in which there are cells of each granularity.
fn days(world: &World, generation: Generation) -> [Vec<i64>; 3] {
    Granularity::ALL.map(|granularity| {
        let slice = Slice { granularity, from_s: START_S - 50 * DAY_S, to_s: START_S + 50 * DAY_S };
        let cells = world.cells(generation, "c1:x", slice);
        cells.iter().map(|cell| (cell.time_s - START_S).div_euclid(DAY_S)).collect()
    })
}

#[test]
fn a_late_event_counts_where_its_bucket_is_kept_and_the_rest_is_in_the_metrics() {
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || {
        let mut world = World::new(Medium::memory());
        world.set_counter(1, &counter(1, kept(1, 3, 10)));

        let ages = [("a", 0), ("b", 1), ("c", 2), ("d", 3), ("e", 4), ("f", 10), ("g", 11)];
        world.append(&ages.map(|(id, age)| event(id, START_S - age * DAY_S)));
        world.drain();
        assert_eq!(
            days(&world, FIRST),
            [vec![-1, 0], vec![-3, -2, -1, 0], vec![-10, -4, -3, -2, -1, 0]]
        );

        let recent = world.published.activity().of(1).expect("the counter counted");
        assert_eq!((recent.counted.iter().sum::<u64>(), recent.late["quarter"]), (6, 5));
    });

    let late = counters.of("raingauge_late_refused_total");
    assert_eq!(
        late,
        BTreeMap::from([("1 day".into(), 1), ("1 hour".into(), 3), ("1 quarter".into(), 5)])
    );
}

#[test]
fn what_was_not_counted_is_booked_to_the_counter_that_did_not_count_it() {
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || {
        let mut world = World::new(Medium::memory());
        let picky = json!({"filter": {"operator": "eq", "lhs": "data.k", "rhs": "y"}});
        world.set_counter(1, &counter(2, picky));
        world.append(&[event("a", START_S)]);

        // Moves counter 2 to another place among the rules, within the same read.
        world.set_counter(1, &counter(1, json!({})));
        world.drain();
    });
    assert_eq!(
        counters.of("raingauge_events_skipped_total"),
        BTreeMap::from([("2 filtered".into(), 1)])
    );
}

#[test]
fn what_has_expired_goes_and_what_is_kept_stays() {
    for medium in [Medium::memory(), Medium::disk()] {
        let mut world = World::new(medium);
        world.set_counter(1, &counter(1, kept(1, 3, 30)));
        world.append(&[event("a", START_S - DAY_S), event("b", START_S)]);
        world.drain();
        world.worker().commit().unwrap();
        world.keep_up();
        assert_eq!(days(&world, FIRST), [[-1, 0], [-1, 0], [-1, 0]]);
        world.pass_s(DAY_S);
        world.keep_up();
        assert_eq!(days(&world, FIRST), [vec![0], vec![-1, 0], vec![-1, 0]]);
        world.pass_s(3 * DAY_S);
        world.keep_up();
        assert_eq!(days(&world, FIRST), [vec![], vec![], vec![-1, 0]]);
        world.worker().commit().unwrap();
        world.crash();
        assert_eq!(days(&world, FIRST), [vec![], vec![], vec![-1, 0]]);
    }
}

/// A file that cannot be removed is no reason to count nothing.
#[test]
fn a_trim_that_fails_does_not_stop_counting() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));
    world.log.refuse_trims();
    world.keep_up();
    world.append(&[event("a", START_S)]);
    world.drain();
    assert_eq!(days(&world, FIRST), [[0], [0], [0]]);
}

/// A walk reads every tile, and the horizons move once a day.
#[test]
fn a_generation_is_walked_through_once_for_the_same_horizons() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, kept(1, 3, 30)));
    world.append(&[event("a", START_S)]);
    world.drain();
    world.keep_up();
    world.worker().sweep_expired();
    assert!(!world.worker().upkeep.is_sweeping());
    world.pass_s(DAY_S);
    world.worker().sweep_expired();
    assert!(world.worker().upkeep.is_sweeping());
}

/// A block may hold more than memory takes, so the store commits in the middle of it, and goes on
/// from there.
#[test]
fn a_commit_in_the_middle_of_a_block_is_a_place_to_go_on_from() {
    let data: Vec<String> = (0..500).map(|key| format!(r#"{{"k":"{key}"}}"#)).collect();
    let mut world = World::new(Medium::disk());
    world.set_counter(1, &counter(1, json!({})));
    world.drain();

    let begin = world.log.end();
    let events: Vec<Event<'_>> =
        data.iter().map(|data| Event::of_data("t", START_S * 1_000, data)).collect();
    let ids: Vec<String> = (0..events.len()).map(|id| id.to_string()).collect();
    let events: Vec<Event<'_>> =
        events.into_iter().zip(&ids).map(|(event, id)| Event { id: id.into(), ..event }).collect();

    world.append(&events);
    world.worker().apply_some().unwrap();

    let committed = world.worker().committed;
    assert!(
        begin < committed && committed < world.log.end(),
        "{committed} is not within the block"
    );

    world.crash();
    assert_eq!(world.worker().position, committed);
    world.drain();

    let slice = Slice { granularity: Granularity::Day, from_s: 0, to_s: START_S + DAY_S };
    for key in 0..data.len() {
        let cells = world.cells(FIRST, &format!("c1:{key}"), slice);
        assert_eq!(cells.iter().map(|cell| cell.count).collect::<Vec<_>>(), [1], "key {key}");
    }
}

/// Else the readers would add up buckets of which some are gone.
#[test]
fn a_longer_retention_does_not_bring_back_what_has_expired() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, kept(1, 3, 30)));
    world.drain();
    world.set_counter(2, &counter(1, kept(20, 20, 30)));
    world.drain();

    let now_s = START_S + 5 * DAY_S;
    let kept = |world: &World| world.published.view().horizons(0, now_s);
    assert_eq!(
        (kept(&world).quarter_s, kept(&world).hour_s),
        (START_S - DAY_S, START_S - 3 * DAY_S)
    );
    world.control(&Control::backfill(1));
    world.drain();

    assert_eq!(
        kept(&world),
        of_json(&counter(1, self::kept(20, 20, 30))).retention_days.horizons(now_s)
    );
}

/// A store whose buckets go by themselves has given them the time of the shorter retention.
#[test]
fn a_longer_retention_reaches_what_is_stored() {
    let store = Arc::new(memory::Buckets::default());
    let mut world = World::new(Medium::Memory(Arc::clone(&store), Arc::default()));
    world.set_counter(1, &counter(1, kept(1, 3, 30)));
    world.set_counter(2, &counter(1, kept(1, 3, 20)));
    world.append(&[event("a", START_S)]);
    world.drain();
    world.keep_up();
    assert_eq!(store.prolonged(), [], "nothing is kept longer than it was");

    let longer = counter(1, kept(1, 5, 20));
    world.set_counter(3, &longer);
    world.drain();
    world.worker().commit().unwrap();
    world.crash();
    world.keep_up();

    let horizons = of_json(&longer).retention_days.horizons(START_S);
    assert_eq!(store.prolonged(), [(FIRST, horizons)]);
    world.worker().commit().unwrap();
    world.crash();
    world.keep_up();
    assert_eq!(store.prolonged().len(), 1, "once is enough");
}

#[test]
fn a_replaced_generation_is_kept_for_those_who_still_read_it_and_goes_then() {
    for medium in [Medium::memory(), Medium::disk()] {
        let mut world = World::new(medium);
        world.set_counter(1, &counter(1, json!({})));
        world.append(&[event("a", START_S)]);
        world.drain();
        world.worker().commit().unwrap();
        world.control(&Control::backfill(1));
        world.drain();
        assert!(world.worker().state.retired.is_empty(), "what was replaced answers elsewhere");
        world.append(&[event("b", START_S - DAY_S)]);
        world.drain();

        let both = [[-1, 0], [-1, 0], [-1, 0]].map(Vec::from);
        assert_eq!((days(&world, FIRST), days(&world, SECOND)), (both.clone(), both.clone()));
        world.retire();
        assert_eq!(days(&world, FIRST), [const { Vec::<i64>::new() }; 3]);
        world.append(&[event("c", START_S - 2 * DAY_S)]);
        world.drain();
        assert_eq!(
            days(&world, FIRST),
            [const { Vec::<i64>::new() }; 3],
            "what is retired is counted no more"
        );
        assert_eq!(days(&world, SECOND), [[-2, -1, 0]; 3]);
        assert!(world.worker().state.retired.is_empty());
    }
}

/// A crash takes the backfill back to the checkpoint, and the log must still be there.
#[test]
fn the_log_is_kept_for_a_backfill_as_the_last_checkpoint_knows_it() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));

    for id in 0..100 {
        world.append(&[event(&id.to_string(), START_S)]);
        world.worker().apply_some().unwrap();
    }

    world.control(&Control::backfill(1));
    world.worker().apply_some().unwrap();
    world.worker().commit().unwrap();
    world.worker().backfill_some().unwrap();
    assert!(world.worker().fill.as_ref().unwrap().position > 0);
    world.pass_s(10);
    world.log.let_go();
    world.keep_up();
    assert_eq!(world.log.start(), 0);
    world.crash();
    world.drain();

    let backfill = world.worker().state.counters[&1].backfill.clone().unwrap();
    assert_eq!((backfill.status, backfill.counted), (BackfillStatus::Finished, 100));
    world.worker().commit().unwrap();
    world.pass_s(10);
    world.log.let_go();
    world.keep_up();
    assert_eq!(world.log.start(), world.log.end());
}

/// The state of thousands of counters is not written with each step of one of them.
#[test]
fn progress_is_stored_beside_the_state() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));

    for id in 0..100 {
        world.append(&[event(&id.to_string(), START_S)]);
        world.worker().apply_some().unwrap();
    }

    world.control(&Control::backfill(1));
    world.worker().apply_some().unwrap();
    world.worker().commit().unwrap();

    let before = world.worker().store.checkpoint().unwrap();
    world.worker().backfill_some().unwrap();
    world.worker().commit().unwrap();

    let after = world.worker().store.checkpoint().unwrap();
    assert_eq!(after.state, before.state);
    assert!(after.progress.unwrap().rank > before.progress.unwrap().rank);
}

#[test]
fn a_log_shorter_than_the_store_is_refused() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));
    world.drain();
    world.worker().commit().unwrap();
    let shorter = Arc::new(raingauge_memory::Log::default());
    let worker = world.worker();
    let store = Arc::clone(&worker.store);
    let published = Arc::clone(&worker.published);
    let clock = worker.clock.clone();
    let refused = crate::worker::Worker::open(shorter, store, published, clock, Default::default());
    assert!(matches!(refused, Err(crate::worker::Error::LogTooShort { position: 1, end: 0 })));
}
