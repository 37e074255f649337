//! Sign-in by OpenID Connect: the port `IdentityProvider`, over any provider that supports
//! discovery.
//!
//! ```text
//!   begin ───▶ discovery (kept) ──▶ address of the provider, with state, nonce and the hash of PKCE
//!   finish ──▶ code ──▶ token endpoint ──▶ ID token: signature, issuer, audience, time, nonce ──▶ Identity
//! ```
//!
//! The crate `openidconnect` verifies tokens. This crate supplies what it needs: requests with a
//! limit on everything, and the provider's keys at the right moment.

mod claims;
mod discovery;
mod http;
mod provider;

pub use provider::{Options, Provider};
