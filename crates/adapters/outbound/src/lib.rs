//! Requests to other systems over HTTP/1.1, in the clear or by TLS.
//!
//! ```text
//!   Request ──▶ Client ──▶ an open connection, or a new one:
//!                            name ──▶ addresses ──▶ guard ──▶ TCP ──▶ TLS
//! ```
//!
//! Addresses of destinations and lookups come from documents, and names may be changed by anyone
//! who owns them. So a name is resolved here, each address is checked, and the connection goes to
//! an address that was checked: a second look-up could find another one. Redirects are not
//! followed, since they would name an address that no administrator has seen.

mod client;
mod connect;
mod guard;
mod resolve;
mod roots;

pub use client::Client;
pub use guard::is_public;
pub use resolve::{Resolver, SystemResolver};
pub use roots::Error;

use std::path::PathBuf;
use std::sync::Arc;

/// Options of a client.
#[derive(Clone)]
pub struct Options {
    /// Whether every request may go to private networks and to this machine.
    pub allow_private_addresses: bool,
    /// A file of certificates in PEM that are trusted beside those of the machine.
    pub extra_authorities: Option<PathBuf>,
    pub resolver: Arc<dyn Resolver>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_private_addresses: false,
            extra_authorities: None,
            resolver: Arc::new(SystemResolver),
        }
    }
}
