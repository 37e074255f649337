//! How many events a second are counted when they are spread over years: hardly any two of a commit meet in a tile.

use crate::load::{Counting, Event, NOW_S, Place};
use raingauge_core::bucket::DAY_S;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const KEYS: usize = 1_000;
const DAYS: i64 = 3 * 365;
const EVENTS: usize = 100_000;
/// Events between two commits: a read of the log.
const BATCH_LEN: usize = 3_000;

pub fn run(place: &Place) {
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
