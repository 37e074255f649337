//! The nodes of a static cluster, as the settings give them.

use raingauge_resp::{SlotNode, slot};
use raingauge_settings::{Entry, Reader, Setting};
use sha2::{Digest, Sha256};

/// A process of a static cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub host: String,
    pub port: u16,
    /// First and last slot of each range, in order.
    pub slots: Vec<(u16, u16)>,
}

impl Node {
    /// `HOST:PORT`, an IPv6 address in brackets.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The node as clients of the cluster know it.
    pub(crate) fn slot_node(&self) -> SlotNode {
        SlotNode {
            id: id_of(&self.address()),
            host: self.host.clone(),
            port: self.port,
            ranges: self.slots.clone(),
        }
    }

    /// Reads `HOST:PORT FIRST-LAST FIRST-LAST …`; a single slot needs no `-LAST`.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let place = words.next().unwrap_or_default();
        let (host, port) =
            host_and_port(place).ok_or_else(|| format!("{place:?} is not a host with a port"))?;

        let mut slots = Vec::new();
        for word in words {
            let range = slot_range(word).ok_or_else(|| {
                format!(
                    "{word:?} is not a range of slots such as 0-8191, up to {}",
                    slot::COUNT - 1
                )
            })?;
            slots.push(range);
        }
        if slots.is_empty() {
            return Err(format!("{place} has no slots"));
        }

        slots.sort_unstable();
        Ok(Self { host: host.to_owned(), port, slots })
    }
}

impl Entry for Node {
    fn read_all(reader: &mut Reader, setting: &'static Setting) -> Vec<Self> {
        let mut nodes = Vec::new();
        for part in reader.value::<Vec<String>>(setting) {
            match Self::parse(&part) {
                Ok(node) => nodes.push(node),
                Err(message) => {
                    let advice = "Give nodes such as \"a:7001 0-8191, b:7001 8192-16383\"";
                    reader.refuse(&setting.path(), message, advice);
                }
            }
        }
        nodes
    }
}

fn slot_range(word: &str) -> Option<(u16, u16)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let first = first.parse().ok()?;
    let last = last.parse().ok()?;
    (first <= last && last < slot::COUNT).then_some((first, last))
}

/// The host and the port of `HOST:PORT`, where an IPv6 address stands in brackets.
pub fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
    let is_right = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(is_host),
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    is_right.then_some((bare.unwrap_or(host), port))
}

/// 40 hexadecimal digits that follow from a text: the form of ids in Redis.
pub fn id_of(text: &str) -> String {
    let mut digits = hex::encode(Sha256::digest(text.as_bytes()));
    digits.truncate(40);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_with_their_slots() {
        let node = Node::parse("[::1]:7001 100-200 7").unwrap();
        assert_eq!((&*node.host, node.port), ("::1", 7_001));
        assert_eq!(node.slots, [(7, 7), (100, 200)]);
        assert_eq!(node.address(), "[::1]:7001");
        for wrong in ["a 0-1", "a:0 0-1", "a:7001", "a:7001 2-1", "a:7001 0-16384", ":7001 0-1"] {
            assert!(Node::parse(wrong).is_err(), "{wrong}");
        }
    }
}
