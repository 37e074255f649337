//! Waiting for engines that are not there yet, and saying for what.

use std::fmt::Display;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(250);
/// How often somebody who waits says so.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Tries until it succeeds, or fails in a way that time does not heal.
pub async fn until_there<T, E: Display>(
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
                }
                return Ok(there);
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                if reported.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
                    tracing::warn!(%error, "waiting for {what}");
                    reported = Some(Instant::now());
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
