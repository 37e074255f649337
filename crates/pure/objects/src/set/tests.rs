use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

type Model = BTreeSet<Vec<u8>>;

fn content(set: &Set) -> Model {
    set.iter().map(|member| member.to_vec()).collect()
}

proptest! {
    #[test]
    fn a_set_is_a_set_and_its_records_follow(
        steps in prop::collection::vec((0u8..8, prop::collection::vec(0u8..4, 0..3)), 0..60),
    ) {
        let mut set = Set::new();
        set.track();
        let mut model = Model::new();
        let mut records = Model::new();

        for (step, member) in steps {
            match step {
                0..4 => prop_assert_eq!(set.insert(&member), model.insert(member)),
                4..6 => prop_assert_eq!(set.remove(&member), model.remove(&member)),
                6 => {
                    let taken = set.take_at(usize::from(step) % set.len().max(1));
                    prop_assert_eq!(taken.is_some(), !model.is_empty());
                    taken.map(|member| model.remove(&*member));
                }
                _ => {
                    for change in set.take_changes() {
                        match change.value {
                            Some(_) => records.insert(change.sub.to_vec()),
                            None => records.remove(&*change.sub),
                        };
                    }
                    prop_assert_eq!(&records, &model);
                }
            }
            prop_assert_eq!(content(&set), model.clone());
        }

        let mut packed = Vec::new();
        set.pack(&mut packed);
        prop_assert_eq!(packed.len(), set.packed_len());
        let unpacked = Set::unpack(&packed).expect("what was packed is unpacked");
        prop_assert_eq!(content(&unpacked), model.clone());

        let loaded = Set::load(&set.meta(), set.len(), set.entries());
        prop_assert_eq!(content(&loaded.expect("its own records load")), model);
    }

    #[test]
    fn any_packed_form_is_read_or_refused(packed: Vec<u8>) {
        if let Ok(set) = Set::unpack(&packed) {
            prop_assert!(set.packed_len() <= packed.len());
        }
    }
}

#[test]
fn encodings_are_those_that_clients_know() {
    let mut set = Set::from_iter([b"1".as_slice(), b"2"]);
    assert_eq!(set.encoding(), "intset");
    set.insert(b"a");
    assert_eq!(set.encoding(), "hashtable");
}

#[test]
fn a_set_that_shrank_gives_its_room_back() {
    let mut set = Set::new();
    let member = |number: u32| number.to_string().into_bytes();
    (0..10_000).for_each(|number| assert!(set.insert(&member(number))));
    (0..9_900).for_each(|number| assert!(set.remove(&member(number))));
    assert!(set.members.capacity() <= 400, "{}", set.members.capacity());
    (9_900..10_000).for_each(|number| assert!(set.contains(&member(number))));
}
