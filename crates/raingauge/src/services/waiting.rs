//! Waits for engines that are not available yet, and reports for which.

use parking_lot::Mutex;
#[cfg(feature = "cluster")]
use std::fmt::Display;
use std::sync::Arc;
#[cfg(feature = "cluster")]
use std::time::{Duration, Instant};

#[cfg(feature = "cluster")]
const PAUSE: Duration = Duration::from_millis(250);
/// How often a wait is reported.
#[cfg(feature = "cluster")]
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Startup progress, as reported by `/healthz` and `/readyz`.
#[derive(Clone, Default)]
pub struct Startup {
    waits_for: Arc<Mutex<Option<String>>>,
}

impl Startup {
    /// Returns the progress in a sentence, without the engines' answers, since the route is public.
    pub fn says(&self) -> String {
        match &*self.waits_for.lock() {
            Some(what) => {
                format!("the server is starting, and is waiting for {what}: its log says why")
            }
            None => "the server is starting".to_owned(),
        }
    }
}

/// Tries until it succeeds, or fails for a reason that waiting does not cure.
#[cfg(feature = "cluster")]
pub async fn until_there<T, E: Display>(
    startup: &Startup,
    what: &str,
    is_final: impl Fn(&E) -> bool,
    attempt: impl AsyncFn() -> Result<T, E>,
) -> Result<T, E> {
    let mut reported = None::<Instant>;
    loop {
        match attempt().await {
            Ok(there) => {
                if reported.is_some() {
                    tracing::info!("{what} is there");
                    startup.waits_for.lock().take();
                }
                return Ok(there);
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                if reported.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
                    tracing::warn!(%error, "waiting for {what}");
                    *startup.waits_for.lock() = Some(what.to_owned());
                    reported = Some(Instant::now());
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
