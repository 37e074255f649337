//! Limits of replays, named in one place. docs/limits.md lists each one.

/// Most campaigns of one replay, of each side of a comparison.
pub const REPLAY_CAMPAIGNS_MAX: usize = 200;
/// Most events of one test.
pub const TEST_EVENTS_MAX: usize = 1_000;
/// Most fields and columns by which a backtest divides its triggers.
pub const BACKTEST_FIELDS_MAX: usize = 8;
/// Most values of one of them that are listed; the triggers of all others are one sum.
pub const BACKTEST_VALUES_MAX: usize = 1_000;
/// Subjects that a backtest and a comparison show for each step.
pub const BACKTEST_SUBJECTS_SHOWN: usize = 20;
/// Largest `k` of a backtest over one in `k` subjects.
pub const BACKTEST_SAMPLE_MAX: u64 = 10_000;
/// Most bytes of memory for the states of one replay, approximately.
pub const REPLAY_STATES_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Most answers of lookups that one replay keeps.
pub const REPLAY_ANSWERS_MAX: usize = 500_000;
/// Most recorded decisions that one replay reads for their answers of lookups, or to explain.
pub const REPLAY_DECISIONS_MAX: usize = 200_000;
/// Longest part of the log that an explanation reads at once, in entries. A longer one is a job.
pub const EXPLAIN_ENTRIES_MAX: u64 = 250_000;
/// Most events of one subject that a replay of that subject keeps, the newest ones.
pub const SUBJECT_EVENTS_MAX: usize = 20_000;
/// The newest events of a subject that an explanation without an event lists.
pub const EXPLAIN_EVENTS_SHOWN: usize = 20;
/// Subjects that an audit replays.
pub const AUDIT_SUBJECTS_MAX: usize = 50;
/// Most differences that an audit lists.
pub const AUDIT_DIFFERENCES_MAX: usize = 100;
/// Most jobs that are known at a time, ended ones included.
pub const JOBS_MAX: usize = 200;
/// Most jobs that wait or run at a time.
pub const JOBS_OPEN_MAX: usize = 16;
/// How long the result of a job is kept, in milliseconds.
pub const JOB_KEPT_MS: i64 = 3_600_000;
/// Most bytes of all results of jobs together. The oldest ones are dropped.
pub const JOB_RESULTS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most parts of a body that wait for a replay to read them.
pub const FEED_CHUNKS_MAX: usize = 16;
