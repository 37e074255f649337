//! Options of the log.

use super::identities::SET_IDS_MAX;
use core::time::Duration;
use raingauge_settings::settings;

const DAY_MS: i64 = 86_400_000;

settings! {
    /// Options of the log. The last ones follow settings that the log shares with other engines.
    pub struct Options in "log" {
        /// Size at which the event log starts a new segment file.
        segment_bytes: u64 = bytes(128 * MIB, MIB..=4 * GIB);
        /// How long the event log keeps events that were applied.
        retention as "retention_hours": Duration = hours(168, 1..=87_600);
        /// Size at which the event log drops its oldest segments.
        retention_bytes: u64 = bytes(64 * GIB, 2 * MIB..=1_024 * TIB);
        /// The newest bytes of the event log that are kept for a consumer that lags, beyond the
        /// retention too; one that is further behind is overtaken.
        consumer_lag_bytes_max: u64 = bytes(64 * GIB, 2 * MIB..=1_024 * TIB);
        /// Most bytes of events that wait to be made durable; beyond it, events are refused with
        /// 429.
        queue_bytes_max: usize = bytes(64 * MIB, 64 * KIB..=64 * GIB);
    } with {
        /// Shortest time for which `source` and `id` of an event are known.
        dedupe_window_ms: i64 = DAY_MS;
        /// Most identities that are kept; the oldest are dropped early, with a warning.
        dedupe_ids_max: usize = usize::MAX;
        /// Identities kept in memory before they are written to a file.
        dedupe_set_ids: usize = SET_IDS_MAX;
        /// Below this number of free bytes on the disk, no events are accepted.
        reserve_bytes: u64 = 0;
    }
}
