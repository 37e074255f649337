//! Limits of the door for Redis clients.

use core::time::Duration;

/// Slow commands that are kept at most, whatever `slowlog-max-len` says.
pub const RESP_SLOWLOG_MAX: usize = 100_000;
/// Arguments that a slow command is kept with; the others are counted.
pub const RESP_SLOWLOG_ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that a slow command is kept with.
pub const RESP_SLOWLOG_ARGUMENT_BYTES_MAX: usize = 128;
/// Bytes of the name that a client gives itself, or of the name or version of its library.
pub const RESP_CLIENT_NAME_BYTES_MAX: usize = 256;
/// Channels, patterns and shard channels that one connection listens to.
pub const RESP_SUBSCRIPTIONS_MAX: usize = 100_000;
/// Refusals that `ACL LOG` keeps.
pub const RESP_REFUSALS_MAX: usize = 128;
/// Longest time that running commands have to end when the server stops.
pub const RESP_END_MAX: Duration = Duration::from_secs(5);
/// How often the token of a connection is looked up again, since tokens can be withdrawn.
pub const RESP_LOGIN_RECHECK: Duration = Duration::from_secs(2);
/// How long a client may leave its replies unread, and send nothing, while too many of them wait.
pub const RESP_OUTPUT_PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of replies that may wait for a client even when too many wait for all clients together.
pub const RESP_OUTPUT_ALWAYS: usize = 1024 * 1024;
/// Bytes of an unfinished command that may wait for a client even when too many wait for all of
/// them together.
pub const RESP_INPUT_ALWAYS: usize = 1024 * 1024;
/// Buffers that one write sends together.
pub const RESP_WRITE_BUFFERS_MAX: usize = 64;
