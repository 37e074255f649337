//! The nodes of a static cluster, as the settings give them.

use raingauge_settings::{Entry, Reader, Setting};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

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

    /// Reads `HOST:PORT FIRST-LAST FIRST-LAST …`; a single slot needs no `-LAST`.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let place = words.next().unwrap_or_default();
        let (host, port) =
            host_and_port(place).ok_or_else(|| format!("{place:?} is not a host with a port"))?;

        let mut slots = Vec::new();
        for word in words {
            let range = slot_range(word).ok_or_else(|| {
                format!("{word:?} is not a range of slots such as 0-8191, up to {}", SLOTS - 1)
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
    (first <= last && last < SLOTS).then_some((first, last))
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

/// Checks that the nodes have every slot, each once. An error says which one they do not.
pub fn check(nodes: &[Node]) -> Result<(), String> {
    let mut ranges: Vec<(u16, u16)> = nodes.iter().flat_map(|node| node.slots.clone()).collect();
    ranges.sort_unstable();

    let mut next = 0;
    for (first, last) in ranges {
        if first > next {
            return Err(format!("no node has slot {next}"));
        }
        if first < next {
            return Err(format!("two nodes have slot {first}"));
        }
        next = last + 1;
    }

    if next < SLOTS { Err(format!("no node has slot {next}")) } else { Ok(()) }
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

    #[test]
    fn every_slot_belongs_to_one_node() {
        let nodes = |text: &str| -> Vec<Node> {
            text.split(',').map(|node| Node::parse(node).unwrap()).collect()
        };
        assert_eq!(check(&nodes("a:1 0-99 200-16383,b:1 100-199")), Ok(()));
        assert_eq!(check(&nodes("a:1 1-16383")), Err("no node has slot 0".to_owned()));
        assert_eq!(check(&nodes("a:1 0-9 9-16383")), Err("two nodes have slot 9".to_owned()));
        assert_eq!(check(&nodes("a:1 0-16382")), Err("no node has slot 16383".to_owned()));
        assert_eq!(check(&[]), Err("no node has slot 0".to_owned()));
    }
}
