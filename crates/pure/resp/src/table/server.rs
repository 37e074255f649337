//! Commands about the server.

use super::*;

rows! {
    "server"

    Dbsize "dbsize" 1 [READONLY FAST] [KEYSPACE] Objects
        [] "1.0.0" "Counts the keys of the database.";
    Flushdb "flushdb" -1 [WRITE] [KEYSPACE DANGEROUS] Objects
        [] "1.0.0" "Deletes all keys of the database.";
    Flushall "flushall" -1 [WRITE] [KEYSPACE DANGEROUS] Objects
        [] "1.0.0" "Deletes all keys of all databases.";
    Swapdb "swapdb" 3 [WRITE FAST] [KEYSPACE DANGEROUS] Objects
        [] "4.0.0" "Exchanges two databases.";
    Info "info" -1 [LOADING STALE] [DANGEROUS] Door
        [] "1.0.0" "Describes the server.";
    Time "time" 1 [LOADING STALE FAST] [] Door
        [] "2.6.0" "Returns the time of the server.";
    Lastsave "lastsave" 1 [LOADING STALE FAST] [ADMIN DANGEROUS] Door
        [] "1.0.0" "Returns the time of the last save.";
    Save "save" 1 [ADMIN NOSCRIPT NO_ASYNC_LOADING NO_MULTI] [] Door
        [] "1.0.0" "Answers OK: what was acknowledged is saved.";
    Bgsave "bgsave" -1 [ADMIN NOSCRIPT NO_ASYNC_LOADING] [] Door
        [] "1.0.0" "Asks for a checkpoint.";
    Bgrewriteaof "bgrewriteaof" 1 [ADMIN NOSCRIPT NO_ASYNC_LOADING] [] Door
        [] "1.0.0" "Asks for a checkpoint.";
    Role "role" 1 [NOSCRIPT LOADING STALE FAST] [ADMIN DANGEROUS] Door
        [] "2.8.12" "Returns the role in replication.";
    Command "command" -1 [LOADING STALE] [CONNECTION] Door
        [] "2.8.13" "Describes commands.";
    CommandCount "command|count" 2 [LOADING STALE] [CONNECTION] Door
        [] "2.8.13" "Counts the commands.";
    CommandInfo "command|info" -2 [LOADING STALE] [CONNECTION] Door
        [] "2.8.13" "Describes commands by name.";
    CommandDocs "command|docs" -2 [LOADING STALE] [CONNECTION] Door
        [] "7.0.0" "Documents commands.";
    CommandList "command|list" -2 [LOADING STALE] [CONNECTION] Door
        [] "7.0.0" "Lists the names of commands.";
    CommandGetkeys "command|getkeys" -4 [LOADING STALE] [CONNECTION] Door
        [] "2.8.13" "Returns the keys of a command.";
    CommandGetkeysandflags "command|getkeysandflags" -4 [LOADING STALE] [CONNECTION] Door
        [] "7.0.0" "Returns the keys of a command and how it uses them.";
    CommandHelp "command|help" 2 [LOADING STALE] [CONNECTION] Door
        [] "5.0.0" "Lists the subcommands.";
    Config "config" -2 [] [] Door
        [] "2.0.0" "Commands about parameters.";
    ConfigGet "config|get" -3 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Returns parameters.";
    ConfigSet "config|set" -4 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Changes parameters.";
    ConfigResetstat "config|resetstat" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.0.0" "Resets statistics.";
    ConfigRewrite "config|rewrite" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.8.0" "Refused: the configuration file is written by its owner.";
    ConfigHelp "config|help" 2 [LOADING STALE] [] Door
        [] "5.0.0" "Lists the subcommands.";
    Slowlog "slowlog" -2 [] [] Door
        [] "2.2.12" "Commands about slow commands.";
    SlowlogGet "slowlog|get" -2 [ADMIN LOADING STALE] [] Door
        [] "2.2.12" "Returns slow commands.";
    SlowlogLen "slowlog|len" 2 [ADMIN LOADING STALE] [] Door
        [] "2.2.12" "Counts the slow commands that are kept.";
    SlowlogReset "slowlog|reset" 2 [ADMIN LOADING STALE] [] Door
        [] "2.2.12" "Forgets the slow commands.";
    SlowlogHelp "slowlog|help" 2 [LOADING STALE] [] Door
        [] "6.2.0" "Lists the subcommands.";
    Latency "latency" -2 [] [] Door
        [] "2.8.13" "Commands about latency.";
    LatencyLatest "latency|latest" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.8.13" "Returns the latest events of latency.";
    LatencyHistory "latency|history" 3 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.8.13" "Returns the events of one kind.";
    LatencyHistogram "latency|histogram" -2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "7.0.0" "Returns the distribution of durations of commands.";
    LatencyReset "latency|reset" -2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.8.13" "Forgets events of latency.";
    LatencyDoctor "latency|doctor" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.8.13" "Reports on latency.";
    LatencyGraph "latency|graph" 3 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "2.8.13" "Draws the events of one kind.";
    LatencyHelp "latency|help" 2 [LOADING STALE] [] Door
        [] "2.8.13" "Lists the subcommands.";
    Memory "memory" -2 [] [] Door
        [] "4.0.0" "Commands about memory.";
    MemoryUsage "memory|usage" -3 [READONLY] [] Objects
        [one(LOOK, 2)] "4.0.0" "Estimates the memory of a key.";
    MemoryDoctor "memory|doctor" 2 [] [] Door
        [] "4.0.0" "Reports on memory.";
    MemoryStats "memory|stats" 2 [] [] Door
        [] "4.0.0" "Returns figures about memory.";
    MemoryPurge "memory|purge" 2 [] [] Door
        [] "4.0.0" "Answers OK: the allocator gives memory back by itself.";
    MemoryMallocStats "memory|malloc-stats" 2 [] [] Door
        [] "4.0.0" "Returns figures of the allocator.";
    MemoryHelp "memory|help" 2 [LOADING STALE] [] Door
        [] "4.0.0" "Lists the subcommands.";
    Acl "acl" -2 [] [] Door
        [] "6.0.0" "Commands about rights.";
    AclWhoami "acl|whoami" 2 [NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Returns the name of the caller.";
    AclCat "acl|cat" -2 [NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Lists categories of commands.";
    AclList "acl|list" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Lists rights as rules.";
    AclUsers "acl|users" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Lists names.";
    AclGetuser "acl|getuser" 3 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Returns the rights of a name.";
    AclLog "acl|log" -2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Returns refused commands.";
    AclDryrun "acl|dryrun" -4 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "7.0.0" "Says whether a name may run a command.";
    AclGenpass "acl|genpass" -2 [NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Returns random digits.";
    AclSetuser "acl|setuser" -3 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Refused: tokens are made in the portal.";
    AclDeluser "acl|deluser" -3 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Refused: tokens are made in the portal.";
    AclLoad "acl|load" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Refused: there is no file of rights.";
    AclSave "acl|save" 2 [ADMIN NOSCRIPT LOADING STALE] [] Door
        [] "6.0.0" "Refused: there is no file of rights.";
    AclHelp "acl|help" 2 [LOADING STALE] [] Door
        [] "6.0.0" "Lists the subcommands.";
    Lolwut "lolwut" -1 [READONLY FAST] [] Door
        [] "5.0.0" "Shows the version.";
}
