//! A process among those of its deployment.

use crate::Role;
use std::sync::Arc;
use tokio::sync::watch;

/// What this process does, and how it is.
pub struct Node {
    pub roles: Vec<Role>,
    /// Turns true when the server is about to stop.
    pub draining: watch::Receiver<bool>,
    /// Why this process should get no requests, beside what keeps events and counts out.
    pub failure: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// Why some of what this process should count is not counted, in sentences.
    pub troubles: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// All metrics, as Prometheus reads them.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Node {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}
