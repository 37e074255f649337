//! Which of the 16,384 slots of a cluster a key belongs to.

use crate::{Connection, Error, Reply};

pub const SLOTS: usize = 16_384;

/// The slot of a key: CRC16 (XMODEM) of its hash tag, or of all of it.
pub fn of(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS as u16
}

/// The part between the first `{` and the next `}`, unless it is empty.
fn tag(key: &[u8]) -> &[u8] {
    let inner = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    inner.unwrap_or(key)
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// Ranges of slots, first and last, with the host and the port of the node that owns them, as
/// CLUSTER SLOTS lists them.
pub fn ranges(connection: &mut Connection) -> Result<Vec<(u16, u16, String, u16)>, Error> {
    let answer = connection.done(&[b"CLUSTER", b"SLOTS"])?;
    let parsed = answer.elements().and_then(|all| all.iter().map(range).collect());
    parsed.ok_or_else(|| Error::Unexpected {
        command: "CLUSTER SLOTS".to_owned(),
        answer: format!("{answer:?}"),
    })
}

fn range(reply: &Reply) -> Option<(u16, u16, String, u16)> {
    let parts = reply.elements()?;
    let owner = parts.get(2)?.elements()?;
    let number = |reply: Option<&Reply>| u16::try_from(reply?.integer()?).ok();
    let host = String::from_utf8(owner.first()?.bytes()?.to_vec()).ok()?;
    Some((number(parts.first())?, number(parts.get(1))?, host, number(owner.get(1))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(of(b"foo"), 12_182);
        assert_eq!(of(b"{user1000}.following"), of(b"{user1000}.followers"));
        assert_eq!(of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % 16_384);
        assert_eq!(of(b"foo{{bar}}zap"), crc16(b"{bar") % 16_384);
    }
}
