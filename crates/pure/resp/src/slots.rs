//! Which node has which slots.

use crate::spec::{Flags, Spec};
use crate::{Access, Arguments, Failure, Id, slot};

/// All nodes of a cluster with their slots. Every slot belongs to one node.
#[derive(Clone, Debug)]
pub struct Slots {
    nodes: Vec<SlotNode>,
    own: usize,
    /// The index of the node of each slot.
    owners: Vec<u16>,
}

/// A node of a cluster, as clients reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotNode {
    /// 40 hexadecimal digits.
    pub id: String,
    pub host: String,
    pub port: u16,
    /// First and last slot of each range.
    pub ranges: Vec<(u16, u16)>,
}

impl Slots {
    /// The map of a cluster, seen from the node at the index `own`. An error says which slot
    /// belongs to no node or to two.
    pub fn new(nodes: Vec<SlotNode>, own: usize) -> Result<Slots, String> {
        let owners = owners(&nodes)?;

        if own < nodes.len() {
            Ok(Slots { nodes, own, owners })
        } else {
            Err(format!("there is no node {own}"))
        }
    }

    pub fn nodes(&self) -> &[SlotNode] {
        &self.nodes
    }

    /// This node.
    pub fn own(&self) -> &SlotNode {
        &self.nodes[self.own]
    }

    /// The node of a slot.
    pub fn owner(&self, slot: u16) -> &SlotNode {
        &self.nodes[usize::from(self.owners[usize::from(slot)])]
    }

    /// Refuses keys of several slots, and those of a slot that another node has.
    pub fn check(&self, spec: &Spec, arguments: Arguments<'_>) -> Result<(), Failure> {
        self.check_all(std::iter::once((spec, arguments)))
    }

    /// As [`Slots::check`], over the keys of all commands together.
    pub(crate) fn check_all<'a>(
        &self,
        commands: impl Iterator<Item = (&'a Spec, Arguments<'a>)>,
    ) -> Result<(), Failure> {
        let mut found = None;
        let mut crossed = false;

        for (spec, arguments) in commands {
            spec.key_positions(arguments, |at, access| {
                let by_slot = !access.has(Access::NOT_KEY) || is_shard_channel(spec);
                let Some(key) = arguments.get(at).filter(|_| by_slot) else {
                    return;
                };

                let slot = slot::of(key);
                crossed |= found.is_some_and(|other| other != slot);
                found = Some(slot);
            });
        }

        if crossed {
            return Err(Failure::text("CROSSSLOT Keys in request don't hash to the same slot"));
        }

        match found {
            Some(slot) if usize::from(self.owners[usize::from(slot)]) != self.own => {
                let node = self.owner(slot);
                Err(Failure::owned(format!("MOVED {slot} {}:{}", node.host, node.port)))
            }
            _ => Ok(()),
        }
    }
}

/// The index of the node of each slot.
fn owners(nodes: &[SlotNode]) -> Result<Vec<u16>, String> {
    let mut owners = vec![None; usize::from(slot::COUNT)];

    for (index, node) in (0..=u16::MAX).zip(nodes) {
        for (first, last) in &node.ranges {
            if first > last {
                return Err(format!("{first}-{last} is no range of slots"));
            }
            for slot in *first..=*last {
                let owner = owners.get_mut(usize::from(slot));
                let owner = owner.ok_or_else(|| format!("there is no slot {slot}"))?;
                if owner.replace(index).is_some() {
                    return Err(format!("two nodes have slot {slot}"));
                }
            }
        }
    }

    let owned = owners.into_iter().zip(0..slot::COUNT);
    owned.map(|(owner, slot)| owner.ok_or_else(|| format!("no node has slot {slot}"))).collect()
}

fn is_shard_channel(spec: &Spec) -> bool {
    spec.flags.has(Flags::PUBSUB)
        && matches!(spec.id, Id::Spublish | Id::Ssubscribe | Id::Sunsubscribe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drain;

    fn node(port: u16, ranges: &[(u16, u16)]) -> SlotNode {
        SlotNode {
            id: format!("{port:040}"),
            host: "127.0.0.1".into(),
            port,
            ranges: ranges.to_vec(),
        }
    }

    fn check(slots: &Slots, words: &[&str]) -> Result<(), String> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let drain = Drain::of(&[&words]);
        let command = drain.get(0);
        let spec = command.check().expect("a command");

        slots.check(spec, command.arguments).map_err(|failure| failure.to_string())
    }

    #[test]
    fn keys_of_another_node_are_redirected() {
        let nodes = vec![node(7001, &[(0, 8191)]), node(7002, &[(8192, 16383)])];
        let slots = Slots::new(nodes, 0).expect("every slot once");

        assert_eq!(check(&slots, &["get", "bar"]), Ok(()));
        assert_eq!(check(&slots, &["get", "foo"]), Err("MOVED 12182 127.0.0.1:7002".into()));
        assert_eq!(check(&slots, &["ping"]), Ok(()));
        assert_eq!(check(&slots, &["subscribe", "foo"]), Ok(()));
        assert!(check(&slots, &["ssubscribe", "foo"]).is_err());
        assert_eq!(check(&slots, &["mset", "{bar}a", "1", "{bar}b", "2"]), Ok(()));
        assert_eq!(
            check(&slots, &["mset", "foo", "1", "bar", "2"]),
            Err("CROSSSLOT Keys in request don't hash to the same slot".into())
        );
    }

    #[test]
    fn the_keys_of_a_transaction_lie_in_one_slot() {
        let slots = Slots::new(vec![node(7001, &[(0, 16383)])], 0).expect("every slot once");
        let gate = crate::Gate { rights: crate::Rights::all(), slots: Some(slots.into()) };
        let together = |keys: [&[u8]; 2]| {
            let drain = Drain::of(&[&[b"get", keys[0]], &[b"ping"], &[b"get", keys[1]]]);
            gate.admit_together(&drain).is_ok()
        };

        assert!(together([b"{a}1", b"{a}2"]));
        assert!(!together([b"a", b"b"]));
    }

    #[test]
    fn every_slot_belongs_to_one_node() {
        let fault = |ranges: &[&[(u16, u16)]], own| {
            let nodes = (1..).zip(ranges).map(|(port, ranges)| node(port, ranges)).collect();
            Slots::new(nodes, own).err().unwrap_or_default()
        };
        assert_eq!(fault(&[&[(0, 99), (200, 16_383)], &[(100, 199)]], 1), "");
        assert_eq!(fault(&[&[(0, 16_383)]], 1), "there is no node 1");
        assert_eq!(fault(&[&[(1, 16_383)]], 0), "no node has slot 0");
        assert_eq!(fault(&[&[(0, 16_382)]], 0), "no node has slot 16383");
        assert_eq!(fault(&[&[(0, 16_384)]], 0), "there is no slot 16384");
        assert_eq!(fault(&[&[(0, 9_000)], &[(9_000, 16_383)]], 0), "two nodes have slot 9000");
        assert_eq!(fault(&[&[(0, 9), (9, 16_383)]], 0), "two nodes have slot 9");
        assert_eq!(fault(&[&[(9, 3), (0, 16_383)]], 0), "9-3 is no range of slots");
        assert_eq!(fault(&[], 0), "no node has slot 0");
    }
}
