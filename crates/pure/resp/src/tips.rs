//! What `COMMAND` says about routing commands in a cluster, and about the order of their replies.

use crate::id::Id;
use crate::spec::Spec;

impl Spec {
    /// Its tips, in the words and the order of Redis. Clients of clusters follow them.
    pub fn tips(&self) -> &'static [&'static str] {
        match self.id {
            Id::Ping | Id::Flushdb | Id::Flushall | Id::MemoryPurge | Id::FunctionFlush => {
                &["request_policy:all_shards", "response_policy:all_succeeded"]
            }
            Id::ConfigSet | Id::LatencyReset | Id::SlowlogReset | Id::ScriptFlush => {
                &["request_policy:all_nodes", "response_policy:all_succeeded"]
            }

            Id::Del | Id::Unlink | Id::Exists | Id::Touch => {
                &["request_policy:multi_shard", "response_policy:agg_sum"]
            }
            Id::Mget => &["request_policy:multi_shard"],
            Id::Mset => &["request_policy:multi_shard", "response_policy:all_succeeded"],
            Id::Msetnx => &["request_policy:multi_shard", "response_policy:agg_min"],

            Id::Dbsize => &["request_policy:all_shards", "response_policy:agg_sum"],
            Id::Wait | Id::Waitaof => &["request_policy:all_shards", "response_policy:agg_min"],
            Id::Keys => &["request_policy:all_shards", "nondeterministic_output_order"],
            Id::Randomkey => &["request_policy:all_shards", "nondeterministic_output"],
            Id::Scan => &["nondeterministic_output", "request_policy:special"],

            Id::Info | Id::MemoryDoctor | Id::MemoryMallocStats | Id::MemoryStats => {
                &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]
            }
            Id::LatencyLatest
            | Id::LatencyHistory
            | Id::LatencyHistogram
            | Id::LatencyDoctor
            | Id::LatencyGraph => {
                &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]
            }
            Id::SlowlogGet => &["request_policy:all_nodes", "nondeterministic_output"],
            Id::SlowlogLen => {
                &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]
            }

            Id::ClientInfo
            | Id::ClientList
            | Id::ClusterBumpepoch
            | Id::ClusterCountFailureReports
            | Id::ClusterGetkeysinslot
            | Id::ClusterInfo
            | Id::ClusterLinks
            | Id::ClusterNodes
            | Id::ClusterReplicas
            | Id::ClusterShards
            | Id::ClusterSlaves
            | Id::ClusterSlots
            | Id::Hrandfield
            | Id::Hscan
            | Id::Lastsave
            | Id::ObjectEncoding
            | Id::ObjectFreq
            | Id::ObjectIdletime
            | Id::ObjectRefcount
            | Id::Pttl
            | Id::Spop
            | Id::Srandmember
            | Id::Sscan
            | Id::Time
            | Id::Ttl
            | Id::Zrandmember
            | Id::Zscan => &["nondeterministic_output"],

            Id::Command
            | Id::CommandDocs
            | Id::CommandInfo
            | Id::CommandList
            | Id::Hgetall
            | Id::Hkeys
            | Id::Hvals
            | Id::Sdiff
            | Id::Sinter
            | Id::Smembers
            | Id::Sunion => &["nondeterministic_output_order"],

            _ => &[],
        }
    }
}
