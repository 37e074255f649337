//! Entries that count nothing.

use super::world::{Medium, START_S, World, counter};
use crate::control::Control;
use crate::state::BackfillStatus;
use raingauge_core::bucket::Granularity;
use raingauge_core::event::Event;
use raingauge_core::plan::Slice;
use raingauge_ports::buckets::{Generation, generation_of};
use raingauge_ports::log::EventLog;
use serde_json::json;

fn append(world: &World, id: &str) {
    world
        .append(&[Event { id: id.into(), ..Event::of_data("t", START_S * 1_000, r#"{"k":"x"}"#) }]);
}

fn count(world: &World, generation: Generation) -> i64 {
    let slice = Slice { granularity: Granularity::Day, from_s: START_S, to_s: START_S + 1 };
    world.cells(generation, "c1:x", slice).iter().map(|cell| cell.count).sum()
}

/// At the beginning, the middle and the end of a block, around control entries, and as a block of
/// their own.
#[test]
fn voids_are_passed_over_and_the_position_moves_beyond_them() {
    let mut world = World::new(Medium::memory());
    world.append_void();
    world.set_counter(1, &counter(1, json!({})));
    world.append_void();

    for id in ["a", "b", "c"] {
        append(&world, id);
        world.append_void();
    }

    world.drain();
    assert_eq!((count(&world, generation_of(1, 0)), world.worker().position), (3, 9));
    assert_eq!((world.published.applied(0), world.log.end()), (9, 9));

    let stamp_us = world.worker().stamp_us;
    for expected in [10, 11] {
        assert_eq!(world.append_void(), expected - 1);
        assert!(world.worker().apply_some().unwrap());
        assert_eq!((world.worker().position, world.published.applied(0)), (expected, expected));
    }

    assert_eq!(world.worker().stamp_us, stamp_us + 2, "a void takes a stamp like any other entry");
    assert_eq!(count(&world, generation_of(1, 0)), 3);
    world.worker().commit().unwrap();
    world.crash();
    assert_eq!(world.worker().position, 11, "the checkpoint lies beyond them too");
    assert!(!world.worker().apply_some().unwrap());
}

#[test]
fn a_backfill_passes_over_voids() {
    let mut world = World::new(Medium::memory());
    world.set_counter(1, &counter(1, json!({})));
    for id in 0..20 {
        append(&world, &id.to_string());
        world.append_void();
    }
    world.control(&Control::backfill(1));
    world.append_void();
    world.drain();
    let backfill = world.worker().state.counters[&1].backfill.clone().unwrap();
    assert_eq!((backfill.status, backfill.counted), (BackfillStatus::Finished, 20));
    assert_eq!(count(&world, generation_of(1, 1)), 20);
}
