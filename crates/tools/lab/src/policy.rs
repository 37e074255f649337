//! The cache policy of a service: set at a portal, and followed by readers.

use crate::http::Target;
use crate::http::client::Client;
use crate::metrics;
use anyhow::{Context, Result, ensure};
pub use raingauge_policy::rollout::MODULO;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A reader that does not follow by then will not.
const FOLLOWED_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// Sets a policy, and answers its version.
pub fn set(portal: &Target, policy: &Value, reason: &str) -> Result<f64> {
    // A reason goes in a field of the head, which has one line.
    let reason: String =
        reason.chars().map(|char| if char.is_ascii_graphic() { char } else { ' ' }).collect();
    let fields = [("x-reason", reason.as_str())];
    let body = policy.to_string();
    let set =
        Client::connect(portal)?.json_with("PUT", "/v1/cache-policy", &fields, body.as_bytes())?;
    set["version"].as_f64().with_context(|| format!("a policy without a version: {set}"))
}

/// Waits until every reader follows a version of the policy, or a newer one.
pub fn wait_followed<'a>(
    readers: impl IntoIterator<Item = &'a Target>,
    version: f64,
) -> Result<()> {
    let deadline = Instant::now() + FOLLOWED_MAX;
    for reader in readers {
        let mut client = Client::connect(reader)?;
        while version_of(&mut client)? < version {
            ensure!(
                Instant::now() < deadline,
                "{} did not follow version {version} of the policy",
                reader.address
            );
            std::thread::sleep(POLL);
        }
    }

    Ok(())
}

fn version_of(reader: &mut Client) -> Result<f64> {
    Ok(metrics::sum(
        &reader.call("GET", "/metrics", b"")?.text(),
        "raingauge_cache_policy_version",
        "",
    ))
}
