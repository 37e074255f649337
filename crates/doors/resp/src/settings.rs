//! The settings of the door for Redis clients.

use crate::nodes::Node;
use core::time::Duration;
use raingauge_resp::Slots;
use raingauge_settings::{FromText, Reader, Wrong, settings};
use std::collections::HashSet;
use std::net::SocketAddr;

settings! {
    /// How Redis clients reach objects and counts.
    pub struct Settings in "resp" checked by Settings::check {
        /// Address and port of the door for Redis clients; empty for none, port 0 takes a free one,
        /// and an address that is not loopback needs a token, or auth.required.
        listen: Option<SocketAddr> = address("");
        /// Host and port that clients of a cluster are sent to, where they differ from
        /// resp.listen; a cluster that listens on 0.0.0.0 or :: needs it.
        announce: String = text("");
        /// The cluster that clients see: `no` is none; `single`, one in which this process has
        /// every slot; `static`, that of resp.nodes.
        cluster: ClusterMode = one_of(&["no", "single", "static"]);
        /// The processes of a static cluster, each with host, port and its slots, with commas:
        /// "a:7001 0-8191, b:7001 8192-16383".
        nodes: Vec<Node> = text("");
        /// Most connections at once; further ones are answered an error and closed.
        connections_max: usize = whole(10_000, 1..=1_000_000, "connections");
        /// Bytes of replies that wait for one client, beyond which its commands wait until it
        /// reads; its connection is closed when it neither reads nor sends for 3 s.
        output_bytes_max: usize = bytes(64 * MIB, MIB..=4 * GIB);
        /// How long a connection stays open without a command; 0 for ever.
        idle_timeout as "idle_timeout_s": Option<Duration> = seconds(0, 0..=86_400);
    }
}

/// The cluster that clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterMode {
    /// There is none.
    #[default]
    No,
    /// This process has every slot.
    Single,
    /// Each process has the slots that the settings give it, with a disk of its own.
    Static,
}

impl FromText for ClusterMode {
    fn from_text(word: &str) -> Result<Self, Wrong> {
        Ok(match word {
            "single" => Self::Single,
            "static" => Self::Static,
            _ => Self::No,
        })
    }
}

impl Settings {
    fn check(&mut self, reader: &mut Reader) {
        if !self.announce.is_empty() && crate::nodes::host_and_port(&self.announce).is_none() {
            let message = format!("{:?} is not a host with a port", self.announce);
            reader.refuse("resp.announce", message, "Give one such as redis.example:6380");
        }
        if !reader.are_right(&["resp.cluster", "resp.nodes", "resp.announce", "resp.listen"]) {
            return;
        }

        if self.cluster != ClusterMode::No && self.is_own_address_unspecified() {
            let message = format!("clients of a cluster cannot be sent to {}", self.own_address());
            let advice = "Give the host and port at which they reach this process, such as \
                          redis.example:6380";
            reader.refuse("resp.announce", message, advice);
            return;
        }

        if self.cluster == ClusterMode::Static {
            self.check_static(reader);
        } else if !self.nodes.is_empty() {
            let message = "there are nodes, and resp.cluster is not \"static\"";
            reader.refuse("resp.nodes", message, "Set resp.cluster to \"static\", or leave it out");
        }
    }

    /// A static cluster has every node and every slot once, and this process is one of its nodes.
    fn check_static(&self, reader: &mut Reader) {
        if let Some(address) = self.repeated_node() {
            let message = format!("several entries name {address}");
            let advice = "Give all ranges of a node in one entry, such as a:7001 0-100 200-300";
            reader.refuse("resp.nodes", message, advice);
            return;
        }

        let advice = "Give every node with its slots, from 0 to 16383, each slot once";
        let nodes = self.nodes.iter().map(Node::slot_node).collect();
        if let Err(message) = Slots::new(nodes, 0) {
            reader.refuse("resp.nodes", message, advice);
            return;
        }

        let own = self.own_address();
        if !self.nodes.iter().any(|node| node.address() == own) {
            let message = format!("{own} is none of resp.nodes");
            let advice = "Give resp.announce as the host and port of one of resp.nodes";
            reader.refuse("resp.announce", message, advice);
        }
    }

    /// A node that several entries name. It would redirect clients from one of them to another,
    /// and so to itself, without end.
    fn repeated_node(&self) -> Option<String> {
        let mut known = HashSet::new();
        let mut addresses = self.nodes.iter().map(|node| node.address().to_ascii_lowercase());

        addresses.find(|address| !known.insert(address.clone()))
    }

