//! Commands about keys of any type.

use super::*;

rows! {
    "generic"

    Del "del" -2 [WRITE] [KEYSPACE] Objects
        [range(DROP, 1, -1, 1)] "1.0.0" "Deletes keys.";
    Unlink "unlink" -2 [WRITE FAST] [KEYSPACE] Objects
        [range(DROP, 1, -1, 1)] "4.0.0" "Deletes keys.";
    Exists "exists" -2 [READONLY FAST] [KEYSPACE] Objects
        [range(LOOK, 1, -1, 1)] "1.0.0" "Counts those of the keys that exist.";
    Touch "touch" -2 [READONLY FAST] [KEYSPACE] Objects
        [range(LOOK, 1, -1, 1)] "3.2.1" "Counts those of the keys that exist, and marks them used.";
    Type "type" 2 [READONLY FAST] [KEYSPACE] Objects
        [one(LOOK, 1)] "1.0.0" "Returns the type of a key.";
    Rename "rename" 3 [WRITE] [KEYSPACE] Objects
        [one(TAKE, 1), one(REPLACE, 2)] "1.0.0" "Renames a key, and overwrites the new name.";
    Renamenx "renamenx" 3 [WRITE FAST] [KEYSPACE] Objects
        [one(TAKE, 1), one(CREATE, 2)] "1.0.0" "Renames a key if the new name is free.";
    Copy "copy" -3 [WRITE DENYOOM] [KEYSPACE] Objects
        [one(READ, 1), one(REPLACE, 2)] "6.2.0" "Copies a key.";
    Move "move" 3 [WRITE FAST] [KEYSPACE] Objects
        [one(CHANGE, 1)] "1.0.0" "Moves a key to another database.";
    Randomkey "randomkey" 1 [READONLY] [KEYSPACE] Objects
        [] "1.0.0" "Returns a random key.";
    Keys "keys" 2 [READONLY] [KEYSPACE DANGEROUS] Objects
        [] "1.0.0" "Returns all keys that match a pattern.";
    Scan "scan" -2 [READONLY] [KEYSPACE] Objects
        [] "2.8.0" "Walks over the keys of the database.";
    Expire "expire" -3 [WRITE FAST] [KEYSPACE] Objects
        [one(UPDATE, 1)] "1.0.0" "Sets the lifetime of a key in seconds.";
    Pexpire "pexpire" -3 [WRITE FAST] [KEYSPACE] Objects
        [one(UPDATE, 1)] "2.6.0" "Sets the lifetime of a key in milliseconds.";
    Expireat "expireat" -3 [WRITE FAST] [KEYSPACE] Objects
        [one(UPDATE, 1)] "1.2.0" "Sets the time at which a key expires, in seconds.";
    Pexpireat "pexpireat" -3 [WRITE FAST] [KEYSPACE] Objects
        [one(UPDATE, 1)] "2.6.0" "Sets the time at which a key expires, in milliseconds.";
    Ttl "ttl" 2 [READONLY FAST] [KEYSPACE] Objects
        [one(READ, 1)] "1.0.0" "Returns the remaining lifetime of a key in seconds.";
    Pttl "pttl" 2 [READONLY FAST] [KEYSPACE] Objects
        [one(READ, 1)] "2.6.0" "Returns the remaining lifetime of a key in milliseconds.";
    Expiretime "expiretime" 2 [READONLY FAST] [KEYSPACE] Objects
        [one(READ, 1)] "7.0.0" "Returns the time at which a key expires, in seconds.";
    Pexpiretime "pexpiretime" 2 [READONLY FAST] [KEYSPACE] Objects
        [one(READ, 1)] "7.0.0" "Returns the time at which a key expires, in milliseconds.";
    Persist "persist" 2 [WRITE FAST] [KEYSPACE] Objects
        [one(UPDATE, 1)] "2.2.0" "Removes the expiry of a key.";
    Object "object" -2 [] [] Objects
        [] "2.2.3" "Commands about the representation of a key.";
    ObjectEncoding "object|encoding" 3 [READONLY] [KEYSPACE] Objects
        [one(LOOK, 2)] "2.2.3" "Returns the representation of a key.";
    ObjectRefcount "object|refcount" 3 [READONLY] [KEYSPACE] Objects
        [one(LOOK, 2)] "2.2.3" "Returns the number of references to a value.";
    ObjectIdletime "object|idletime" 3 [READONLY] [KEYSPACE] Objects
        [one(LOOK, 2)] "2.2.3" "Returns the seconds since a key was used.";
    ObjectFreq "object|freq" 3 [READONLY] [KEYSPACE] Objects
        [one(LOOK, 2)] "4.0.0" "Returns how often a key is used.";
    ObjectHelp "object|help" 2 [LOADING STALE] [KEYSPACE] Objects
        [] "6.2.0" "Lists the subcommands.";
    Wait "wait" 3 [NOSCRIPT] [CONNECTION] Door
        [] "3.0.0" "Waits until replicas have the writes of this connection.";
    Waitaof "waitaof" 4 [NOSCRIPT] [CONNECTION] Door
        [] "7.2.0" "Waits until the writes of this connection are on disk.";
}
