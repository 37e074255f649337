//! Commands about hashes.

use super::*;

rows! {
    "hash"

    Hset "hset" -4 [WRITE DENYOOM FAST] [HASH] Objects
        [one(UPDATE, 1)] "2.0.0" "Sets fields of a hash.";
    Hmset "hmset" -4 [WRITE DENYOOM FAST] [HASH] Objects
        [one(UPDATE, 1)] "2.0.0" "Sets fields of a hash.";
    Hsetnx "hsetnx" 4 [WRITE DENYOOM FAST] [HASH] Objects
        [one(ADD, 1)] "2.0.0" "Sets a field of a hash if it does not exist.";
    Hget "hget" 3 [READONLY FAST] [HASH] Objects
        [one(READ, 1)] "2.0.0" "Returns a field of a hash.";
    Hmget "hmget" -3 [READONLY FAST] [HASH] Objects
        [one(READ, 1)] "2.0.0" "Returns fields of a hash.";
    Hgetall "hgetall" 2 [READONLY] [HASH] Objects
        [one(READ, 1)] "2.0.0" "Returns all fields and values of a hash.";
    Hkeys "hkeys" 2 [READONLY] [HASH] Objects
        [one(READ, 1)] "2.0.0" "Returns all fields of a hash.";
    Hvals "hvals" 2 [READONLY] [HASH] Objects
        [one(READ, 1)] "2.0.0" "Returns all values of a hash.";
    Hlen "hlen" 2 [READONLY FAST] [HASH] Objects
        [one(LOOK, 1)] "2.0.0" "Counts the fields of a hash.";
    Hstrlen "hstrlen" 3 [READONLY FAST] [HASH] Objects
        [one(LOOK, 1)] "3.2.0" "Returns the length of a field's value.";
    Hexists "hexists" 3 [READONLY FAST] [HASH] Objects
        [one(LOOK, 1)] "2.0.0" "Says whether a field exists.";
    Hdel "hdel" -3 [WRITE FAST] [HASH] Objects
        [one(REMOVE, 1)] "2.0.0" "Deletes fields of a hash.";
    Hincrby "hincrby" 4 [WRITE DENYOOM FAST] [HASH] Objects
        [one(CHANGE, 1)] "2.0.0" "Adds to the integer of a field.";
    Hincrbyfloat "hincrbyfloat" 4 [WRITE DENYOOM FAST] [HASH] Objects
        [one(CHANGE, 1)] "2.6.0" "Adds to the decimal number of a field.";
    Hrandfield "hrandfield" -2 [READONLY] [HASH] Objects
        [one(READ, 1)] "6.2.0" "Returns random fields of a hash.";
    Hscan "hscan" -3 [READONLY] [HASH] Objects
        [one(READ, 1)] "2.8.0" "Walks over the fields of a hash.";
}
