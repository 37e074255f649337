//! A sorted set beside a naive model: a vector that is sorted again after each change.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use proptest::prelude::*;

use super::{LexBound, LexRange, ScoreRange, Sorted};
use crate::{Blob, Collection, score};

#[derive(Debug, Clone, Default)]
struct Model(Vec<(Vec<u8>, f64)>);

impl Model {
    fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let former = self.remove(member);
        self.0.push((member.to_vec(), score + 0.0));
        self.0.sort_by(|left, right| left.1.total_cmp(&right.1).then_with(|| left.0.cmp(&right.0)));
        former
    }

    fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let at = self.0.iter().position(|(name, _)| name == member)?;
        Some(self.0.remove(at).1)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u16, f64),
    Remove(u16),
    Pop(usize),
    RemoveRange(usize, usize),
}

/// Few names, some of them too long to lie in place, and few scores, so that there are ties.
fn name(number: u16) -> Vec<u8> {
    let long = if number.is_multiple_of(7) { "a name that lies on the heap" } else { "" };

    format!("{:x}{long}", u32::from(number) * 40_503 % 65_536).into_bytes()
}

fn any_score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-20i32..20).prop_map(f64::from),
        1 => any::<f64>().prop_filter("a number", |score| !score.is_nan()),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ]
}

fn steps(names: u16, len: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0..names, any_score()).prop_map(|(name, score)| Step::Insert(name, score)),
        4 => (0..names).prop_map(Step::Remove),
        2 => any::<usize>().prop_map(Step::Pop),
        1 => (0usize..400, 0usize..60).prop_map(|(from, len)| Step::RemoveRange(from, from + len)),
    ];

    prop::collection::vec(step, 0..len)
}

fn owned<'a>(members: impl Iterator<Item = (&'a [u8], f64)>) -> Vec<(Vec<u8>, f64)> {
    members.map(|(name, score)| (name.to_vec(), score)).collect()
}

/// Runs the steps on the set and on the model, and compares what they return.
fn run(sorted: &mut Sorted, model: &mut Model, steps: &[Step]) {
    for step in steps {
        match *step {
            Step::Insert(number, score) => {
                let name = name(number);
                assert_eq!(sorted.insert(&name, score), model.insert(&name, score));
            }
            Step::Remove(number) => {
                let name = name(number);
                assert_eq!(sorted.remove(&name), model.remove(&name));
            }
            Step::Pop(rank) => {
                let rank = rank % (model.0.len() + 1);
                let popped = sorted.pop(rank).map(|(name, score)| (name.to_vec(), score));
                let expected = (rank < model.0.len()).then(|| model.0.remove(rank));
                assert_eq!(popped, expected);
            }
            Step::RemoveRange(from, to) => {
                let to = to.min(model.0.len());
                let expected = if from < to { model.0.drain(from..to).count() } else { 0 };
                assert_eq!(sorted.remove_range(from..to), expected);
            }
        }
    }
}

