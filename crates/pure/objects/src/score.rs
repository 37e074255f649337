//! Scores of sorted sets, as bits that sort and as the bytes on disk.
//!
//! A score is any number but NaN; infinities are scores. Its sortable form orders as the number
//! does: positive numbers get their sign bit set, negative ones have all bits flipped.

/// The bits of a score, ordered as unsigned integers just as the scores are. Both zeros give the
/// same bits.
pub fn to_bits(score: f64) -> u64 {
    // Adding zero turns -0 into 0 and leaves every other number as it is.
    let bits = (score + 0.0).to_bits();

    if bits >> 63 == 0 { bits | (1 << 63) } else { !bits }
}

/// The score of sortable bits.
pub fn from_bits(bits: u64) -> f64 {
    let plain = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };

    f64::from_bits(plain)
}

/// A score as it stands on disk: its sortable bits, big-endian, so that bytes sort as scores do.
pub fn to_bytes(score: f64) -> [u8; 8] {
    to_bits(score).to_be_bytes()
}

/// Reads what [`to_bytes`] wrote; `None` unless it is eight bytes and a number.
pub fn from_bytes(bytes: &[u8]) -> Option<f64> {
    let score = from_bits(u64::from_be_bytes(bytes.try_into().ok()?));

    (!score.is_nan()).then_some(score)
}

#[cfg(test)]
mod tests {
    use super::{from_bits, from_bytes, to_bits, to_bytes};
    use proptest::prelude::*;

    fn any_score() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>().prop_filter("a number", |score| !score.is_nan()),
            (-5i32..5).prop_map(f64::from),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(-0.0),
            Just(f64::MIN_POSITIVE),
        ]
    }

    proptest! {
        #[test]
        fn bits_and_bytes_sort_as_scores_do(left in any_score(), right in any_score()) {
            let order = left.partial_cmp(&right).unwrap();

            prop_assert_eq!(to_bits(left).cmp(&to_bits(right)), order);
            prop_assert_eq!(to_bytes(left).cmp(&to_bytes(right)), order);
        }

        #[test]
        fn a_score_reads_back(score in any_score()) {
            prop_assert_eq!(from_bits(to_bits(score)), score);
            prop_assert_eq!(from_bytes(&to_bytes(score)), Some(score));
        }
    }

    #[test]
    fn the_negative_zero_is_stored_as_zero() {
        assert_eq!(to_bytes(-0.0), to_bytes(0.0));
        assert!(from_bytes(&to_bytes(-0.0)).unwrap().is_sign_positive());
    }

    #[test]
    fn bytes_that_are_no_number_are_refused() {
        assert_eq!(from_bytes(&[0xff; 8]), None);
        assert_eq!(from_bytes(&[0; 8]), None);
        assert_eq!(from_bytes(&[0x80; 7]), None);
    }
}
