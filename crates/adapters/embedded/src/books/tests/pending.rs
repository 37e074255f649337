//! The pending layer by itself, compared with a map, and with its thread.

use super::simulator::FailingRecords;
use super::*;
use crate::books::pending::Limits;
use crate::files::simulated::Random;
use std::collections::BTreeMap;
use std::time::Duration;

/// More than one part of a scan has.
const ROWS: u64 = 3_000;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn pending(records: &FailingRecords, entries: usize) -> Pending {
    Pending::new(Box::new(records.clone()), Limits { entries, bytes: 1 << 30 })
}

/// A key of any kind, of few enough that they occur again.
fn any_key(random: &mut Random) -> Vec<u8> {
    let id = wallet(["ann", "bob", "bobby"][random.below(3)]);
    let number = random.below(40) as u64;
    match random.below(5) {
        0 => keys::wallet(&wallet(&format!("m{number}"))),
        1 => keys::key(Key(u128::from(number) << 100)),
        2 => keys::due(&DueWallet { hour: number as u32, wallet: id }),
        3 => keys::reference(&raingauge_points::ReferenceId {
            programme: id.programme,
            text: Arc::from(format!("order-{number}")),
        }),
        _ => keys::row(&id, number),
    }
}

fn scanned(records: &Pending, range: std::ops::Range<Vec<u8>>, is_backwards: bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let scanned = records.scan(range, is_backwards, &mut |key, value| {
        found.push([key, value].concat());
        Ok(ControlFlow::Continue(()))
    });
    scanned.unwrap();
    found
}

/// Keys that are mostly side by side, and keys with many others in between.
fn check_neighbours(records: &Pending, model: &Model, asked: Vec<Vec<u8>>) {
    let mut dense: Vec<_> = model.keys().cloned().chain(asked).collect();
    dense.sort();
    dense.dedup();
    let sparse = dense.iter().step_by(9).cloned().collect();
    for keys in [dense, sparse] {
        let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
        let found = records.get_neighbours(&keys).unwrap();
        assert_eq!(found, expected[..found.len()]);
        assert_eq!(loading::read_all(records, &keys, Duration::MAX), Ok(expected));
    }
}

/// Puts and removes at random, with layers that are frozen and written in between.
#[test]
fn what_is_pending_is_read_as_if_it_were_written() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let records = pending(&FailingRecords::new(seed), 1_000);
        let mut model = Model::new();
        for _ in 0..60 {
            let mut writes = BTreeMap::new();
            for _ in 0..random.below(12) {
                let value = vec![random.below(256) as u8; random.below(60)];
                writes.insert(any_key(&mut random), (!random.chance(25)).then_some(value));
            }
            let writes: Vec<_> = writes.into_iter().collect();
            records.commit(&writes, 1);
            for (key, value) in writes {
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            match random.below(4) {
                0 => records.freeze(),
                1 => records.write_frozen().unwrap(),
                _ => {}
            }

            let asked: Vec<_> = (0..20).map(|_| any_key(&mut random)).collect();
            let expected: Vec<_> = asked.iter().map(|key| model.get(key).cloned()).collect();
            assert_eq!(records.get_all(&asked).as_ref(), Ok(&expected), "seed {seed}");
            for alone_max in [Duration::ZERO, Duration::from_micros(5), Duration::MAX] {
                let read = loading::read_all(&records, &asked, alone_max);
                assert_eq!(read.as_ref(), Ok(&expected), "seed {seed}, {alone_max:?}");
            }
            assert_eq!(records.get(&asked[0]).unwrap(), expected[0]);
            check_neighbours(&records, &model, asked);

            let range = match random.below(2) {
                0 => keys::due_range(random.below(20) as u32, None, 30),
                _ => keys::rows_before(&wallet("bob"), random.below(40) as u64),
            };
            let expected =
                model.range(range.clone()).map(|(key, value)| [&key[..], value].concat());
            let mut expected: Vec<_> = expected.collect();
            let is_backwards = random.chance(50);
            if is_backwards {
                expected.reverse();
            }
            assert_eq!(scanned(&records, range, is_backwards), expected, "seed {seed}");
        }

        records.write_all().unwrap();
        let mut found = Model::new();
        let all = records.written().scan(keys::all(), false, &mut |key, value| {
            found.insert(key.to_vec(), value.to_vec());
            Ok(ControlFlow::Continue(()))
        });
        all.unwrap();
        assert_eq!(found, model, "seed {seed}");
    }
}

