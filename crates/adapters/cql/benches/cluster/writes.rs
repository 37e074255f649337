//! How many events a second are counted.

use crate::load::{Counting, Event, Place, recent};
use crate::peers;
use std::time::Duration;

/// Events between two commits: what a partition takes in within half a second at a good rate.
const BATCH_LEN: usize = 20_000;
const KEYS: usize = 10_000;

pub fn run(place: &Place) {
    let events = recent("write", KEYS, 400_000, 1);
    let few = &events[..40_000];

    // The server is warm before anything counts.
    let mut counting = Counting::new(place, "warm", 0);
    for _ in 0..3 {
        counting.count(1, &recent("warm", KEYS, 100_000, 2), BATCH_LEN);
    }
    peers::upsert_per_event(place, few);
    peers::counter_columns(place, few);
    println!("writing, {KEYS} keys by Zipf's law, {BATCH_LEN} events to a commit");

    let own = rate(events.len(), Counting::new(place, "own", 0).count(2, &events, BATCH_LEN));
    let upserts = rate(few.len(), peers::upsert_per_event(place, few));
    let counters = rate(few.len(), peers::counter_columns(place, few));
    println!("  tiles and tables, exactly once   {own:>9.0} events/s");
    println!(
        "  one upsert per event and table   {upserts:>9.0} events/s   1 : {:.1}",
        own / upserts
    );
    println!(
        "  counter columns                  {counters:>9.0} events/s   1 : {:.1}",
        own / counters
    );

    let one_key: Vec<Event> = recent("hot", 1, 400_000, 3);
    let hot = rate(one_key.len(), Counting::new(place, "hot", 0).count(3, &one_key, BATCH_LEN));
    println!("  one key alone                    {hot:>9.0} events/s");

    let unique: Vec<Event> = recent("unique", 10, 40_000, 4)
        .into_iter()
        .enumerate()
        .map(|(number, event)| Event { key: format!("unique:{number}"), ..event })
        .collect();

    let cold = rate(unique.len(), Counting::new(place, "cold", 0).count(4, &unique, BATCH_LEN));
    println!("  every event a new key            {cold:>9.0} events/s");
}

fn rate(events: usize, took: Duration) -> f64 {
    events as f64 / took.as_secs_f64()
}
