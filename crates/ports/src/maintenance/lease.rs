//! The right to do something that one process of a cluster does at a time.

use super::Error;
use crate::BoxFuture;
use std::time::Duration;

/// How long a lease lasts that is not renewed.
pub const LEASE_TTL: Duration = Duration::from_secs(60);

/// The right to do maintenance, which one process of a cluster has at a time.
pub trait Lease: Send + Sync {
    /// Takes the lease or keeps it. `false` when another process has it.
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// Gives it back, so that others need not wait until it has run out.
    fn release(&self) -> BoxFuture<'_, Result<(), Error>>;
}
