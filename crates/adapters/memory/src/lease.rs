//! The lease of a process that runs alone.

use raingauge_ports::BoxFuture;
use raingauge_ports::maintenance::{self, Error};

/// The lease of an engine that belongs to one process, which always holds it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lease;

impl maintenance::Lease for Lease {
    fn hold(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(true) })
    }

    fn release(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn it_keeps_the_contract() {
        raingauge_ports::contract::maintenance::keeps_a_lease(&super::Lease).await;
    }
}
