//! A log that drops what was not counted.

use super::world::{Medium, START_S, World, counter};
use crate::control::Control;
use crate::lost;
use crate::state::BackfillStatus;
use crate::worker::Error;
use raingauge_consumers::Overtaken;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::event::Event;
use raingauge_core::plan::Slice;
use raingauge_ports::buckets::{Generation, generation_of};
use raingauge_ports::consumers::Name;
use raingauge_ports::log::EventLog;
use serde_json::json;

const FIRST: Generation = generation_of(1, 0);

fn begin(after_s: Option<i64>) -> Control {
    Control::Backfill { counter: 1, after_s, number: None, configuration: None }
}

fn append(world: &World, ids: std::ops::Range<u32>) {
    for id in ids {
        let event = Event::of_data("t", START_S * 1_000, r#"{"k":"x"}"#);
        world.append(&[Event { id: id.to_string().into(), ..event }]);
    }
}

fn count(world: &World) -> i64 {
    let slice = Slice { granularity: Granularity::Day, from_s: START_S, to_s: START_S + 1 };
    world.cells(FIRST, "c1:x", slice).iter().map(|cell| cell.count).sum()
}

#[test]
fn counting_stands_still_before_what_is_lost_until_that_is_skipped() {
    for medium in [Medium::memory(), Medium::disk()] {
        let mut world = World::new(medium);
        world.set_counter(1, &counter(1, json!({})));
        append(&world, 0..10);
        world.drain();
        world.worker().commit().unwrap();
        append(&world, 10..30);
        world.log.drop_before(21);

        let consumer = Name::counting();
        let lost = Overtaken { consumer, partition: 0, position: 11, start: 21 };
        for _ in 0..2 {
            let Err(Error::Lost(found)) = world.worker().apply_some() else {
                panic!("it does not go on by itself")
            };
            assert_eq!(found, lost);
            world.crash();
        }

        let said = Error::Lost(lost.clone()).to_string();
        assert!(
            said.contains("up to offset 11") && said.contains("skip-lost --partition 0"),
            "{said}"
        );

        let (log, store) = world.idle();
        assert_eq!(lost::find(&*log, &*store).unwrap(), Some(lost.clone()));
        lost::skip(&*store, &lost).unwrap();
        assert_eq!(lost::find(&*log, &*store).unwrap(), None, "there is nothing to skip any more");
        drop(store);
        world.crash();
        world.drain();
        assert_eq!((count(&world), world.worker().position), (10 + 10, 31));
        world.worker().commit().unwrap();
        world.crash();
        assert_eq!(count(&world), 20);
    }
}

/// What it was to count is still there, though not all that it would have read.
#[test]
fn a_backfill_goes_on_where_the_log_begins_when_that_has_dropped_older_days_alone() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));
    append(&world, 0..10);
    world.pass_s(2 * DAY_S);
    append(&world, 10..30);
    world.drain();
    world.control(&begin(Some(START_S + 3 * DAY_S)));
    while world.worker().apply_some().unwrap() {}
    world.log.drop_before(11);
    world.drain();

    let backfill = world.worker().state.counters[&1].backfill.clone().unwrap();
    assert_eq!((backfill.status, backfill.counted), (BackfillStatus::Finished, 0));
    assert_eq!((count(&world), world.log.start()), (30, 11));
}

#[test]
fn a_backfill_is_given_up_when_the_log_has_dropped_what_it_is_to_count() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));
    append(&world, 0..30);
    world.drain();
    world.control(&begin(Some(0)));
    while world.worker().apply_some().unwrap() {}
    world.log.drop_before(11);
    world.drain();

    let state = &world.worker().state;
    let backfill = state.counters[&1].backfill.as_ref().unwrap();
    assert_eq!(backfill.status, BackfillStatus::Cancelled);
    assert!(backfill.reason.contains("dropped"), "{}", backfill.reason);
    assert_eq!(state.retired, [generation_of(1, 1)]);
    assert_eq!(count(&world), 30, "what was counted stays");
}

/// One bit of a week ago is no reason to count nothing today.
#[test]
fn a_rotten_block_cancels_the_backfill_and_nothing_else() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));
    append(&world, 0..30);
    world.drain();
    world.log.rot(5);
    world.control(&begin(None));
    append(&world, 30..40);
    world.drain();
    let backfill = world.worker().state.counters[&1].backfill.clone().unwrap();
    assert_eq!(backfill.status, BackfillStatus::Cancelled);
    assert!(backfill.reason.contains("wrong checksum"), "{}", backfill.reason);
    assert_eq!(count(&world), 40);
}