/// Everything that the set says of itself is what the model says.
fn agree(sorted: &Sorted, model: &Model) {
    assert_eq!(sorted.len(), model.0.len());
    assert_eq!(owned(sorted.iter()), model.0);

    for (rank, (name, score)) in model.0.iter().enumerate() {
        assert_eq!(sorted.rank(name), Some((rank, *score)));
        assert_eq!(sorted.at(rank), Some((name.as_slice(), *score)));
        assert_eq!(sorted.score(name), Some(*score));
    }
    assert_eq!(sorted.at(model.0.len()), None);
    assert_eq!(sorted.score(b"nobody"), None);

    let mut packed = Vec::new();
    sorted.pack(&mut packed);
    assert_eq!(packed.len(), sorted.packed_len());
    let unpacked = Sorted::unpack(&packed).unwrap();
    assert_eq!(owned(unpacked.iter()), model.0);
    assert_eq!(unpacked.packed_len(), sorted.packed_len());
    assert_eq!(unpacked.heap_bytes, sorted.heap_bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_set_is_a_sorted_vector(steps in steps(300, 600)) {
        let mut sorted = Sorted::new();
        let mut model = Model::default();
        run(&mut sorted, &mut model, &steps);
        agree(&sorted, &model);
    }

    #[test]
    fn ranges_are_slices(steps in steps(300, 600), from in 0usize..320, to in 0usize..320) {
        let mut sorted = Sorted::new();
        let mut model = Model::default();
        run(&mut sorted, &mut model, &steps);

        let end = to.min(model.0.len());
        let mut expected = model.0[from.min(end)..end].to_vec();
        prop_assert_eq!(sorted.range(from..to).len(), expected.len());
        prop_assert_eq!(owned(sorted.range(from..to)), expected.clone());
        expected.reverse();
        prop_assert_eq!(owned(sorted.range_back(from..to)), expected);
    }

    #[test]
    fn ranges_of_scores_are_filters(
        steps in steps(300, 400),
        min in any_score(),
        max in any_score(),
        min_in: bool,
        max_in: bool,
    ) {
        let mut sorted = Sorted::new();
        let mut model = Model::default();
        run(&mut sorted, &mut model, &steps);

        let bound = |score, within: bool| {
            if within { Bound::Included(score) } else { Bound::Excluded(score) }
        };
        let range = ScoreRange { min: bound(min, min_in), max: bound(max, max_in) };
        let inside = |score: f64| {
            (score > min || min_in && score == min) && (score < max || max_in && score == max)
        };
        let expected: Vec<_> = model.0.into_iter().filter(|(_, score)| inside(*score)).collect();

        prop_assert_eq!(owned(sorted.range(sorted.ranks_by_score(range))), expected);
    }

    #[test]
    fn ranges_of_names_are_filters(
        numbers in prop::collection::btree_set(0u16..2000, 0..300),
        min in 0u16..2000,
        max in 0u16..2000,
        kinds in (0u8..4, 0u8..4),
    ) {
        let scores = numbers.iter().map(|number| (Blob::from_vec(name(*number)), 1.0));
        let sorted = Sorted::from_scores(scores);
        let (min, max) = (name(min), name(max));

        let bound = |kind, name| match kind {
            0 => LexBound::Lowest,
            1 => LexBound::Included(name),
            2 => LexBound::Excluded(name),
            _ => LexBound::Highest,
        };
        let range = LexRange { min: bound(kinds.0, &min), max: bound(kinds.1, &max) };
        let above = |name: &[u8]| match kinds.0 {
            0 => true,
            1 => name >= min.as_slice(),
            2 => name > min.as_slice(),
            _ => false,
        };
        let below = |name: &[u8]| match kinds.1 {
            0 => false,
            1 => name <= max.as_slice(),
            2 => name < max.as_slice(),
            _ => true,
        };
        let mut expected = owned(sorted.iter());
        expected.retain(|(name, _)| above(name) && below(name));

        prop_assert_eq!(owned(sorted.range(sorted.ranks_by_name(range))), expected);
    }

    /// Records of a wide set, changed by what is taken after each part of the steps, are the set.
    #[test]
    fn changes_keep_the_records_in_step(parts in prop::collection::vec(steps(200, 80), 1..8)) {
        let mut sorted = Sorted::new();
        let mut model = Model::default();
        run(&mut sorted, &mut model, &parts[0]);
        prop_assert!(sorted.take_changes().is_empty(), "nothing is remembered yet");

        let mut records: BTreeMap<Bytes, Bytes> = sorted.entries().collect();
        sorted.track();
        for part in &parts[1..] {
            run(&mut sorted, &mut model, part);
            for change in sorted.take_changes() {
                match change.value {
                    Some(value) => records.insert(change.sub, value),
                    None => records.remove(&change.sub),
                };
            }
            prop_assert_eq!(&records, &sorted.entries().collect::<BTreeMap<_, _>>());
        }

        let mut loaded = Sorted::load(&sorted.meta(), sorted.len(), records).unwrap();
        agree(&loaded, &model);
        prop_assert!(loaded.take_changes().is_empty());
    }

    #[test]
    fn damaged_records_are_refused_or_read(bytes: Vec<u8>) {
        let _ = Sorted::unpack(&bytes);
    }

    /// A walk visits all that was there from its start to its end, whatever else changes.
    #[test]
    fn a_walk_misses_no_member(
        before in steps(400, 800),
        between in prop::collection::vec(steps(400, 30), 0..20),
        count in 1usize..40,
    ) {
        let mut sorted = Sorted::new();
        let mut model = Model::default();
        run(&mut sorted, &mut model, &before);
        let mut stayed: Vec<Vec<u8>> = model.0.iter().map(|(name, _)| name.clone()).collect();
        let mut seen = std::collections::BTreeSet::new();

        let mut cursor = 0;
        let mut between = between.iter();
        loop {
            cursor = sorted.scan(cursor, 7, count, |name, _| {
                seen.insert(name.to_vec());
            });
            if cursor == 0 {
                break;
            }
            if let Some(steps) = between.next() {
                // A member that is removed and added again in one part has not stayed either.
                for step in steps {
                    run(&mut sorted, &mut model, std::slice::from_ref(step));
                    stayed.retain(|name| sorted.contains(name));
                }
            }
        }
        for name in stayed {
            prop_assert!(seen.contains(&name), "missed {:?}", String::from_utf8_lossy(&name));
        }
    }
}

#[test]
fn the_negative_zero_is_zero() {
    let mut sorted = Sorted::new();
    assert_eq!(sorted.insert(b"a", -0.0), None);
    assert!(sorted.score(b"a").unwrap().is_sign_positive());
    assert_eq!(sorted.insert(b"a", 0.0), Some(0.0));
}

#[test]
fn a_score_that_stays_is_no_change() {
    let mut sorted = Sorted::from_scores([(Blob::from_slice(b"a"), 2.0)]);
    sorted.track();
    sorted.insert(b"a", 2.0);
    assert!(sorted.take_changes().is_empty());
}

#[test]
fn records_that_lie_are_refused() {
    let one = score::to_bytes(1.0);
    let mut twice = Sorted::begin(b"", 2).unwrap();
    assert!(twice.add_entry(b"a", &one).is_ok());
    assert!(twice.add_entry(b"a", &one).is_err());

    let mut sorted = Sorted::begin(b"", 1).unwrap();
    assert!(sorted.add_entry(b"a", b"short").is_err());
    assert!(sorted.add_entry(b"a", &[0xff; 8]).is_err(), "a NaN");

    let record = (Bytes::from("a"), Bytes::copy_from_slice(&one));
    assert!(Sorted::load(b"", 2, [record]).is_err(), "fewer than the head says");
}

#[test]
fn the_encoding_is_that_of_other_servers() {
    let few = (0..128).map(|number| (Blob::from_slice(format!("{number}").as_bytes()), 0.0));
    let mut sorted = Sorted::from_scores(few);
    assert_eq!(sorted.encoding(), "listpack");

    sorted.insert(b"one more", 1.0);
    assert_eq!(sorted.encoding(), "skiplist");
    sorted.remove(b"one more");
    assert_eq!(sorted.encoding(), "skiplist", "it never goes back");

    let long = Blob::from_slice(&[b'x'; 65]);
    assert_eq!(Sorted::from_scores([(long, 0.0)]).encoding(), "skiplist");
}

#[test]
fn a_sorted_set_that_shrank_gives_its_room_back() {
    let member = |number: u32| Blob::from_slice(number.to_string().as_bytes());
    let full = || Sorted::from_scores((0..10_000).map(|number| (member(number), number.into())));
    let mut popped = full();
    while popped.len() > 100 {
        popped.pop(0);
    }
    let mut removed = full();
    assert_eq!(removed.remove_range(0..9_900), 9_900);
    for sorted in [&popped, &removed] {
        assert!(sorted.scores.capacity() <= 400, "{}", sorted.scores.capacity());
        assert_eq!(sorted.at(0), Some((b"9900".as_slice(), 9_900.0)));
    }
}
