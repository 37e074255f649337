//! Commands about slots and nodes.

use super::*;

rows! {
    "cluster"

    Cluster "cluster" -2 [] [] Door
        [] "3.0.0" "Commands about slots and nodes.";
    ClusterInfo "cluster|info" 2 [STALE] [] Door
        [] "3.0.0" "Describes the state of the cluster.";
    ClusterMyid "cluster|myid" 2 [STALE] [] Door
        [] "3.0.0" "Returns the id of this node.";
    ClusterMyshardid "cluster|myshardid" 2 [LOADING STALE] [] Door
        [] "7.2.0" "Returns the id of this node's shard.";
    ClusterSlots "cluster|slots" 2 [STALE] [] Door
        [] "3.0.0" "Returns which node has which slots.";
    ClusterShards "cluster|shards" 2 [STALE] [] Door
        [] "7.0.0" "Returns shards with their slots and nodes.";
    ClusterNodes "cluster|nodes" 2 [STALE] [] Door
        [] "3.0.0" "Returns nodes with their slots, as text.";
    ClusterKeyslot "cluster|keyslot" 3 [STALE] [] Door
        [] "3.0.0" "Returns the slot of a key.";
    ClusterCountkeysinslot "cluster|countkeysinslot" 3 [STALE] [] Door
        [] "3.0.0" "Counts the keys of a slot.";
    ClusterGetkeysinslot "cluster|getkeysinslot" 4 [STALE] [] Door
        [] "3.0.0" "Returns keys of a slot.";
    ClusterLinks "cluster|links" 2 [STALE] [] Door
        [] "7.0.0" "Lists the links between nodes.";
    ClusterReplicas "cluster|replicas" 3 [ADMIN STALE] [] Door
        [] "5.0.0" "Lists the replicas of a node.";
    ClusterSlaves "cluster|slaves" 3 [ADMIN STALE] [] Door
        [] "3.0.0" "Lists the replicas of a node.";
    ClusterAddslots "cluster|addslots" -3 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterAddslotsrange "cluster|addslotsrange" -4 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "7.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterBumpepoch "cluster|bumpepoch" 2 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterDelslots "cluster|delslots" -3 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterDelslotsrange "cluster|delslotsrange" -4 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "7.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterFailover "cluster|failover" -2 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterFlushslots "cluster|flushslots" 2 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterForget "cluster|forget" 3 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterMeet "cluster|meet" -4 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterReplicate "cluster|replicate" 3 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterReset "cluster|reset" -2 [ADMIN NOSCRIPT STALE] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterSaveconfig "cluster|saveconfig" 2 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterSetConfigEpoch "cluster|set-config-epoch" 3 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterSetslot "cluster|setslot" -4 [ADMIN STALE NO_ASYNC_LOADING] [] Door
        [] "3.0.0" "Refused: raingauge assigns slots by itself.";
    ClusterCountFailureReports "cluster|count-failure-reports" 3 [ADMIN STALE] [] Door
        [] "3.0.0" "Counts reports of a failed node.";
    ClusterHelp "cluster|help" 2 [LOADING STALE] [] Door
        [] "5.0.0" "Lists the subcommands.";
    Readonly "readonly" 1 [LOADING STALE FAST] [CONNECTION] Door
        [] "3.0.0" "Lets the connection read from replicas.";
    Readwrite "readwrite" 1 [LOADING STALE FAST] [CONNECTION] Door
        [] "3.0.0" "Ends READONLY.";
    Asking "asking" 1 [FAST] [CONNECTION] Door
        [] "3.0.0" "Lets the next command use a slot that is moving.";
}
