//! What arrives, looked at now and then: pages ask for it far more often than it is worth looking.

use crate::Portal;
use crate::fault::Fault;
use axum::http::StatusCode;
use raingauge_counters::observed::{EVENTS_MAX, Observed, observed};
use raingauge_ports::log::Offset;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How long what was seen is shown again although more has come in.
const KEPT_MS: i64 = 5_000;

/// What was seen last.
#[derive(Debug, Default)]
pub(crate) struct Observing {
    last: Arc<Mutex<Option<Seen>>>,
}

#[derive(Debug)]
struct Seen {
    at_ms: i64,
    /// Where each partition ended.
    ends: Vec<Offset>,
    observed: Arc<Observed>,
}

impl Portal {
    /// The types of the newest events and their fields, as they were some seconds ago at most. Whoever asks while
    /// somebody looks waits for what they see.
    pub async fn observed(&self) -> Result<Arc<Observed>, Fault> {
        let mut last = Arc::clone(&self.observing.last).lock_owned().await;
        let (now_ms, logs) = (self.clock.now_ms(), self.counted.logs.clone());
        let samples = self.limits.samples.clone();
        let ends: Vec<Offset> = logs.iter().map(|log| log.end()).collect();
        if let Some(seen) = &*last {
            let is_recent = (seen.at_ms..seen.at_ms + KEPT_MS).contains(&now_ms);
            if is_recent || seen.ends == ends {
                return Ok(Arc::clone(&seen.observed));
            }
        }
        // The lock goes along: when whoever asked goes away, nobody else begins to look before this has ended.
        let looked = tokio::task::spawn_blocking(move || {
            let mut seen = observed(&logs, EVENTS_MAX)?;
            samples.redact(&mut seen);
            let seen = Arc::new(seen);
            *last = Some(Seen { at_ms: now_ms, ends, observed: Arc::clone(&seen) });
            Ok::<_, raingauge_writer::worker::Error>(seen)
        });
        let failed = |error: String| {
            Fault::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The event log cannot be read",
                format!("{error}. Try again."),
            )
        };
        let looked = looked.await.map_err(|error| failed(error.to_string()))?;
        looked.map_err(|error| failed(error.to_string()))
    }
}
