//! Commands about lists.

use super::*;

rows! {
    "list"

    Lpush "lpush" -3 [WRITE DENYOOM FAST] [LIST] Objects
        [one(ADD, 1)] "1.0.0" "Adds elements at the head of a list.";
    Rpush "rpush" -3 [WRITE DENYOOM FAST] [LIST] Objects
        [one(ADD, 1)] "1.0.0" "Adds elements at the tail of a list.";
    Lpushx "lpushx" -3 [WRITE DENYOOM FAST] [LIST] Objects
        [one(ADD, 1)] "2.2.0" "Adds elements at the head of a list that exists.";
    Rpushx "rpushx" -3 [WRITE DENYOOM FAST] [LIST] Objects
        [one(ADD, 1)] "2.2.0" "Adds elements at the tail of a list that exists.";
    Lpop "lpop" -2 [WRITE FAST] [LIST] Objects
        [one(TAKE, 1)] "1.0.0" "Removes and returns elements from the head of a list.";
    Rpop "rpop" -2 [WRITE FAST] [LIST] Objects
        [one(TAKE, 1)] "1.0.0" "Removes and returns elements from the tail of a list.";
    Lmpop "lmpop" -4 [WRITE MOVABLEKEYS] [LIST] Objects
        [counted(TAKE, 1)] "7.0.0" "Removes and returns elements of the first list that has some.";
    Llen "llen" 2 [READONLY FAST] [LIST] Objects
        [one(LOOK, 1)] "1.0.0" "Counts the elements of a list.";
    Lrange "lrange" 4 [READONLY] [LIST] Objects
        [one(READ, 1)] "1.0.0" "Returns a range of elements.";
    Lindex "lindex" 3 [READONLY] [LIST] Objects
        [one(READ, 1)] "1.0.0" "Returns the element at an index.";
    Lset "lset" 4 [WRITE DENYOOM] [LIST] Objects
        [one(UPDATE, 1)] "1.0.0" "Sets the element at an index.";
    Lrem "lrem" 4 [WRITE] [LIST] Objects
        [one(REMOVE, 1)] "1.0.0" "Removes elements by value.";
    Ltrim "ltrim" 4 [WRITE] [LIST] Objects
        [one(REMOVE, 1)] "1.0.0" "Keeps a range of elements only.";
    Linsert "linsert" 5 [WRITE DENYOOM] [LIST] Objects
        [one(ADD, 1)] "2.2.0" "Inserts an element before or after another.";
    Lpos "lpos" -3 [READONLY] [LIST] Objects
        [one(READ, 1)] "6.0.6" "Returns the index of matching elements.";
    Lmove "lmove" 5 [WRITE DENYOOM] [LIST] Objects
        [one(TAKE, 1), one(ADD, 2)] "6.2.0" "Moves an element from one list to another.";
    Rpoplpush "rpoplpush" 3 [WRITE DENYOOM] [LIST] Objects
        [one(TAKE, 1), one(ADD, 2)] "1.2.0" "Moves the last element of a list to another.";
    Blpop "blpop" -3 [WRITE NOSCRIPT BLOCKING] [LIST] Objects
        [range(TAKE, 1, -2, 1)] "2.0.0" "Waits for an element at the head of a list.";
    Brpop "brpop" -3 [WRITE NOSCRIPT BLOCKING] [LIST] Objects
        [range(TAKE, 1, -2, 1)] "2.0.0" "Waits for an element at the tail of a list.";
    Blmove "blmove" 6 [WRITE DENYOOM NOSCRIPT BLOCKING] [LIST] Objects
        [one(TAKE, 1), one(ADD, 2)] "6.2.0" "Waits for an element and moves it to another list.";
    Brpoplpush "brpoplpush" 4 [WRITE DENYOOM NOSCRIPT BLOCKING] [LIST] Objects
        [one(TAKE, 1), one(ADD, 2)] "2.2.0" "Waits for the last element of a list and moves it.";
    Blmpop "blmpop" -5 [WRITE BLOCKING MOVABLEKEYS] [LIST] Objects
        [counted(TAKE, 2)] "7.0.0" "Waits for elements of the first list that has some.";
}
