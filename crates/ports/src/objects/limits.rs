//! Limits of object stores, each with what exceeding it means.

/// Longest name of a key, in bytes. A longer one makes a group invalid.
pub const OBJECT_NAME_LEN_MAX: usize = 32 * 1_024;
/// Longest name of an entry, in bytes. A longer one makes a group invalid.
pub const OBJECT_ENTRY_LEN_MAX: usize = 60 * 1_024;
/// Longest head and longest value of an entry, in bytes: the largest string and what its head adds.
/// A longer one makes a group invalid.
pub const OBJECT_VALUE_LEN_MAX: usize = 513 << 20;
/// Bytes of a head that a scan returns, at most. The rest is left out.
pub const OBJECT_SCAN_HEAD_LEN: usize = 48;
/// Largest group, in bytes as the log holds it. A larger one is invalid.
pub const OBJECT_GROUP_BYTES_MAX: usize = 1_000 << 20;
/// The part of the reserve of the disk that is left to work in progress, as a divisor: groups that
/// only remove are taken until as little is free. Then they are refused like all others.
pub const OBJECT_REMOVAL_RESERVE_DIVISOR: u64 = 4;

/// Most reads of the disk that are under way at the same time, each on a thread of its own. Others
/// wait.
pub const OBJECT_READS_MAX: usize = 16;
