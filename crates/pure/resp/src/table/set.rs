//! Commands about sets.

use super::*;

rows! {
    "set"

    Sadd "sadd" -3 [WRITE DENYOOM FAST] [SET] Objects
        [one(ADD, 1)] "1.0.0" "Adds members to a set.";
    Srem "srem" -3 [WRITE FAST] [SET] Objects
        [one(REMOVE, 1)] "1.0.0" "Removes members from a set.";
    Sismember "sismember" 3 [READONLY FAST] [SET] Objects
        [one(LOOK, 1)] "1.0.0" "Says whether a set has a member.";
    Smismember "smismember" -3 [READONLY FAST] [SET] Objects
        [one(READ, 1)] "6.2.0" "Says which of the members a set has.";
    Smembers "smembers" 2 [READONLY] [SET] Objects
        [one(READ, 1)] "1.0.0" "Returns all members of a set.";
    Scard "scard" 2 [READONLY FAST] [SET] Objects
        [one(LOOK, 1)] "1.0.0" "Counts the members of a set.";
    Spop "spop" -2 [WRITE FAST] [SET] Objects
        [one(TAKE, 1)] "1.0.0" "Removes and returns random members of a set.";
    Srandmember "srandmember" -2 [READONLY] [SET] Objects
        [one(READ, 1)] "1.0.0" "Returns random members of a set.";
    Smove "smove" 4 [WRITE FAST] [SET] Objects
        [one(TAKE, 1), one(ADD, 2)] "1.0.0" "Moves a member to another set.";
    Sinter "sinter" -2 [READONLY] [SET] Objects
        [range(READ, 1, -1, 1)] "1.0.0" "Returns the intersection of sets.";
    Sintercard "sintercard" -3 [READONLY MOVABLEKEYS] [SET] Objects
        [counted(READ, 1)] "7.0.0" "Counts the intersection of sets.";
    Sinterstore "sinterstore" -3 [WRITE DENYOOM] [SET] Objects
        [one(UPDATE, 1), range(READ, 2, -1, 1)] "1.0.0" "Stores the intersection of sets.";
    Sunion "sunion" -2 [READONLY] [SET] Objects
        [range(READ, 1, -1, 1)] "1.0.0" "Returns the union of sets.";
    Sunionstore "sunionstore" -3 [WRITE DENYOOM] [SET] Objects
        [one(REPLACE, 1), range(READ, 2, -1, 1)] "1.0.0" "Stores the union of sets.";
    Sdiff "sdiff" -2 [READONLY] [SET] Objects
        [range(READ, 1, -1, 1)] "1.0.0" "Returns the difference of sets.";
    Sdiffstore "sdiffstore" -3 [WRITE DENYOOM] [SET] Objects
        [one(REPLACE, 1), range(READ, 2, -1, 1)] "1.0.0" "Stores the difference of sets.";
    Sscan "sscan" -3 [READONLY] [SET] Objects
        [one(READ, 1)] "2.8.0" "Walks over the members of a set.";
}
