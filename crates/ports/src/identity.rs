//! OpenID Connect: a provider at which people sign in instead of with a password here.

use crate::BoxFuture;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the provider is out of reach: {0}")]
    Unavailable(String),
    /// The provider's own code, such as `invalid_client`.
    #[error("the provider refuses: {0}")]
    Refused(String),
    /// The provider's answer proves nothing.
    #[error("the answer of the provider is not accepted: {0}")]
    Unproven(String),
}

/// Binds one sign-in to the browser that began it. Each value is 64 hexadecimal digits that cannot
/// be guessed.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Makes the round trip through the browser.
    pub state: String,
    /// Comes back inside what the provider signs.
    pub nonce: String,
    /// The verifier of PKCE (RFC 7636): the provider first receives its hash, and the text itself
    /// with the code.
    pub verifier: String,
}

/// A person whom the provider has signed in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Issuer and subject: the lasting identity, whatever else changes.
    pub openid: String,
    /// Empty when the provider gives none.
    pub email: String,
    /// Whether the provider has verified that the address belongs to the person.
    pub is_email_verified: bool,
    /// Values of the claim that determines roles.
    pub groups: Vec<String>,
}

/// A provider of OpenID Connect.
///
/// No contract suite: there is one adapter, whose tests play providers that lie.
pub trait IdentityProvider: Send + Sync {
    /// Returns the address at which the browser signs in.
    fn begin(&self, ticket: Ticket) -> BoxFuture<'_, Result<String, Error>>;

    /// Returns the person who came back with this code, given the ticket with which the sign-in
    /// began.
    fn finish(&self, code: String, ticket: Ticket) -> BoxFuture<'_, Result<Identity, Error>>;
}
