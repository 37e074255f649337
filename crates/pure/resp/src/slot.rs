//! The slot of a key, by which clients of a cluster find its node.

/// Number of slots.
pub const COUNT: u16 = 16_384;

/// The slot of a key: CRC-16/XMODEM of its hash tag, modulo the number of slots.
pub fn of(key: &[u8]) -> u16 {
    crc16(tag(key)) % COUNT
}

/// What stands between the first `{` and the next `}`, if that is not empty; else the whole key.
/// Keys with the same tag lie in one slot.
pub fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else {
        return key;
    };

    match memchr::memchr(b'}', &key[open + 1..]) {
        None | Some(0) => key,
        Some(len) => &key[open + 1..open + 1 + len],
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let index = (crc >> 8) as u8 ^ byte;

        (crc << 8) ^ TABLE[usize::from(index)]
    })
}

/// The remainders of each byte, by the polynomial x^16 + x^12 + x^5 + 1.
static TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;

    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;

        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }

        table[index] = crc;
        index += 1;
    }

    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        // The check value of CRC-16/XMODEM, and slots that CLUSTER KEYSLOT of Redis answers.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(of(b"foo"), 12182);
        assert_eq!(of(b"bar"), 5061);
        assert_eq!(of(b""), 0);
    }

    #[test]
    fn a_tag_decides_the_slot() {
        assert_eq!(of(b"{user1000}.following"), of(b"{user1000}.followers"));
        assert_eq!(tag(b"a{b}c{d}"), b"b");
        assert_eq!(tag(b"a{}b{c}"), b"a{}b{c}");
        assert_eq!(tag(b"a{{b}}c"), b"{b");
        assert_eq!(tag(b"a{b"), b"a{b");
    }
}
