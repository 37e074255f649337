//! Lengths in packed forms: seven bits a byte, the lowest first, and a high bit while more follow.

use crate::Damaged;

/// Bytes that a number takes.
pub fn len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Bytes that a string takes with its length before it.
pub fn blob_len(blob: &[u8]) -> usize {
    len(blob.len() as u64) + blob.len()
}

/// Appends a number.
pub fn write(mut number: u64, packed: &mut Vec<u8>) {
    while number >= 0x80 {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

/// Appends a string with its length before it.
pub fn write_blob(blob: &[u8], packed: &mut Vec<u8>) {
    write(blob.len() as u64, packed);
    packed.extend_from_slice(blob);
}

/// Reads a number, and moves the slice behind it.
pub fn read(packed: &mut &[u8]) -> Result<u64, Damaged> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = packed.split_first().ok_or(Damaged("a number is cut off"))?;
        *packed = rest;

        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(Damaged("a number is too large"));
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Damaged("a number is too large"))
}

/// Reads a string with its length before it, and moves the slice behind it.
pub fn read_blob<'a>(packed: &mut &'a [u8]) -> Result<&'a [u8], Damaged> {
    let len = usize::try_from(read(packed)?).map_err(|_| Damaged("a length is too large"))?;
    let (blob, rest) = packed.split_at_checked(len).ok_or(Damaged("a string is cut off"))?;
    *packed = rest;
    Ok(blob)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_read_back(number: u64, shift in 0u32..64) {
            let number = number >> shift;
            let mut packed = Vec::new();
            write(number, &mut packed);
            prop_assert_eq!(packed.len(), len(number));
            let mut rest = packed.as_slice();
            prop_assert_eq!(read(&mut rest), Ok(number));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() && read_blob(&mut rest).is_ok() {}
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        assert!(read(&mut [0xff; 10].as_slice()).is_err());
        let mut bytes = [0xff; 10];
        bytes[9] = 0x02;
        assert!(read(&mut bytes.as_slice()).is_err());
        bytes[9] = 0x01;
        assert_eq!(read(&mut bytes.as_slice()), Ok(u64::MAX));
        assert!(read(&mut [0x80; 3].as_slice()).is_err());
    }
}
