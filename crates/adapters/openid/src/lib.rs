//! Sign-in by OpenID Connect: the port `IdentityProvider`, over any provider that supports
//! discovery.
//!
//! ```text
//!   begin ───▶ discovery (kept) ──▶ address of the provider, with state, nonce and PKCE's hash
//!   finish ──▶ code ──▶ token endpoint ──▶ ID token ──▶ Identity
//!                                          signature, issuer, audience, time, nonce
//! ```
//!
//! The crate `openidconnect` verifies tokens. This crate supplies what it needs: requests with a
//! limit on everything, and the provider's keys at the right moment.

mod claims;
mod discovery;
mod http;
mod provider;

pub use provider::{Options, Provider};
