//! Integers of 1 to 64 bits at any offset of a string.

use crate::text::Buffer;

/// An integer's sign and width: `i1` to `i64`, `u1` to `u63`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    pub signed: bool,
    pub bits: u32,
}

/// What becomes of a number that its width cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// It keeps its low bits.
    Wrap,
    /// It becomes the nearest number that fits.
    Saturate,
    /// Nothing is written.
    Fail,
}

impl Width {
    /// Parses `i16`, `u8` and the like.
    pub fn parse(text: &[u8]) -> Option<Width> {
        let (sign, digits) = text.split_first()?;
        let signed = match sign {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        let bits = crate::number::parse_i64(digits)?;
        let bits_max = if signed { 64 } else { 63 };
        (1..=bits_max).contains(&bits).then_some(Width { signed, bits: bits as u32 })
    }

    /// The number at an offset of bits. Bits behind the end of the string are zero.
    pub fn get(self, bytes: &[u8], offset: u64) -> i64 {
        let mut number = 0u64;
        for bit in offset..offset + u64::from(self.bits) {
            number = number << 1 | u64::from(crate::bits::get(bytes, bit));
        }
        self.truncate(i128::from(number))
    }

    /// Writes a number at an offset of bits, and grows the string up to there.
    pub fn set(self, buffer: &mut Buffer, offset: u64, number: i64) {
        for bit in 0..self.bits {
            let shift = self.bits - 1 - bit;
            crate::bits::set(buffer, offset + u64::from(bit), number >> shift & 1 == 1);
        }
    }

    /// A number to write in place of another. `None` if it does not fit and must not overflow.
    pub fn fit_set(self, number: i64, overflow: Overflow) -> Option<i64> {
        // What is set without a sign is read without one.
        let exact = if self.signed { i128::from(number) } else { i128::from(number as u64) };
        self.fit(exact, overflow)
    }

    /// The sum of a number and an increment. `None` if it does not fit and must not overflow.
    pub fn fit_sum(self, number: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(number) + i128::from(increment), overflow)
    }

    fn fit(self, exact: i128, overflow: Overflow) -> Option<i64> {
        let max = (1i128 << (self.bits - u32::from(self.signed))) - 1;
        let min = if self.signed { -max - 1 } else { 0 };
        if (min..=max).contains(&exact) {
            return Some(exact as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.truncate(exact)),
            Overflow::Saturate => Some(exact.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }

    /// The low bits of a number, with the sign that they have.
    fn truncate(self, exact: i128) -> i64 {
        let shift = 128 - self.bits;
        if self.signed {
            (exact << shift >> shift) as i64
        } else {
            ((exact as u128) << shift >> shift) as i64
        }
    }
}

#[cfg(test)]
mod tests;
