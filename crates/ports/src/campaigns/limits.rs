//! Limits of what the ledger of campaigns holds. A commit that exceeds one is invalid: campaigns
//! and events are checked before.

/// Longest subject, in bytes.
pub const LEDGER_SUBJECT_LEN_MAX: usize = 256;
/// Longest value of a state, in bytes.
pub const LEDGER_STATE_LEN_MAX: usize = 4_096;
/// Longest name of a step, an action, a destination, a budget, a variant or an outcome, in bytes.
/// The budget of a campaign in shadow has a longer name than the one that it stands for.
pub const LEDGER_LABEL_LEN_MAX: usize = 160;
/// Longest body of a delivery, in bytes.
pub const LEDGER_BODY_LEN_MAX: usize = 65_536;
/// Longest body of a timer, in bytes: an event, what is known about it, and the body of a delivery.
pub const LEDGER_TIMER_LEN_MAX: usize = 524_288;
/// Longest evidence of a decision, in bytes.
pub const LEDGER_EVIDENCE_LEN_MAX: usize = 65_536;
/// Longest stored note about an attempt, in bytes; the rest is cut off.
pub const LEDGER_NOTE_LEN_MAX: usize = 256;
/// Most rows of an uploaded table.
pub const TABLE_ROWS_MAX: u64 = 50_000_000;
/// Most bytes of segments that a process holds in memory. Those that do not fit are read from the
/// disk.
pub const SEGMENTS_BYTES_MAX: usize = 67_108_864;
/// Most records in one commit, of all kinds together.
pub const LEDGER_COMMIT_RECORDS_MAX: usize = 400_000;
/// Most records of one page, and most changed by one call of the outbox.
pub const LEDGER_PAGE_LEN_MAX: usize = 1_000;
/// Most records that one page examines.
pub const LEDGER_SCAN_MAX: usize = 10_000;
/// Up to how many pending deliveries of a destination are counted.
pub const LEDGER_BACKLOG_MAX: usize = 100_000;
