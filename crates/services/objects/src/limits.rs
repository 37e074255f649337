//! Limits of the keyspace, named in one place. docs/limits.md lists each one.

/// Most commands of one hold of the lock.
pub const HOLD_COMMANDS_MAX: usize = 1_000;
/// Bytes of replies after which a connection sends what it has, and runs the rest of its pipeline
/// later.
pub const RUN_REPLY_BYTES: usize = 1 << 20;
/// Bytes of changed objects after which a hold ends, and the next one waits for its group.
pub const HOLD_CHANGE_BYTES: usize = 16 << 20;
/// Least bytes of memory that one command, or one transaction, may load, change or answer. More
/// are allowed where twice the memory for resident objects is larger.
pub const TOGETHER_BYTES_MIN: usize = 16 << 20;
/// Most keys that are loaded together.
pub const LOAD_KEYS_MAX: usize = 1_024;
/// Bytes of objects after which loading together ends, and the commands that have theirs run.
pub const LOAD_BYTES: usize = 4 << 20;
/// Bytes of entries that one read of a wide object asks for.
pub const LOAD_PAGE_BYTES: usize = 1 << 20;
/// Most connections that load objects of more than one such read at the same time.
pub const LARGE_LOADS_MAX: usize = 4;
/// Most times that the keys of one command are loaded, while others evict them.
pub const LOAD_ROUNDS_MAX: usize = 100;
/// Most times that a group which the disk has no time for waits for the checkpoint under way, and
/// is tried again.
pub const BUSY_ROUNDS_MAX: usize = 6;
/// Most commands that wait for EXEC.
pub const MULTI_COMMANDS_MAX: usize = 100_000;
/// Most bytes of commands that wait for EXEC.
pub const MULTI_BYTES_MAX: usize = 64 << 20;
/// Most changed keys that the commands of one transaction look at to answer about all keys.
pub const OVERLAY_KEYS_MAX: usize = 1_000_000;
/// Most keys that a connection watches.
pub const WATCHED_KEYS_MAX: usize = 10_000;
/// Places of SCAN that are remembered.
pub const SCAN_PLACES_MAX: usize = 65_536;
/// Most keys that one SCAN looks at.
pub const SCAN_COUNT_MAX: usize = 10_000;
/// Keys that KEYS, and a RANDOMKEY of a small database, read at once.
pub const NAMES_PAGE_LEN: usize = 1_000;
/// Most names that KEYS answers.
pub const KEYS_LEN_MAX: usize = 5_000_000;
/// Most expired keys that one turn of the sweeper removes.
pub const SWEEP_LEN: usize = 512;
/// Most expired keys with damaged heads that the sweeper passes over.
pub const SWEEP_DAMAGED_MAX: usize = 10_000;
/// Longest id of RAIN.ONCE, in bytes.
pub const ONCE_ID_LEN_MAX: usize = 256;
/// Most random entries, repetitions allowed, of one command.
pub const PICKS_MAX: usize = 1 << 20;
