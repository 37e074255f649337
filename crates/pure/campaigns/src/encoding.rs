//! Compact encodings of state that the ledger keeps: numbers of variable length behind one byte
//! that says the version and the kind.
//!
//! Every value has one encoding. Bytes that are not the encoding of a value are an error.

/// Version of all encodings, in the high half of the first byte.
const VERSION: u8 = 1;
/// Bytes of the longest number: 128 bits in groups of 7.
const NUMBER_LEN_MAX: usize = 19;
/// Bytes of a number that fits one register: up to 63 bits.
const REGISTER_LEN: usize = 9;

/// Bytes of state that are no encoding of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored state of a campaign is damaged, or of a newer version")]
pub struct DecodeError;

/// Begins an encoding of a kind, a number below 16.
pub(crate) fn begin(kind: u8) -> Vec<u8> {
    assert!(kind < 16, "a kind has four bits");
    vec![VERSION << 4 | kind]
}

pub(crate) fn put_unsigned(out: &mut Vec<u8>, mut number: u128) {
    while number > u128::from(u64::MAX) {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    // Most numbers fit one register from the beginning on.
    let mut number = number as u64;
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers near zero are short, whatever their sign.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i128) {
    put_unsigned(out, (number << 1 ^ number >> 127) as u128);
}

/// Reads what the functions above have written.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the first byte, and returns the kind.
    pub(crate) fn begin(bytes: &'a [u8]) -> Result<(u8, Self), DecodeError> {
        let (first, rest) = bytes.split_first().ok_or(DecodeError)?;
        if first >> 4 != VERSION {
            return Err(DecodeError);
        }
        Ok((first & 0xf, Self { rest }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn unsigned(&mut self) -> Result<u128, DecodeError> {
        let mut number = 0;
        for (place, byte) in self.rest.iter().enumerate().take(REGISTER_LEN) {
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                let has_leading_zeros = place > 0 && *byte == 0;
                return if has_leading_zeros { Err(DecodeError) } else { Ok(number.into()) };
            }
        }
        self.long()
    }

    /// A number that may need more than one register.
    fn long(&mut self) -> Result<u128, DecodeError> {
        let is_last = |byte: &u8| byte & 0x80 == 0;
        let len = self.rest.iter().position(is_last).ok_or(DecodeError)? + 1;
        let (digits, rest) = self.rest.split_at(len);

        // A number without leading zeros that fits 128 bits: 18 groups of 7, and 2 bits.
        let last = digits[len - 1];
        let is_too_large = len > NUMBER_LEN_MAX || len == NUMBER_LEN_MAX && last > 3;
        if is_too_large || len > 1 && last == 0 {
            return Err(DecodeError);
        }

        self.rest = rest;
        let value = |number, digit: &u8| number << 7 | u128::from(digit & 0x7f);
        Ok(digits.iter().rev().fold(0, value))
    }

    pub(crate) fn signed(&mut self) -> Result<i128, DecodeError> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    /// An unsigned number that fits a smaller type.
    pub(crate) fn small<N: TryFrom<u128>>(&mut self) -> Result<N, DecodeError> {
        N::try_from(self.unsigned()?).map_err(|_| DecodeError)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.is_empty() { Ok(()) } else { Err(DecodeError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_encoding_of_another_version_is_refused() {
        assert!(Reader::begin(&[0x1f]).is_ok());
        assert_eq!(Reader::begin(&[0x2f]).err(), Some(DecodeError));
        assert_eq!(Reader::begin(&[]).err(), Some(DecodeError));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn numbers_are_read_as_written(
            unsigned in any::<u128>(), signed in any::<i128>(), shift in 0_u32..128,
        ) {
            let mut bytes = begin(15);
            put_unsigned(&mut bytes, unsigned >> shift);
            put_signed(&mut bytes, signed >> shift);
            let (kind, mut reader) = Reader::begin(&bytes).unwrap();
            prop_assert_eq!(kind, 15);
            prop_assert_eq!(reader.unsigned(), Ok(unsigned >> shift));
            prop_assert_eq!(reader.signed(), Ok(signed >> shift));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        /// Whatever the bytes are, they are refused, or they are the one encoding of the number.
        #[test]
        fn a_number_has_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let mut reader = Reader { rest: &bytes };
            if let Ok(number) = reader.unsigned() {
                let mut again = Vec::new();
                put_unsigned(&mut again, number);
                prop_assert_eq!(&bytes[..bytes.len() - reader.rest.len()], &again[..]);
            }
        }
    }
}
