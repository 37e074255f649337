//! Limits of queues. They hold on every engine, so that a letter fits wherever it is sent.

/// Longest id of a letter, in bytes.
pub const QUEUE_ID_LEN_MAX: usize = 512;
/// Longest body of a letter, in bytes. SQS takes 256 KiB with everything that surrounds the body.
pub const QUEUE_BODY_LEN_MAX: usize = 131_072;
/// Longest stored reason or error of a letter, in bytes; the rest is cut off.
pub const QUEUE_ERROR_LEN_MAX: usize = 512;
/// Most letters of one call.
pub const QUEUE_CALL_LEN_MAX: usize = 1_000;
/// Most letters that have been received and not yet deleted, in a queue of one machine.
pub const QUEUE_IN_FLIGHT_MAX: usize = 120_000;
/// Longest delay of a letter that is sent, in seconds. One that waits longer is received, and made
/// visible later.
pub const QUEUE_DELAY_S_MAX: u64 = 900;
/// Longest visibility, counted from the receive, in seconds.
pub const QUEUE_VISIBILITY_S_MAX: u64 = 43_200;
/// Longest wait of a receive for its first letter, in seconds.
pub const QUEUE_WAIT_S_MAX: u64 = 20;
