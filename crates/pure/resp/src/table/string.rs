//! Commands about strings.

use super::*;

rows! {
    "string"

    Get "get" 2 [READONLY FAST] [STRING] Objects
        [one(READ, 1)] "1.0.0" "Returns the string of a key.";
    Set "set" -3 [WRITE DENYOOM] [STRING] Objects
        [one(CHANGE.and(VARIABLE), 1)] "1.0.0" "Sets the string of a key, whatever it held.";
    Setnx "setnx" 3 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CREATE, 1)] "1.0.0" "Sets a string if the key does not exist.";
    Setex "setex" 4 [WRITE DENYOOM] [STRING] Objects
        [one(REPLACE, 1)] "2.0.0" "Sets a string and its lifetime in seconds.";
    Psetex "psetex" 4 [WRITE DENYOOM] [STRING] Objects
        [one(REPLACE, 1)] "2.6.0" "Sets a string and its lifetime in milliseconds.";
    Getset "getset" 3 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CHANGE, 1)] "1.0.0" "Sets a string and returns the one before.";
    Getdel "getdel" 2 [WRITE FAST] [STRING] Objects
        [one(TAKE, 1)] "6.2.0" "Returns a string and deletes its key.";
    Getex "getex" -2 [WRITE FAST] [STRING] Objects
        [one(CHANGE, 1)] "6.2.0" "Returns a string and sets the expiry of its key.";
    Mget "mget" -2 [READONLY FAST] [STRING] Objects
        [range(READ, 1, -1, 1)] "1.0.0" "Returns the strings of several keys.";
    Mset "mset" -3 [WRITE DENYOOM] [STRING] Objects
        [range(REPLACE, 1, -1, 2)] "1.0.1" "Sets the strings of several keys at once.";
    Msetnx "msetnx" -3 [WRITE DENYOOM] [STRING] Objects
        [range(CREATE, 1, -1, 2)] "1.0.1" "Sets the strings of several keys if none exists.";
    Append "append" 3 [WRITE DENYOOM FAST] [STRING] Objects
        [one(ADD, 1)] "2.0.0" "Appends to a string.";
    Strlen "strlen" 2 [READONLY FAST] [STRING] Objects
        [one(LOOK, 1)] "2.2.0" "Returns the length of a string.";
    Getrange "getrange" 4 [READONLY] [STRING] Objects
        [one(READ, 1)] "2.4.0" "Returns a part of a string.";
    Substr "substr" 4 [READONLY] [STRING] Objects
        [one(READ, 1)] "1.0.0" "Returns a part of a string.";
    Setrange "setrange" 4 [WRITE DENYOOM] [STRING] Objects
        [one(UPDATE, 1)] "2.2.0" "Overwrites a part of a string.";
    Incr "incr" 2 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CHANGE, 1)] "1.0.0" "Adds one to an integer.";
    Decr "decr" 2 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CHANGE, 1)] "1.0.0" "Subtracts one from an integer.";
    Incrby "incrby" 3 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CHANGE, 1)] "1.0.0" "Adds to an integer.";
    Decrby "decrby" 3 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CHANGE, 1)] "1.0.0" "Subtracts from an integer.";
    Incrbyfloat "incrbyfloat" 3 [WRITE DENYOOM FAST] [STRING] Objects
        [one(CHANGE, 1)] "2.6.0" "Adds to a decimal number.";
    Lcs "lcs" -3 [READONLY] [STRING] Objects
        [range(READ, 1, 1, 1)] "7.0.0" "Returns the longest common subsequence of two strings.";
    Delifeq "delifeq" 3 [WRITE FAST] [STRING] Objects
        [one(REMOVE, 1)] "9.0.0" "Deletes a key if its string equals the given one.";
}
