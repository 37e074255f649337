//! The slots of a cluster and the nodes that hold them.

use redis::Value;

const SLOTS: usize = 16_384;

/// Host and port of a node.
pub type Address = (String, u16);

/// For each slot, the index of the node that holds it.
pub struct Owners(Vec<Option<u16>>);

impl Default for Owners {
    fn default() -> Self {
        Self(vec![None; SLOTS])
    }
}

impl Owners {
    pub fn of(&self, slot: u16) -> Option<usize> {
        self.0.get(usize::from(slot)).copied().flatten().map(usize::from)
    }

    /// Parses the answer to `CLUSTER SLOTS`: the masters and their slots. A node without a name of
    /// its own is the one that answered.
    pub fn read(answer: &Value, asked_host: &str) -> Option<(Vec<Address>, Self)> {
        let mut addresses = Vec::<Address>::new();
        let mut owners = Self::default();
        for range in list(answer)? {
            let [first, last, master, ..] = list(range)? else {
                return None;
            };
            let first = number(first)?;
            let last = number(last)?;
            let [host, port, ..] = list(master)? else {
                return None;
            };
            let host =
                text(host).filter(|host| !host.is_empty() && *host != "?").unwrap_or(asked_host);
            let address = (host.to_owned(), number(port)?);
            let node = addresses.iter().position(|known| *known == address).unwrap_or_else(|| {
                addresses.push(address);
                addresses.len() - 1
            });

            owners
                .0
                .get_mut(usize::from(first)..=usize::from(last))?
                .fill(u16::try_from(node).ok());
        }

        Some((addresses, owners))
    }
}

fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// The slot of a key: of the text between its first braces if there is any, otherwise of the whole
/// key.
pub fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16(hashed.as_bytes()) % SLOTS as u16
}

/// CRC-16/XMODEM, as the specification of Redis Cluster requires.
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = table();
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
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
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // Expected values from `CLUSTER KEYSLOT` of Redis 7.
        assert_eq!(
            [slot_of("foo"), slot_of("bar"), slot_of("a{foo}b"), slot_of("{}foo")],
            [12_182, 5_061, 12_182, 9_500]
        );
        assert_eq!(slot_of("a{{foo}b"), slot_of("{foo"));
    }

    #[test]
    fn an_answer_is_read_or_refused() {
        let node =
            |host: &str, port| Value::Array(vec![Value::BulkString(host.into()), Value::Int(port)]);
        let range =
            |first, last, node| Value::Array(vec![Value::Int(first), Value::Int(last), node]);
        let answer = Value::Array(vec![
            range(0, 99, node("10.0.0.1", 7_000)),
            range(100, 16_383, node("", 7_001)),
            range(50, 50, node("10.0.0.1", 7_000)),
        ]);

        let (addresses, owners) = Owners::read(&answer, "asked").unwrap();
        assert_eq!(addresses, [("10.0.0.1".to_owned(), 7_000), ("asked".to_owned(), 7_001)]);
        assert_eq!(
            [0, 99, 100, 16_383].map(|slot| owners.of(slot)),
            [Some(0), Some(0), Some(1), Some(1)]
        );
        assert_eq!(Owners::default().of(5), None);

        for wrong in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(9, 16_384, node("a", 1))]),
        ] {
            assert!(Owners::read(&wrong, "asked").is_none());
        }

        assert!(Owners::read(&Value::Array(vec![range(9, 3, node("a", 1))]), "asked").is_none());
    }
}
