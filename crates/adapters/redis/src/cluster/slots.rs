//! The slots of a cluster and the nodes that hold them.

use raingauge_resp::slot;
use redis::Value;

/// Host and port of a node.
pub type Address = (String, u16);

/// For each slot, the index of the node that holds it.
pub struct Owners(Vec<Option<u16>>);

impl Default for Owners {
    fn default() -> Self {
        Self(vec![None; usize::from(slot::COUNT)])
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

#[cfg(test)]
mod tests {
    use super::*;

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