    /// Whether the own address is `0.0.0.0` or `::`, at which a process listens on all interfaces,
    /// and no other machine reaches it.
    fn is_own_address_unspecified(&self) -> bool {
        let own: Result<SocketAddr, _> = self.own_address().parse();
        own.is_ok_and(|own| own.ip().is_unspecified())
    }

    /// The host and port that clients of a cluster are sent to: `resp.announce`, or else
    /// `resp.listen`.
    pub fn own_address(&self) -> String {
        match self.listen {
            _ if !self.announce.is_empty() => self.announce.clone(),
            Some(listen) => listen.to_string(),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> (Settings, Vec<String>) {
        let mut reader = Reader::new(vec![Settings::GROUP]);
        reader.read_toml(std::path::Path::new("rain.toml"), toml);
        let settings = Settings::read(&mut reader);
        let problems = reader.into_problems().into_iter().map(|problem| problem.key);
        (settings, problems.collect())
    }

    #[test]
    fn nothing_listens_by_default() {
        let (settings, problems) = read("");
        assert_eq!((settings.listen, settings.cluster), (None, ClusterMode::No));
        assert!(problems.is_empty() && settings.idle_timeout.is_none());
    }

    #[test]
    fn a_static_cluster_has_every_node_once_with_all_its_ranges() {
        let problems = |nodes: &str| {
            let mut reader = Reader::new(vec![Settings::GROUP]);
            let text = format!(
                "[resp]\nlisten = \"127.0.0.1:7001\"\ncluster = \"static\"\nnodes = \"{nodes}\""
            );
            reader.read_toml(std::path::Path::new("rain.toml"), &text);
            Settings::read(&mut reader);
            reader.into_problems()
        };

        assert!(problems("127.0.0.1:7001 0-100 201-16383, b:7001 101-200").is_empty());
        for (twice, node) in [
            ("127.0.0.1:7001 0-8191, 127.0.0.1:7001 8192-16383", "127.0.0.1:7001"),
            ("127.0.0.1:7001 0-9, b:7001 10-19, B:7001 20-16383", "b:7001"),
        ] {
            let [problem] = &problems(twice)[..] else { panic!("one problem with {twice}") };
            assert_eq!(problem.key, "resp.nodes");
            assert_eq!(problem.message, format!("several entries name {node}"));
            assert!(problem.advice.contains("in one entry, such as a:7001 0-100 200-300"));
        }
    }

    #[test]
    fn clients_of_a_cluster_are_sent_to_an_address_that_they_can_reach() {
        let problems = |cluster: &str, listen: &str, announce: &str| {
            let text = format!(
                "[resp]\nlisten = \"{listen}\"\ncluster = \"{cluster}\"\nannounce = \"{announce}\"\n"
            );
            let text = match cluster {
                "static" => text + "nodes = \"0.0.0.0:7001 0-8191, a:7001 8192-16383\"\n",
                _ => text,
            };
            read(&text).1
        };

        for listen in ["0.0.0.0:7001", "[::]:7001"] {
            assert_eq!(problems("single", listen, ""), ["resp.announce"], "{listen}");
            assert_eq!(problems("single", "127.0.0.1:7001", listen), ["resp.announce"]);
            assert!(problems("single", listen, "a:7001").is_empty());
            assert!(problems("no", listen, "").is_empty());
        }
        assert_eq!(problems("static", "0.0.0.0:7001", ""), ["resp.announce"]);
        assert!(problems("static", "0.0.0.0:7001", "a:7001").is_empty());
        assert!(problems("single", "127.0.0.1:7001", "").is_empty());
    }

    #[test]
    fn a_static_cluster_has_every_slot_once_and_this_process() {
        let cluster = |nodes: &str, announce: &str| {
            let text = format!(
                "[resp]\nlisten = \"127.0.0.1:7001\"\ncluster = \"static\"\nnodes = \"{nodes}\"\n\
                 announce = \"{announce}\"\n"
            );
            read(&text).1
        };
        let whole = "127.0.0.1:7001 0-8191, b:7001 8192-16383";
        assert!(cluster(whole, "").is_empty());
        assert!(cluster(whole, "b:7001").is_empty());
        assert_eq!(cluster(whole, "c:7001"), ["resp.announce"]);
        assert_eq!(cluster(whole, "c"), ["resp.announce"]);
        for wrong in ["127.0.0.1:7001 0-8191", "", "127.0.0.1:7001 0-16383, b:7001 7", "b 0-16383"]
        {
            assert_eq!(cluster(wrong, ""), ["resp.nodes"], "{wrong}");
        }
        let alone = "[resp]\ncluster = \"single\"\nnodes = \"127.0.0.1:7001 0-16383\"\n";
        assert_eq!(read(alone).1, ["resp.nodes"]);
    }
}
