//! Limits of the service of points.

/// Most commands of one request to the teller. A larger one is split by its caller.
pub const REQUEST_COMMANDS_MAX: usize = 1_000;
/// Most rows of a statement that one read returns.
pub const STATEMENT_LEN_MAX: usize = 500;
/// Most members of one read of balances.
pub const BALANCES_LEN_MAX: usize = 1_000;
/// Most rows of a statement that an explanation of a balance reads.
pub const EXPLAIN_ROWS_MAX: usize = 10_000;
/// Most members whose notifications of a day are counted. Beyond, nobody else is notified that day.
pub const NOTIFIED_MEMBERS_MAX: usize = 1_000_000;
/// Most milliseconds by which the clocks of a machine and of the database of a cluster may differ.
pub const CLOCK_APART_MAX_MS: i64 = 60_000;
/// Most sweeps that are remembered with what they did.
pub const SWEEPS_KEPT_MAX: usize = 100;
/// Most sweeps that were asked for and are not over.
pub const SWEEPS_WAITING_MAX: usize = 8;
