//! A list beside a naive model, a vector, and its records beside what they should be.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::{List, Side, TooManyMoves, longest_run};
use crate::limits::LIST_MOVES_MAX;
use crate::{Collection, Damaged};

#[derive(Debug, Clone)]
enum Step {
    Push(Side, String),
    Pop(Side),
    Set(usize, String),
    Insert(usize, String),
    Remove(Vec<usize>),
    Keep(usize, usize),
}

fn any_side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Left), Just(Side::Right)]
}

fn steps(len: usize) -> impl Strategy<Value = Vec<Step>> {
    let entry = || "[a-e]{0,3}";
    let step = prop_oneof![
        12 => (any_side(), entry()).prop_map(|(side, entry)| Step::Push(side, entry)),
        4 => any_side().prop_map(Step::Pop),
        3 => (any::<usize>(), entry()).prop_map(|(at, entry)| Step::Set(at, entry)),
        3 => (any::<usize>(), entry()).prop_map(|(at, entry)| Step::Insert(at, entry)),
        2 => prop::collection::vec(any::<usize>(), 0..6).prop_map(Step::Remove),
        1 => (0usize..10, 0usize..60).prop_map(|(from, len)| Step::Keep(from, from + len)),
    ];

    prop::collection::vec(step, 0..len)
}

fn run(list: &mut List, model: &mut Vec<Bytes>, steps: &[Step]) {
    for step in steps {
        let len = model.len();
        match step {
            Step::Push(side, entry) => {
                let entry = Bytes::from(entry.clone());
                list.push(*side, entry.clone());
                model.insert(if *side == Side::Left { 0 } else { len }, entry);
            }
            Step::Pop(side) => {
                let at = if *side == Side::Left { 0 } else { len.saturating_sub(1) };
                let expected = (len > 0).then(|| model.remove(at));
                assert_eq!(list.pop(*side), expected);
            }
            Step::Set(at, entry) if len > 0 => {
                let entry = Bytes::from(entry.clone());
                list.set(at % len, entry.clone());
                model[at % len] = entry;
            }
            Step::Set(..) => {}
            Step::Insert(at, entry) => {
                let entry = Bytes::from(entry.clone());
                list.insert(at % (len + 1), entry.clone()).unwrap();
                model.insert(at % (len + 1), entry);
            }
            Step::Remove(positions) => {
                let mut positions: Vec<usize> =
                    positions.iter().filter(|_| len > 0).map(|at| at % len.max(1)).collect();
                positions.sort_unstable();
                positions.dedup();
                list.remove(&positions).unwrap();
                positions.iter().rev().for_each(|at| drop(model.remove(*at)));
            }
            Step::Keep(from, to) => {
                list.keep(*from..*to);
                let to = (*to).min(len);
                *model = model[(*from).min(to)..to].to_vec();
            }
        }
    }
}

fn agree(list: &List, model: &[Bytes]) {
    assert_eq!(list.len(), model.len());
    assert_eq!(list.iter().cloned().collect::<Vec<_>>(), model);
    assert_eq!(list.bytes, model.iter().map(Bytes::len).sum::<usize>());

    let mut packed = Vec::new();
    list.pack(&mut packed);
    assert_eq!(packed.len(), list.packed_len());
    assert_eq!(List::unpack(&packed).unwrap().entries, list.entries);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_list_is_a_vector(steps in steps(300)) {
        let mut list = List::new();
        let mut model = Vec::new();
        run(&mut list, &mut model, &steps);
        agree(&list, &model);

        prop_assert_eq!(list.get(model.len()), None);
        let ranged: Vec<Bytes> = list.range(2..9).cloned().collect();
        let expected: Vec<Bytes> = model.iter().take(9).skip(2).cloned().collect();
        prop_assert_eq!(ranged, expected);
    }

    /// Records of a wide list, changed by what is taken after each part of the steps, are the list.
    #[test]
    fn changes_keep_the_records_in_step(parts in prop::collection::vec(steps(40), 1..10)) {
        let mut list = List::new();
        let mut model = Vec::new();
        run(&mut list, &mut model, &parts[0]);
        prop_assert!(list.take_changes().is_empty(), "nothing is remembered yet");

        let mut records: BTreeMap<Bytes, Bytes> = list.entries().collect();
        list.track();
        for part in &parts[1..] {
            run(&mut list, &mut model, part);
            for change in list.take_changes() {
                match change.value {
                    Some(value) => records.insert(change.sub, value),
                    None => records.remove(&change.sub),
                };
            }
            prop_assert_eq!(&records, &list.entries().collect::<BTreeMap<_, _>>());
        }

        let loaded = List::load(&list.meta(), list.len(), records).unwrap();
        agree(&loaded, &model);
        prop_assert_eq!(loaded.meta(), list.meta());
    }

    #[test]
    fn damaged_records_are_refused_or_read(bytes: Vec<u8>) {
        let _ = List::unpack(&bytes);
        let _ = List::begin(&bytes, bytes.len());
    }
}

