use proptest::prelude::*;

use super::*;

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![
        (1u32..=64).prop_map(|bits| Width { signed: true, bits }),
        (1u32..=63).prop_map(|bits| Width { signed: false, bits }),
    ]
}

proptest! {
    #[test]
    fn numbers_read_back(width in width(), start: Vec<u8>, offset in 0u64..200, number: i64) {
        let number = width.fit_set(number, Overflow::Wrap).expect("wrapping always fits");
        let mut buffer = Buffer::from_slice(&start);
        width.set(&mut buffer, offset, number);
        prop_assert_eq!(width.get(&buffer, offset), number);

        // Nothing else changed.
        for bit in (0..start.len() as u64 * 8)
            .filter(|bit| !(offset..offset + u64::from(width.bits)).contains(bit))
        {
            prop_assert_eq!(crate::bits::get(&buffer, bit), crate::bits::get(&start, bit));
        }
    }

    #[test]
    fn what_fits_is_the_exact_sum(width in width(), a: i64, increment: i64) {
        let number = width.fit_set(a, Overflow::Wrap).expect("wrapping always fits");
        let exact = i128::from(number) + i128::from(increment);
        let saturated = width.fit_sum(number, increment, Overflow::Saturate).map(i128::from);
        let wrapped = width.fit_sum(number, increment, Overflow::Wrap).map(i128::from);

        match width.fit_sum(number, increment, Overflow::Fail) {
            Some(sum) => {
                prop_assert_eq!(i128::from(sum), exact);
                prop_assert_eq!((saturated, wrapped), (Some(exact), Some(exact)));
            }
            None => {
                let lost = exact - wrapped.expect("wrapping always fits");
                prop_assert_eq!(lost % (1i128 << width.bits), 0);
                let saturated = saturated.expect("saturating always fits");
                prop_assert_eq!(saturated < exact, exact > 0);
            }
        }
    }
}

#[test]
fn widths_are_parsed() {
    assert_eq!(Width::parse(b"u8"), Some(Width { signed: false, bits: 8 }));
    assert_eq!(Width::parse(b"i64"), Some(Width { signed: true, bits: 64 }));
    for text in ["", "i", "u0", "u64", "i65", "x8", "I8", "u08", "u-1"] {
        assert_eq!(Width::parse(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn negative_numbers_saturate_upwards_where_there_is_no_sign() {
    let byte = Width { signed: false, bits: 8 };
    assert_eq!(byte.fit_set(-1, Overflow::Saturate), Some(255));
    assert_eq!(byte.fit_set(-1, Overflow::Wrap), Some(255));
    assert_eq!(byte.fit_sum(3, -10, Overflow::Saturate), Some(0));
    assert_eq!(byte.fit_sum(3, -10, Overflow::Fail), None);
}
