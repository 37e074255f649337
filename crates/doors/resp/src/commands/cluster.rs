//! `CLUSTER`: slots and nodes, as clients of a cluster ask for them.

use raingauge_resp::{Arguments, Failure, Id, Replies, SlotNode, Slots, slot};

use super::{help, slots};
use crate::desk::Desk;

pub(super) fn run(
    desk: &mut Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    if id == Id::ClusterHelp {
        help::reply("cluster", replies);
        return Ok(());
    }

    let map = desk.server.slots()?.clone();
    match id {
        Id::ClusterInfo => replies.verbatim(&info(&map)),
        Id::ClusterMyid | Id::ClusterMyshardid => replies.bulk(map.own().id.as_bytes()),
        Id::ClusterNodes => replies.verbatim(&nodes(&map)),
        Id::ClusterSlots => list_slots(&map, replies),
        Id::ClusterShards => shards(&map, replies),
        Id::ClusterKeyslot => replies.integer(slot::of(arguments.at(2)).into()),
        Id::ClusterLinks => replies.array(0),
        // There are no replicas to read from, and no slot is on its way to another node.
        Id::Readonly | Id::Readwrite | Id::Asking => replies.ok(),

        Id::ClusterReplicas | Id::ClusterSlaves => {
            find_node(&map, arguments.at(2))?;
            replies.array(0);
        }
        Id::ClusterCountFailureReports => {
            find_node(&map, arguments.at(2))?;
            replies.integer(0);
        }
        Id::ClusterCountkeysinslot => slots::count(desk, arguments, replies)?,
        Id::ClusterGetkeysinslot => slots::keys(desk, arguments, replies)?,

        _ => return Err(Failure::text("ERR raingauge assigns slots by itself")),
    }

    Ok(())
}

fn find_node<'a>(map: &'a Slots, id: &[u8]) -> Result<&'a SlotNode, Failure> {
    let found = map.nodes().iter().find(|node| node.id.as_bytes() == id);

    found.ok_or_else(|| Failure::owned(format!("ERR Unknown node {}", String::from_utf8_lossy(id))))
}

fn info(map: &Slots) -> String {
    let nodes = map.nodes().len();
    let slots = slot::COUNT;

    format!(
        "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:{slots}\r\n\
         cluster_slots_ok:{slots}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n\
         cluster_known_nodes:{nodes}\r\ncluster_size:{nodes}\r\ncluster_current_epoch:1\r\n\
         cluster_my_epoch:1\r\ncluster_stats_messages_sent:0\r\n\
         cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n"
    )
}

/// One line for each node: the form that clients have parsed longest.
fn nodes(map: &Slots) -> String {
    let mut lines = String::new();

    for (index, node) in map.nodes().iter().enumerate() {
        let flags = if node.id == map.own().id { "myself,master" } else { "master" };
        // The port of the bus, which raingauge does not have, is that of Redis.
        let bus = u32::from(node.port) + 10_000;
        let epoch = index + 1;
        lines.push_str(&format!(
            "{} {}:{}@{bus} {flags} - 0 0 {epoch} connected",
            node.id, node.host, node.port
        ));

        for (first, last) in &node.ranges {
            let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
            lines.push(' ');
            lines.push_str(&range);
        }
        lines.push('\n');
    }

    lines
}

fn list_slots(map: &Slots, replies: &mut Replies) {
    let mut ranges: Vec<_> = map
        .nodes()
        .iter()
        .flat_map(|node| node.ranges.iter().map(move |(first, last)| (*first, *last, node)))
        .collect();
    ranges.sort_unstable_by_key(|(first, _, _)| *first);

    replies.array(ranges.len());
    for (first, last, node) in ranges {
        replies.array(3);
        replies.integer(first.into());
        replies.integer(last.into());

        replies.array(4);
        replies.bulk(node.host.as_bytes());
        replies.integer(node.port.into());
        replies.bulk(node.id.as_bytes());
        replies.array(0);
    }
}

fn shards(map: &Slots, replies: &mut Replies) {
    replies.array(map.nodes().len());

    for node in map.nodes() {
        replies.map(2);
        replies.bulk(b"slots");
        replies.array(node.ranges.len() * 2);
        for (first, last) in &node.ranges {
            replies.integer((*first).into());
            replies.integer((*last).into());
        }

        replies.bulk(b"nodes");
        replies.array(1);
        replies.map(7);
        replies.bulk(b"id");
        replies.bulk(node.id.as_bytes());
        replies.bulk(b"port");
        replies.integer(node.port.into());

        for (name, text) in [("ip", &*node.host), ("endpoint", &*node.host), ("role", "master")] {
            replies.bulk(name.as_bytes());
            replies.bulk(text.as_bytes());
        }
        replies.bulk(b"replication-offset");
        replies.integer(0);
        replies.bulk(b"health");
        replies.bulk(b"online");
    }
}
