//! Sign-in by OpenID Connect: the port `IdentityProvider`, over any provider that can be
//! discovered.
//!
//! ```text
//!   begin ───▶ discovery (kept) ──▶ address of the provider, with state, nonce and the hash of PKCE
//!   finish ──▶ code ──▶ token endpoint ──▶ ID token: signature, issuer, audience, time, nonce ──▶ Identity
//! ```
//!
//! What is right and what is not of a token is the affair of the crate `openidconnect`; here is
//! what it needs: requests with a limit on everything, and the provider's keys at the right moment.

mod claims;
mod discovery;
mod http;
mod provider;

pub use provider::{Options, Provider};
