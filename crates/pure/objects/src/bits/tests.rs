use proptest::prelude::*;

use super::*;

/// The bits one by one.
fn bits_of(bytes: &[u8]) -> Vec<bool> {
    (0..bytes.len() as u64 * 8).map(|offset| get(bytes, offset)).collect()
}

proptest! {
    #[test]
    fn set_bits_read_back(bytes: Vec<u8>, offset in 0u64..300, bit: bool) {
        let mut buffer = Buffer::from_slice(&bytes);
        let mut model = bits_of(&bytes);
        model.resize(model.len().max((offset as usize / 8 + 1) * 8), false);

        prop_assert_eq!(set(&mut buffer, offset, bit), model[offset as usize]);
        model[offset as usize] = bit;
        prop_assert_eq!(bits_of(&buffer), model);
    }

    #[test]
    fn ones_of_a_range_are_counted_and_found(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..40),
        start: prop::sample::Index,
        len: prop::sample::Index,
        bit: bool,
    ) {
        let model = bits_of(&bytes);
        let start = start.index(model.len());
        let end = start + len.index(model.len() - start);
        let range = &model[start..=end];

        let ones = range.iter().filter(|bit| **bit).count() as u64;
        prop_assert_eq!(count_range(&bytes, start as u64, end as u64), ones);
        let first = range.iter().position(|found| *found == bit);
        let first = first.map(|first| (start + first) as u64);
        prop_assert_eq!(position(&bytes, bit, start as u64, end as u64), first);
    }

    #[test]
    fn strings_are_combined_bit_by_bit(
        sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..4),
    ) {
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        let fold = |combine: fn(bool, bool) -> bool| -> Vec<bool> {
            let bit = |offset| sources.iter().map(|source| get(source, offset)).reduce(combine);
            (0..len as u64 * 8).map(|offset| bit(offset).unwrap_or(false)).collect()
        };

        let and = combine(Combination::And, &sources);
        prop_assert_eq!(bits_of(&and), fold(|a, b| a && b));
        let or = combine(Combination::Or, &sources);
        prop_assert_eq!(bits_of(&or), fold(|a, b| a || b));
        let xor = combine(Combination::Xor, &sources);
        prop_assert_eq!(bits_of(&xor), fold(|a, b| a != b));
    }
}

#[test]
fn a_string_is_inverted() {
    assert_eq!(combine(Combination::Not, &[&[0x0f, 0xff]]), [0xf0, 0x00]);
}