#[test]
fn only_neighbours_are_read_in_one_pass() {
    let records = pending(&FailingRecords::new(1), 1_000_000);
    let key = |number: u64| keys::row(&wallet("bob"), number);
    let rows = (0..ROWS).map(|number| (key(number), Some(vec![1])));
    records.commit(&rows.collect::<Vec<_>>(), 1);
    records.write_all().unwrap();

    let found = |step: usize, keys: std::ops::Range<u64>| {
        let asked: Vec<_> = keys.step_by(step).map(key).collect();
        (asked.len(), records.get_neighbours(&asked).unwrap().len())
    };
    for step in [1, 5] {
        let (asked, read) = found(step, 0..ROWS);
        assert_eq!(asked, read, "each {step} of the rows");
    }
    let (asked, read) = found(50, 0..ROWS);
    assert!(read < 3 && asked == 60, "{read} of {asked}");
    assert_eq!(found(1, 0..15), (15, 0), "few are looked up");
}

/// Each layer has other rows, and the newest removes some of the others.
#[test]
fn long_scans_pass_over_all_layers() {
    let bob = wallet("bob");
    let due = |hour: u64| keys::due(&DueWallet { hour: hour as u32, wallet: wallet("bob") });
    let row = |number: u64| keys::row(&bob, number);
    let records = pending(&FailingRecords::new(1), 1_000_000);
    let put = |numbers: &dyn Fn(u64) -> bool, value: Option<Vec<u8>>| {
        let numbers = (0..ROWS).filter(|number| numbers(*number));
        let keys = numbers.flat_map(|number| [due(number), row(number)]);
        records.commit(&keys.map(|key| (key, value.clone())).collect::<Vec<_>>(), 1);
    };
    put(&|number| number % 3 == 0, Some(vec![1]));
    records.write_all().unwrap();
    put(&|number| number % 3 == 1 || number == 0, Some(vec![2]));
    records.freeze();
    put(&|number| number % 2 == 0, Some(vec![3]));
    put(&|number| number % 5 == 0, None);

    let value = |number: u64| match number {
        _ if number.is_multiple_of(5) => None,
        _ if number.is_multiple_of(2) => Some(3),
        _ => [Some(1), Some(2), None][number as usize % 3],
    };
    let expected = |key: &dyn Fn(u64) -> Vec<u8>| -> Vec<_> {
        let rows = (0..ROWS).filter_map(|number| Some((number, value(number)?)));
        rows.map(|(number, value)| [key(number), vec![value]].concat()).collect()
    };
    assert_eq!(scanned(&records, keys::due_range(0, None, u32::MAX), false), expected(&due));
    let mut newest_first = expected(&row);
    newest_first.reverse();
    assert_eq!(scanned(&records, keys::rows_before(&bob, u64::MAX), true), newest_first);
}

#[test]
fn a_clean_stop_leaves_nothing_to_apply() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { pending_entries: 1_000_000, ..options() };
    let mut scene = Scene::new(9);
    let books = PointBooks::open(folder.path(), &options).unwrap();
    (0..10).for_each(|_| scene.turn(&books).unwrap());
    assert_eq!(state::head(books.inner.records.written()), Ok(Head::of_book(0)));
    drop(books);

    let records = open_records(&folder.path().join(STATE_FOLDER), &options);
    let head = state::head(records.unwrap().written()).unwrap();
    assert_eq!(head.sequence, scene.head().sequence);
}

#[test]
fn tables_that_cannot_be_written_close_the_books_and_stay_readable() {
    let disk = Disk::new(1);
    let records = FailingRecords::new(1);
    let mut books = simulator::open_with(&disk, &records, 8).unwrap();
    books._writer = Some(Writer::start(&books.inner.records).unwrap());
    let mut scene = Scene::new(2);
    records.fail_after(Some(0));

    let refused = loop {
        if let Err(refused) = scene.turn(&books) {
            break refused;
        }
    };
    assert!(
        matches!(&refused, Error::Closed(why) if why.contains("could not be written")),
        "{refused}"
    );
    same_content(&books, &scene);
    assert!(matches!(scene.turn(&books), Err(Error::Closed(_))));
}

/// Work that can wait leaves most of the room beside a layer that is being written to others.
#[test]
fn what_can_wait_takes_an_eighth_of_the_room_beside_a_layer_that_is_written() {
    let records = pending(&FailingRecords::new(1), 80);
    records.commit(&[(keys::wallet(&wallet("bob")), Some(vec![1]))], 40);
    assert!(records.has_room(), "nothing is being written");
    records.freeze();
    assert!(records.has_room());
    records.commit(&[(keys::wallet(&wallet("eve")), Some(vec![1]))], 9);
    assert!(records.has_room());
    records.commit(&[], 1);
    assert!(!records.has_room());
    records.write_frozen().unwrap();
    assert!(records.has_room());
}
