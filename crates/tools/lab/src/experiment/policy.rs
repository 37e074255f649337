//! The cache policy of a service: changed through a portal, followed by the readers.

use super::metrics;
use crate::http::Target;
use crate::http::client::Client;
use anyhow::{Context, Result, ensure};
pub use raingauge_policy::rollout::MODULO;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Longest time for a reader to follow a new policy; after that the wait fails.
const FOLLOWED_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// Sets a policy, and returns its version.
pub fn set(portal: &Target, policy: &Value) -> Result<f64> {
    let body = policy.to_string();
    let set = Client::connect(portal)?.json("PUT", "/v1/cache-policy", body.as_bytes())?;
    set["version"].as_f64().with_context(|| format!("a policy without a version: {set}"))
}

/// Waits until a reader follows the given version of the policy or a newer one.
pub fn wait_followed(reader: &Target, version: f64) -> Result<()> {
    let deadline = Instant::now() + FOLLOWED_MAX;
    let mut client = Client::connect(reader)?;
    while version_of(&mut client)? < version {
        ensure!(
            Instant::now() < deadline,
            "{} did not follow version {version} of the policy",
            reader.address
        );
        std::thread::sleep(POLL);
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
