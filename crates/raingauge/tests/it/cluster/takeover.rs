//! A writer that takes a partition over soon continues to count, and counts no repetition,
//! whichever process had the partition before.
//!
//! `RAINGAUGE_TAKEOVER_EVENTS=N` makes the window larger. The test then prints a measurement: the
//! time from the start of a process until an event is counted, with the stored window and without
//! it.

use super::place::Place;
use super::roles::NOON_S;
use crate::client::{Client, drop_event, drops_counter};
use crate::server::{Server, until};
use std::time::Instant;

/// More than one chunk of the window.
const EVENTS: u64 = 34_000;
/// Events of a request, which does not wait for counting.
const BODY: u64 = 4_000;

fn send(client: &Client, ids: std::ops::Range<u64>) {
    let events: Vec<_> = ids.map(|id| drop_event(&format!("ride-{id}"), NOON_S, "oslo")).collect();
    until("the events are taken", || {
        (client.lines("/v1/events", &events).status == 200).then_some(())
    });
}

/// Counts one event in a writer, and returns the time since `since`.
fn counts_one(writer: &Server, id: u64, since: Instant) -> f64 {
    let one = [drop_event(&format!("late-{id}"), NOON_S, "oslo")];
    let is_counted = || {
        let answer = writer.lines("/v1/events?wait=applied", &one);
        (answer.status == 200).then_some(())
    };
    until("the writer counts", is_counted);
    since.elapsed().as_secs_f64()
}

#[test]
fn a_successor_counts_soon_and_no_repetition() {
    let Some(mut place) = Place::new(1) else {
        return;
    };
    place.home.set("cluster.instance", "first");

    let given =
        std::env::var("RAINGAUGE_TAKEOVER_EVENTS").ok().and_then(|events| events.parse().ok());
    let events: u64 = given.unwrap_or(EVENTS);
    let portal = place.start("portal,reader");
    let writer = place.start("writer");

    portal.create(drops_counter());

    for first in (0..events).step_by(BODY as usize) {
        send(&writer, first..events.min(first + BODY));
    }
    counts_one(&writer, 0, Instant::now());
    until("the window is stored", || {
        let expected = events / raingauge_ports::dedupe::CHUNK_OFFSETS;
        (place.rows("SELECT chunk FROM window_table") >= expected as usize).then_some(())
    });

    // The process is killed and starts again, with the stored window.
    writer.kill();
    let began = Instant::now();
    let writer = place.start("writer");
    let with = counts_one(&writer, 1, began);

    send(&writer, 0..1_000);
    send(&writer, events - 1_000..events);
    counts_one(&writer, 2, Instant::now());
    assert_eq!(portal.count("drops:oslo", NOON_S, NOON_S + 900), events as i64 + 3);

    // Without it, the window is read from the log and stored again.
    writer.kill();
    place.run_cql("TRUNCATE window_table");

    let began = Instant::now();
    let writer = place.start("writer");
    let without = counts_one(&writer, 3, began);
    send(&writer, 1_000..2_000);
    counts_one(&writer, 4, Instant::now());
    assert_eq!(portal.count("drops:oslo", NOON_S, NOON_S + 900), events as i64 + 5);

    println!(
        "{events} events in the window: counting again after {with:.1} s, and {without:.1} s without what is stored"
    );
}
