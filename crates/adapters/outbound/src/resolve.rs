//! From names to addresses.

use raingauge_ports::BoxFuture;
use std::io;
use std::net::IpAddr;

/// Resolves names. Tests put another one in the place of the system's.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a name, the preferred one first.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
