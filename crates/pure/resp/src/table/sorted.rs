//! Commands about sorted sets.

use super::*;

rows! {
    "sorted-set"

    Zadd "zadd" -4 [WRITE DENYOOM FAST] [SORTEDSET] Objects
        [one(UPDATE, 1)] "1.2.0" "Adds members with scores, or changes scores.";
    Zincrby "zincrby" 4 [WRITE DENYOOM FAST] [SORTEDSET] Objects
        [one(CHANGE, 1)] "1.2.0" "Adds to the score of a member.";
    Zrem "zrem" -3 [WRITE FAST] [SORTEDSET] Objects
        [one(REMOVE, 1)] "1.2.0" "Removes members.";
    Zscore "zscore" 3 [READONLY FAST] [SORTEDSET] Objects
        [one(READ, 1)] "1.2.0" "Returns the score of a member.";
    Zmscore "zmscore" -3 [READONLY FAST] [SORTEDSET] Objects
        [one(READ, 1)] "6.2.0" "Returns the scores of members.";
    Zcard "zcard" 2 [READONLY FAST] [SORTEDSET] Objects
        [one(LOOK, 1)] "1.2.0" "Counts the members.";
    Zcount "zcount" 4 [READONLY FAST] [SORTEDSET] Objects
        [one(READ, 1)] "2.0.0" "Counts the members in a range of scores.";
    Zlexcount "zlexcount" 4 [READONLY FAST] [SORTEDSET] Objects
        [one(READ, 1)] "2.8.9" "Counts the members in a range of names.";
    Zrank "zrank" -3 [READONLY FAST] [SORTEDSET] Objects
        [one(READ, 1)] "2.0.0" "Returns the rank of a member, from the lowest score.";
    Zrevrank "zrevrank" -3 [READONLY FAST] [SORTEDSET] Objects
        [one(READ, 1)] "2.0.0" "Returns the rank of a member, from the highest score.";
    Zrange "zrange" -4 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "1.2.0" "Returns members in a range of ranks, scores or names.";
    Zrangestore "zrangestore" -5 [WRITE DENYOOM] [SORTEDSET] Objects
        [one(REPLACE, 1), one(READ, 2)] "6.2.0" "Stores members in a range of any kind.";
    Zrangebyscore "zrangebyscore" -4 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "1.0.5" "Returns members in a range of scores.";
    Zrangebylex "zrangebylex" -4 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "2.8.9" "Returns members in a range of names.";
    Zrevrange "zrevrange" -4 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "1.2.0" "Returns members in a range of ranks, highest score first.";
    Zrevrangebyscore "zrevrangebyscore" -4 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "2.2.0" "Returns members in a range of scores, highest first.";
    Zrevrangebylex "zrevrangebylex" -4 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "2.8.9" "Returns members in a range of names, last name first.";
    Zremrangebyrank "zremrangebyrank" 4 [WRITE] [SORTEDSET] Objects
        [one(REMOVE, 1)] "2.0.0" "Removes members in a range of ranks.";
    Zremrangebyscore "zremrangebyscore" 4 [WRITE] [SORTEDSET] Objects
        [one(REMOVE, 1)] "1.2.0" "Removes members in a range of scores.";
    Zremrangebylex "zremrangebylex" 4 [WRITE] [SORTEDSET] Objects
        [one(REMOVE, 1)] "2.8.9" "Removes members in a range of names.";
    Zpopmin "zpopmin" -2 [WRITE FAST] [SORTEDSET] Objects
        [one(TAKE, 1)] "5.0.0" "Removes and returns the members with the lowest scores.";
    Zpopmax "zpopmax" -2 [WRITE FAST] [SORTEDSET] Objects
        [one(TAKE, 1)] "5.0.0" "Removes and returns the members with the highest scores.";
    Zmpop "zmpop" -4 [WRITE MOVABLEKEYS] [SORTEDSET] Objects
        [counted(TAKE, 1)] "7.0.0" "Removes members of the first sorted set that has some.";
    Zrandmember "zrandmember" -2 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "6.2.0" "Returns random members.";
    Zunion "zunion" -3 [READONLY MOVABLEKEYS] [SORTEDSET] Objects
        [counted(READ, 1)] "6.2.0" "Returns the union of sorted sets.";
    Zunionstore "zunionstore" -4 [WRITE DENYOOM MOVABLEKEYS] [SORTEDSET] Objects
        [one(REPLACE, 1), counted(READ, 2)] "2.0.0" "Stores the union of sorted sets.";
    Zinter "zinter" -3 [READONLY MOVABLEKEYS] [SORTEDSET] Objects
        [counted(READ, 1)] "6.2.0" "Returns the intersection of sorted sets.";
    Zinterstore "zinterstore" -4 [WRITE DENYOOM MOVABLEKEYS] [SORTEDSET] Objects
        [one(REPLACE, 1), counted(READ, 2)] "2.0.0" "Stores the intersection of sorted sets.";
    Zintercard "zintercard" -3 [READONLY MOVABLEKEYS] [SORTEDSET] Objects
        [counted(READ, 1)] "7.0.0" "Counts the intersection of sorted sets.";
    Zdiff "zdiff" -3 [READONLY MOVABLEKEYS] [SORTEDSET] Objects
        [counted(READ, 1)] "6.2.0" "Returns the difference of sorted sets.";
    Zdiffstore "zdiffstore" -4 [WRITE DENYOOM MOVABLEKEYS] [SORTEDSET] Objects
        [one(REPLACE, 1), counted(READ, 2)] "6.2.0" "Stores the difference of sorted sets.";
    Zscan "zscan" -3 [READONLY] [SORTEDSET] Objects
        [one(READ, 1)] "2.8.0" "Walks over members and scores.";
    Bzpopmin "bzpopmin" -3 [WRITE NOSCRIPT BLOCKING FAST] [SORTEDSET] Objects
        [range(TAKE, 1, -2, 1)] "5.0.0" "Waits for a member with the lowest score and removes it.";
    Bzpopmax "bzpopmax" -3 [WRITE NOSCRIPT BLOCKING FAST] [SORTEDSET] Objects
        [range(TAKE, 1, -2, 1)] "5.0.0" "Waits for a member with the highest score and removes it.";
    Bzmpop "bzmpop" -5 [WRITE BLOCKING MOVABLEKEYS] [SORTEDSET] Objects
        [counted(TAKE, 2)] "7.0.0" "Waits for members of the first sorted set that has some.";
}
