//! The metrics of the history.

use metrics::{counter, gauge};

/// Notes the file of a day, with its size.
pub fn note_file(bytes: u64) {
    counter!("raingauge_campaign_history_days_total").increment(1);
    counter!("raingauge_campaign_history_bytes_total").increment(bytes);
}

/// Notes up to when everything is written, in milliseconds since 1970; the smallest number as long
/// as that is unknown.
pub fn note_until(until_ms: i64) {
    if until_ms > i64::MIN {
        gauge!("raingauge_campaign_history_until_seconds").set(until_ms as f64 / 1e3);
    }
}
