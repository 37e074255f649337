//! Options of the log, with defaults for one machine.

use super::identities::SET_IDS_MAX;

/// Options of the log.
#[derive(Clone, Debug)]
pub struct Options {
    /// A segment larger than this is followed by a new one.
    pub segment_bytes: u64,
    /// Segments whose events are all older than this are removed.
    pub retention_ms: i64,
    /// The oldest segments are removed when the log is larger than this.
    pub retention_bytes: u64,
    /// The newest bytes of the log that are kept for a lagging consumer, whatever the retention.
    pub consumer_lag_bytes_max: u64,
    /// Most bytes that wait to be written. Further callers are asked to retry later.
    pub queue_bytes_max: usize,
    /// Shortest time for which `source` and `id` of an event are known.
    pub dedupe_window_ms: i64,
    /// Most identities that are kept; the oldest are dropped early, with a warning.
    pub dedupe_ids_max: usize,
    /// Below this number of free bytes on the disk, no events are accepted.
    pub reserve_bytes: u64,
    /// Identities kept in memory before they are written to a file.
    pub dedupe_set_ids: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            retention_ms: 7 * 86_400_000,
            retention_bytes: 64 << 30,
            consumer_lag_bytes_max: 64 << 30,
            queue_bytes_max: 64 << 20,
            dedupe_window_ms: 86_400_000,
            dedupe_ids_max: 64_000_000,
            reserve_bytes: 256 << 20,
            dedupe_set_ids: SET_IDS_MAX,
        }
    }
}