fn list_of(len: usize) -> List {
    let mut list = List::new();
    (0..len).for_each(|number| list.push(Side::Right, Bytes::from(number.to_string())));
    list.track();
    list
}

#[test]
fn pushes_and_pops_write_one_record() {
    let mut list = list_of(1000);
    list.push(Side::Left, Bytes::from("a"));
    assert_eq!(list.take_changes().len(), 1);

    list.pop(Side::Right);
    let changes = list.take_changes();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].value, None);
}

#[test]
fn an_edit_in_the_middle_moves_the_shorter_side() {
    let mut list = list_of(1000);
    list.insert(3, Bytes::from("a")).unwrap();
    assert_eq!(list.take_changes().len(), 4, "three moved and one new");
    list.insert(list.len() - 2, Bytes::from("a")).unwrap();
    assert_eq!(list.take_changes().len(), 3);

    list.remove(&[5, 900]).unwrap();
    assert_eq!(list.take_changes().len(), 6 + 102, "what stands between the two stays");
}

#[test]
fn an_edit_that_moves_too_many_entries_is_refused() {
    let mut list = list_of(2 * LIST_MOVES_MAX + 3);
    let middle = LIST_MOVES_MAX + 1;

    let refused = TooManyMoves { moves: middle };
    assert_eq!(list.insert(middle, Bytes::from("a")), Err(refused));
    assert_eq!(list.remove(&[middle]), Err(refused));
    assert!(list.take_changes().is_empty(), "nothing has changed");

    assert_eq!(list.insert(LIST_MOVES_MAX, Bytes::from("a")), Ok(()));
    assert_eq!(list.len(), 2 * LIST_MOVES_MAX + 4);
}

#[test]
fn the_longest_run_between_removals_stays() {
    assert_eq!(longest_run(&[], 4), 0..4);
    assert_eq!(longest_run(&[1, 6], 8), 2..6);
    assert_eq!(longest_run(&[0, 1], 8), 2..8);
    assert_eq!(longest_run(&[0, 1], 2).len(), 0);
}

#[test]
fn records_that_lie_are_refused() {
    let list = list_of(3);
    let damaged = Err(Damaged("an entry of a list is not the next one"));

    let mut loaded = List::begin(&list.meta(), 3).unwrap();
    let records: Vec<_> = list.entries().collect();
    assert_eq!(loaded.add_entry(&records[1].0, b""), damaged);
    assert_eq!(loaded.add_entry(&records[0].0, b""), Ok(()));

    assert!(List::begin(&list.meta(), 4).is_err());
    assert!(List::begin(&list.meta()[..15], 3).is_err());
}

#[test]
fn a_list_that_shrank_gives_its_room_back() {
    let full = || {
        let mut list = List::new();
        (0..10_000).for_each(|number: u32| list.push(Side::Right, number.to_string().into()));
        list
    };
    let mut popped = full();
    while popped.len() > 100 {
        popped.pop(Side::Left);
    }
    let mut kept = full();
    kept.keep(9_900..10_000);
    let mut removed = full();
    removed.remove(&(0..9_900).collect::<Vec<_>>()).expect("no moves");
    for list in [&popped, &kept, &removed] {
        assert!(list.entries.capacity() <= 400, "{}", list.entries.capacity());
        assert_eq!(list.get(0), Some(&Bytes::from_static(b"9900")));
    }
}
