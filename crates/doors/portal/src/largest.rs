//! The largest keys of counters, as pages show them.

use crate::Portal;
use raingauge_app::Problem;
use raingauge_app::largest::{self, keys_of_page};
use raingauge_core::code::Refusal;
use raingauge_reader::{Key, LargestKeys};
use std::sync::Arc;

/// Number of keys on a page.
pub const KEYS_MAX: usize = 20;

/// The caller name under which the portal's searches take their turns.
const CALLER: &str = "the portal: keys";

/// The state of a search for the largest keys.
pub enum Largest {
    Found(Arc<LargestKeys>),
    Failed(Refusal),
    /// The search is still running: reloading the page in a moment shows its result.
    Looking,
}

impl Largest {
    pub fn keys(&self) -> &[Key] {
        match self {
            Self::Found(found) => &found.keys[..found.keys.len().min(KEYS_MAX)],
            Self::Failed(_) | Self::Looking => &[],
        }
    }
}

/// Waits for the largest keys of a counter over the UTC days that touch a range, for a file.
pub async fn all(
    portal: &Portal,
    counter: u32,
    from_s: i64,
    to_s: i64,
) -> Result<Arc<LargestKeys>, Refusal> {
    let found = largest::keys(portal, CALLER, counter, from_s, to_s).await;
    found.map_err(|Problem { refusal, .. }| refusal)
}

/// Returns the largest keys of a counter over the UTC days that touch a range, for a page.
pub async fn keys(portal: &Portal, counter: u32, from_s: i64, to_s: i64) -> Largest {
    match keys_of_page(&portal.app, CALLER, counter, from_s, to_s).await {
        Some(Ok(keys)) => Largest::Found(keys),
        Some(Err(Problem { refusal, .. })) => Largest::Failed(refusal),
        None => Largest::Looking,
    }
}
