//! Limits of values, named in one place. docs/limits.md lists each one.

/// Most entries of a packed collection. A larger one is wide, and stays so.
pub const PACKED_ENTRIES_MAX: usize = 128;
/// Most bytes of the packed form of a collection. A larger one is wide, and stays so.
pub const PACKED_BYTES_MAX: usize = 4_096;
/// Longest string that bits are written to, in bytes: each change writes the whole string.
pub const BITS_BYTES_MAX: usize = 8 << 20;
/// Most cells of the table of a longest common subsequence: length of one string times the other's.
pub const LCS_CELLS_MAX: usize = 16 << 20;
/// Most entries that a collection reserves memory for when it is loaded, whatever its head says.
pub const RESERVED_ENTRIES_MAX: usize = 1 << 20;
/// Most entries of a list that an edit in its middle moves to other records.
pub const LIST_MOVES_MAX: usize = 10_000;
