//! The three tables of the published description: written by hand, and read by other tools.

use crate::support::Place;
use raingauge_core::bucket::{DAY_S, Granularity};
use raingauge_core::plan::{Plan, Slice};
use raingauge_core::retention::Horizons;
use raingauge_core::time::format_rfc3339;
use raingauge_cql::ReadPlan;
use raingauge_ports::buckets::{BucketReader, Error, Query, generation_of};
use raingauge_ports::contract::buckets::{Ledger, worked_example};
use rand::{Rng, SeedableRng};

const KEY: &str = "rain_drops:city:111222";

pub fn table(granularity: Granularity) -> (&'static str, &'static str) {
    match granularity {
        Granularity::Quarter => ("minutely_count_table", "minutely_timestamp"),
        Granularity::Hour => ("hourly_count_table", "hourly_timestamp"),
        Granularity::Day => ("daily_count_table", "daily_timestamp"),
    }
}

fn sum(place: &Place, reader: &dyn BucketReader, key: &str, from_s: i64, to_s: i64) -> i128 {
    let plan = Plan::new(from_s, to_s).unwrap();
    let query = Query { generation: generation_of(34, 0), key: key.to_owned(), plan };
    place.block_on(reader.sums(vec![query])).remove(0).expect("a sum")
}

#[test]
fn rows_that_were_written_by_hand_answer_the_worked_example() {
    let Some(place) = Place::new() else { return };
    for cell in worked_example() {
        let (name, column) = table(cell.granularity);
        let keyspace = &place.options.keyspace;
        let time = format_rfc3339(cell.time_s);
        let count = cell.count;

        place.run(&format!(
            "INSERT INTO {keyspace}.{name} (key, {column}, log_partition, count) VALUES ('{KEY}', '{time}', -1, {count})"
        ));
    }

    for read_plan in [ReadPlan::Tiles, ReadPlan::Tables] {
        let reader = place.reading(read_plan);
        assert_eq!(sum(&place, &reader, KEY, 1_727_215_430, 1_727_400_000), 487, "{read_plan:?}");

        let slice = Slice {
            granularity: Granularity::Hour,
            from_s: 1_727_136_000,
            to_s: 1_727_136_000 + DAY_S,
        };

        let cells =
            place.block_on(reader.cells(generation_of(34, 0), KEY.to_owned(), slice)).unwrap();
        assert_eq!(cells.iter().map(|cell| cell.count).collect::<Vec<_>>(), [18, 22]);
    }
}

/// Two partitions of the log count the same keys, and both plans read the same sums.
#[test]
fn tiles_and_tables_hold_the_same_counts() {
    let Some(place) = Place::new() else { return };
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");

    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let stores = [place.store(0), place.store(1)];
    let mut ledgers = stores.each_ref().map(Ledger::new);
    let begin_s = 20_000 * DAY_S;
    let forever = Horizons::default();

    let mut model = Vec::new();
    for round in 0..6 {
        for _ in 0..50 {
            let time_s = begin_s + random.random_range(0..40 * DAY_S);
            let value = random.random_range(-5..50);
            ledgers[random.random_range(0..2)].add(
                generation_of(34, 0),
                "k",
                time_s,
                value,
                &forever,
            );
            model.push((time_s, value));
        }
        ledgers[round % 2].commit();
    }

    ledgers.iter_mut().for_each(Ledger::commit);
    let readers = [ReadPlan::Tiles, ReadPlan::Tables].map(|read_plan| place.reading(read_plan));

    for _ in 0..40 {
        let from_s = begin_s + random.random_range(0..40 * DAY_S);
        let plan = Plan::new(from_s, from_s + random.random_range(0..40 * DAY_S)).unwrap();
        let inside = model.iter().filter(|(time_s, _)| (plan.from_s..plan.to_s).contains(time_s));
        let expected: i128 = inside.map(|(_, value)| i128::from(*value)).sum();

        for reader in &readers {
            assert_eq!(sum(&place, reader, "k", plan.from_s, plan.to_s), expected, "seed {seed}");
        }
    }
}

/// A count that overflowed is an error by either plan, and never the number that marks it.
#[test]
fn an_overflowed_count_is_refused_by_both_plans() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    let mut ledger = Ledger::new(&store);
    let generation = generation_of(34, 0);
    let day_s = 20_000 * DAY_S;

    ledger.add(generation, "k", day_s, i64::MAX, &Horizons::default());
    ledger.add(generation, "k", day_s, 1, &Horizons::default());
    ledger.commit();

    for read_plan in [ReadPlan::Tiles, ReadPlan::Tables] {
        let reader = place.reading(read_plan);
        let query = Query {
            generation,
            key: "k".to_owned(),
            plan: Plan::new(day_s, day_s + DAY_S).unwrap(),
        };

        let sum = place.block_on(reader.sums(vec![query])).remove(0);
        assert!(matches!(sum, Err(Error::Overflow(_))), "{read_plan:?}: {sum:?}");

        let slice = Slice { granularity: Granularity::Hour, from_s: day_s, to_s: day_s + DAY_S };
        let cells = place.block_on(reader.cells(generation, "k".to_owned(), slice));
        assert!(matches!(cells, Err(Error::Overflow(_))), "{read_plan:?}: {cells:?}");
    }
}
