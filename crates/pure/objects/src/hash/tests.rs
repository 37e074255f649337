use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Changes,
}

fn step() -> impl Strategy<Value = Step> {
    let field = || prop::collection::vec(0u8..4, 0..3);
    prop_oneof![
        4 => (field(), prop::collection::vec(any::<u8>(), 0..30))
            .prop_map(|(field, value)| Step::Set(field, value)),
        2 => field().prop_map(Step::Remove),
        1 => Just(Step::Changes),
    ]
}

fn content(hash: &Hash) -> Model {
    hash.iter().map(|(field, value)| (field.to_vec(), value.to_vec())).collect()
}

proptest! {
    #[test]
    fn a_hash_is_a_map_and_its_records_follow(steps in prop::collection::vec(step(), 0..60)) {
        let mut hash = Hash::new();
        hash.track();
        let mut model = Model::new();
        let mut records = Model::new();

        for step in steps {
            match step {
                Step::Set(field, value) => {
                    let new = hash.set(&field, &value);
                    prop_assert_eq!(new, model.insert(field, value).is_none());
                }
                Step::Remove(field) => {
                    prop_assert_eq!(hash.remove(&field), model.remove(&field).is_some());
                }
                Step::Changes => {
                    for change in hash.take_changes() {
                        match change.value {
                            Some(value) => records.insert(change.sub.to_vec(), value.to_vec()),
                            None => records.remove(&*change.sub),
                        };
                    }
                    prop_assert_eq!(&records, &model);
                }
            }
            prop_assert_eq!(content(&hash), model.clone());
        }

        let mut packed = Vec::new();
        hash.pack(&mut packed);
        prop_assert_eq!(packed.len(), hash.packed_len());
        let unpacked = Hash::unpack(&packed).expect("what was packed is unpacked");
        prop_assert_eq!(content(&unpacked), model.clone());
        prop_assert_eq!(unpacked.packed_len(), hash.packed_len());

        let loaded = Hash::load(&hash.meta(), hash.len(), hash.entries());
        prop_assert_eq!(content(&loaded.expect("its own records load")), model);
    }

    #[test]
    fn any_packed_form_is_read_or_refused(packed: Vec<u8>) {
        if let Ok(hash) = Hash::unpack(&packed) {
            prop_assert!(hash.packed_len() <= packed.len());
        }
    }

    #[test]
    fn weight_returns_to_that_of_an_empty_hash(values in prop::collection::vec("[a-z]{0,80}", 0..20)) {
        let mut hash = Hash::new();
        let empty = hash.weight();
        for (index, value) in values.iter().enumerate() {
            hash.set(format!("{}{value}", index % 7).as_bytes(), value.as_bytes());
        }
        let fields: Vec<Blob> = hash.iter().map(|(field, _)| field.clone()).collect();
        for field in fields {
            prop_assert!(hash.remove(&field));
        }
        prop_assert_eq!((hash.weight(), hash.packed_len()), (empty, 0));
    }

    #[test]
    fn a_walk_misses_nothing_that_stays(
        kept in 600usize..700,
        count in 1usize..90,
        removals in prop::collection::vec(0usize..700, 0..100),
    ) {
        let mut hash = Hash::new();
        for field in 0..kept {
            hash.set(format!("kept {field}").as_bytes(), b"");
        }
        for field in 0..700 {
            hash.set(format!("removed {field}").as_bytes(), b"");
        }

        let mut seen = std::collections::BTreeSet::new();
        let mut cursor = 0;
        let mut removals = removals.into_iter();
        loop {
            cursor = hash.scan(cursor, 3, count, |field, _| {
                seen.insert(field.to_vec());
            });
            if cursor == 0 {
                break;
            }
            if let Some(field) = removals.next() {
                hash.remove(format!("removed {field}").as_bytes());
            }
        }
        for field in 0..kept {
            prop_assert!(seen.contains(format!("kept {field}").as_bytes()), "{field}");
        }
    }
}

#[test]
fn a_walk_starts_over_after_another_load() {
    let mut hash = Hash::new();
    for field in 0..1_000 {
        hash.set(field.to_string().as_bytes(), b"");
    }
    let cursor = hash.scan(0, 1, 900, |_, _| {});
    let mut visited = 0;
    hash.scan(cursor, 2, 1_000, |_, _| visited += 1);
    assert_eq!(visited, 1_000);
}

#[test]
fn a_clone_is_not_tracked() {
    let mut hash = Hash::new();
    hash.track();
    let mut copy = hash.clone();
    copy.set(b"a", b"1");
    assert!(copy.take_changes().is_empty());
    hash.set(b"a", b"1");
    assert_eq!(hash.take_changes().len(), 1);
}

#[test]
fn a_clone_weighs_what_its_entries_weigh() {
    for len in 0..100 {
        let mut hash = Hash::new();
        hash.set(b"field", &[b'x'; 200]);
        hash.set(b"field", &vec![b'x'; len]);
        let mut copy = hash.clone();
        copy.set(b"field", b"");
        copy.remove(b"field");
        assert_eq!(copy.weight(), Hash::new().weight(), "{len} bytes");
    }
}

#[test]
fn a_hash_that_shrank_gives_its_room_back() {
    let mut hash = Hash::new();
    let field = |number: u32| number.to_string().into_bytes();
    (0..10_000).for_each(|number| assert!(hash.set(&field(number), b"v")));
    (0..9_900).for_each(|number| assert!(hash.remove(&field(number))));
    assert!(hash.entries.capacity() <= 400, "{}", hash.entries.capacity());
    (9_900..10_000).for_each(|number| assert!(hash.contains(&field(number))));
}
