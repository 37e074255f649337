//! Limits of requests.

/// Arguments of one command.
pub const RESP_ARGUMENTS_MAX: usize = 1_048_576;
/// Bytes of an inline command, and of the line before arguments.
pub const RESP_INLINE_BYTES_MAX: usize = 64 * 1024;
/// Arguments of a command before the caller has logged in.
pub const RESP_GUEST_ARGUMENTS_MAX: usize = 10;
/// Bytes of an argument before the caller has logged in.
pub const RESP_GUEST_ARGUMENT_BYTES_MAX: usize = 16 * 1024;
/// Arguments from this length on are read into a buffer of exactly their size.
pub const RESP_LARGE_BYTES_MIN: usize = 64 * 1024;
/// Bytes that are read from a connection at once, at first.
pub const RESP_READ_BYTES_MIN: usize = 16 * 1024;
/// Bytes that are read from a connection at once, when it sends more than it took before.
pub const RESP_READ_BYTES_MAX: usize = 1024 * 1024;
