//! The right to do work that only one process of a cluster may do at a time.

use super::Error;
use crate::BoxFuture;
use std::time::Duration;

/// How long a lease lasts unless it is renewed.
pub const LEASE_TTL: Duration = Duration::from_secs(60);

/// The right to do maintenance, which one process of a cluster has at a time.
pub trait Lease: Send + Sync {
    /// Takes or renews the lease. Returns `false` if another process holds it.
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// Releases the lease, so that others need not wait until it expires.
    fn release(&self) -> BoxFuture<'_, Result<(), Error>>;
}
