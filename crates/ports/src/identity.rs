//! A provider at which people sign in, in the place of a password here: OpenID Connect.

use crate::BoxFuture;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the provider is out of reach: {0}")]
    Unavailable(String),
    /// Its own word, such as `invalid_client`.
    #[error("the provider refuses: {0}")]
    Refused(String),
    /// What it answers proves nothing.
    #[error("the answer of the provider is not accepted: {0}")]
    Unproven(String),
}

/// What binds one sign-in to the browser that began it. Each is 64 hexadecimal digits that nobody
/// else can guess.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Goes through the browser and back.
    pub state: String,
    /// Comes back within what the provider signs.
    pub nonce: String,
    /// Of PKCE (RFC 7636): the provider is told its hash first, and the text itself with the code.
    pub verifier: String,
}

/// Whom a provider has signed in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Issuer and subject: who it is for ever, whatever else changes.
    pub openid: String,
    /// Empty when the provider says none.
    pub email: String,
    /// Whether the provider has made sure that the address is theirs.
    pub is_email_verified: bool,
    /// What the claim has that roles follow.
    pub groups: Vec<String>,
}

/// A provider of OpenID Connect.
///
/// No contract suite: one adapter has it, whose tests play providers that lie.
pub trait IdentityProvider: Send + Sync {
    /// Where a browser goes to sign in.
    fn begin(&self, ticket: Ticket) -> BoxFuture<'_, Result<String, Error>>;

    /// Who came back with this code, given the ticket that they left with.
    fn finish(&self, code: String, ticket: Ticket) -> BoxFuture<'_, Result<Identity, Error>>;
}
