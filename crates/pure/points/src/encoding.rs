//! Compact encodings of what the ledger keeps: a version byte, numbers of variable length, texts
//! behind their length. Bytes that are not the encoding of a value are an error.

use crate::account::Expiry;
use crate::day::{Day, Month};
use crate::number::{Number, Rounding};
use std::sync::Arc;

/// Bytes of the longest number: 128 bits in groups of 7.
const NUMBER_LEN_MAX: usize = 19;

/// Bytes that are no encoding of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored record of points is damaged, or of a newer version")]
pub struct DecodeError;

pub(crate) fn put_unsigned(out: &mut Vec<u8>, number: impl Into<u128>) {
    let mut number = number.into();
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers near zero are short, whatever their sign.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: impl Into<i128>) {
    let number = number.into();
    put_unsigned(out, (number << 1 ^ number >> 127) as u128);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_unsigned(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A missing value is a zero, a value follows a one.
pub(crate) fn put_option<T>(
    out: &mut Vec<u8>,
    value: Option<T>,
    put: impl FnOnce(&mut Vec<u8>, T),
) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

pub(crate) fn put_day(out: &mut Vec<u8>, day: Day) {
    put_signed(out, day.0);
}

pub(crate) fn put_expiry(out: &mut Vec<u8>, expiry: Expiry) {
    match expiry {
        Expiry::Never => out.push(0),
        Expiry::Rolling => out.push(1),
        Expiry::On(day) => {
            out.push(2);
            put_day(out, day);
        }
    }
}

pub(crate) fn put_number(out: &mut Vec<u8>, number: Number) {
    put_signed(out, number.mantissa());
    put_signed(out, number.scale());
}

pub(crate) fn put_rounding(out: &mut Vec<u8>, rounding: Rounding) {
    let place = Rounding::ALL.iter().position(|other| *other == rounding);
    out.push(place.expect("ALL has every mode") as u8);
}

/// Reads what the functions above have written.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the version, which must be this one.
    pub(crate) fn begin(bytes: &'a [u8], version: u8) -> Result<Self, DecodeError> {
        let mut reader = Self { rest: bytes };
        if reader.byte()? != version {
            return Err(DecodeError);
        }
        Ok(reader)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.rest.split_first().ok_or(DecodeError)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError),
        }
    }

    pub(crate) fn bytes<const LEN: usize>(&mut self) -> Result<[u8; LEN], DecodeError> {
        let (first, rest) = self.rest.split_first_chunk::<LEN>().ok_or(DecodeError)?;
        self.rest = rest;
        Ok(*first)
    }

    fn wide(&mut self) -> Result<u128, DecodeError> {
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
        let value = |number: u128, digit: &u8| number << 7 | u128::from(digit & 0x7f);
        Ok(digits.iter().rev().fold(0, value))
    }

    pub(crate) fn unsigned<N: TryFrom<u128>>(&mut self) -> Result<N, DecodeError> {
        N::try_from(self.wide()?).map_err(|_| DecodeError)
    }

    pub(crate) fn signed<N: TryFrom<i128>>(&mut self) -> Result<N, DecodeError> {
        let number = self.wide()?;
        let signed = (number >> 1) as i128 ^ -((number & 1) as i128);
        N::try_from(signed).map_err(|_| DecodeError)
    }

    pub(crate) fn text(&mut self) -> Result<Arc<str>, DecodeError> {
        let len: usize = self.unsigned()?;
        if len > self.rest.len() {
            return Err(DecodeError);
        }
        let (text, rest) = self.rest.split_at(len);
        self.rest = rest;
        std::str::from_utf8(text).map(Arc::from).map_err(|_| DecodeError)
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// Reads a list behind its length. Every item takes a byte at least, so that a damaged length
    /// asks for no more memory than the bytes do.
    pub(crate) fn list<T, L: FromIterator<T>>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<L, DecodeError> {
        let len: usize = self.unsigned()?;
        if len > self.rest.len() {
            return Err(DecodeError);
        }
        (0..len).map(|_| read(self)).collect()
    }

    pub(crate) fn day(&mut self) -> Result<Day, DecodeError> {
        self.signed().map(Day)
    }

    pub(crate) fn month(&mut self) -> Result<Month, DecodeError> {
        self.signed().map(Month)
    }

    pub(crate) fn expiry(&mut self) -> Result<Expiry, DecodeError> {
        match self.byte()? {
            0 => Ok(Expiry::Never),
            1 => Ok(Expiry::Rolling),
            2 => Ok(Expiry::On(self.day()?)),
            _ => Err(DecodeError),
        }
    }

    pub(crate) fn number(&mut self) -> Result<Number, DecodeError> {
        let mantissa = self.signed()?;
        let scale = self.signed::<i32>()?;
        Number::new(mantissa, scale).ok_or(DecodeError)
    }

    pub(crate) fn rounding(&mut self) -> Result<Rounding, DecodeError> {
        Rounding::ALL.get(usize::from(self.byte()?)).copied().ok_or(DecodeError)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn another_version_is_refused() {
        assert!(Reader::begin(&[1], 1).is_ok());
        assert_eq!(Reader::begin(&[2], 1).err(), Some(DecodeError));
        assert_eq!(Reader::begin(&[], 1).err(), Some(DecodeError));
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_written(unsigned in any::<u128>(), signed in any::<i128>(),
            shift in 0_u32..128, text in ".{0,20}") {
            let mut bytes = vec![7];
            put_unsigned(&mut bytes, unsigned >> shift);
            put_signed(&mut bytes, signed >> shift);
            put_text(&mut bytes, &text);

            let mut reader = Reader::begin(&bytes, 7).unwrap();
            prop_assert_eq!(reader.unsigned::<u128>(), Ok(unsigned >> shift));
            prop_assert_eq!(reader.signed::<i128>(), Ok(signed >> shift));
            prop_assert_eq!(&*reader.text().unwrap(), text.as_str());
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }
}
