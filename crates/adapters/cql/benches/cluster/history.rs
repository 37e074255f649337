//! How many events a second are counted when they are spread over years: hardly any two of a commit
//! meet in a tile.

use crate::load::{Counting, Event, NOW_S, Place};
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::{Plan, Slice};
use raingauge_cql::{self as cql, Options};
use raingauge_ports::buckets::{BucketReader, Query, generation_of};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

const KEYS: usize = 1_000;
const DAYS: i64 = 3 * 365;
const EVENTS: usize = 100_000;
/// Events between two commits: a read of the log.
const BATCH_LEN: usize = 3_000;

/// Keys of a counter whose largest are looked for.
const MANY_KEYS: usize = 51_800;

pub fn run(place: &Place) {
    years(place);
    largest(place);
}

fn largest(place: &Place) {
    let event =
        |number| Event { key: format!("many:{number}"), time_s: NOW_S, value: number as i64 };
    let events: Vec<Event> = (0..MANY_KEYS).map(event).collect();
    Counting::with_tables(place, "many", 0, false).count(7, &events, MANY_KEYS);

    let options = Options { scan_time_max: Duration::from_secs(600), ..place.options.clone() };
    let connect = || {
        cql::Reader::new(
            place.runtime.block_on(cql::Cluster::connect(options.clone())).expect("connected"),
        )
    };
    let reader = connect();
    let plan = Plan::new(NOW_S - NOW_S % DAY_S, NOW_S - NOW_S % DAY_S + DAY_S).expect("a day");

    let began = Instant::now();
    let query =
        |event: &Event| Query { generation: generation_of(7, 0), key: event.key.clone(), plan };
    let one_by_one = place.runtime.block_on(reader.sums(events.iter().map(query).collect()));
    assert!(one_by_one.iter().all(Result::is_ok));
    println!(
        "largest keys of {MANY_KEYS}, {:<16} {:>7.1} s",
        "key by key",
        began.elapsed().as_secs_f64()
    );

    let search = |reader: &cql::Reader, how: &str| {
        let began = Instant::now();
        let slice = Slice { granularity: Granularity::Day, from_s: plan.from_s, to_s: plan.to_s };
        let found =
            place.runtime.block_on(reader.largest_keys(generation_of(7, 0), slice, 100, MANY_KEYS));
        assert!(found.expect("keys").is_complete);
        println!("largest keys of {MANY_KEYS}, {how:<16} {:>7.1} s", began.elapsed().as_secs_f64());
    };

    search(&reader, "from their lists");

    // As after a migration that left them out.
    let keyspace = &place.options.keyspace;
    place.run(&format!("INSERT INTO {keyspace}.schema_version (id, version) VALUES (1, 1000000)"));
    search(&connect(), "32 at a time");
}

fn years(place: &Place) {
    let mut random = StdRng::seed_from_u64(5);
    let mut event = |name: &str| {
        let time_s = NOW_S - random.random_range(0..DAYS * DAY_S);
        Event { key: format!("{name}:{}", random.random_range(0..KEYS)), time_s, value: 1 }
    };
    println!("history, {EVENTS} changes of {KEYS} keys over {DAYS} days, {BATCH_LEN} to a commit");

    for (counter, write_tables) in [(5, true), (6, false)] {
        let name = if write_tables { "with the count tables" } else { "tiles alone" };
        let events: Vec<Event> = (0..EVENTS).map(|_| event(&counter.to_string())).collect();
        let mut counting = Counting::with_tables(place, name, 0, write_tables);
        let took = counting.count(counter, &events, BATCH_LEN);

        println!("  {name:<22} {:>9.0} changes/s", EVENTS as f64 / took.as_secs_f64());
    }
}
