//! Commands about bits of strings.

use super::*;

rows! {
    "bitmap"

    Setbit "setbit" 4 [WRITE DENYOOM] [BITMAP] Objects
        [one(CHANGE, 1)] "2.2.0" "Sets or clears one bit.";
    Getbit "getbit" 3 [READONLY FAST] [BITMAP] Objects
        [one(READ, 1)] "2.2.0" "Returns one bit.";
    Bitcount "bitcount" -2 [READONLY] [BITMAP] Objects
        [one(READ, 1)] "2.6.0" "Counts the bits that are set.";
    Bitpos "bitpos" -3 [READONLY] [BITMAP] Objects
        [one(READ, 1)] "2.8.7" "Finds the first bit that is set or clear.";
    Bitop "bitop" -4 [WRITE DENYOOM] [BITMAP] Objects
        [one(REPLACE, 2), range(READ, 3, -1, 1)] "2.6.0" "Combines strings bit by bit.";
    Bitfield "bitfield" -2 [WRITE DENYOOM] [BITMAP] Objects
        [one(CHANGE.and(VARIABLE), 1)] "3.2.0" "Reads and changes integers in a string.";
    BitfieldRo "bitfield_ro" -2 [READONLY FAST] [BITMAP] Objects
        [one(READ, 1)] "6.0.0" "Reads integers in a string.";
}
