//! API tokens that were made in the portal.

use super::{ApiToken, Error};
use crate::BoxFuture;

/// The API tokens.
pub trait Tokens: Send + Sync {
    /// All tokens that were ever made, newest first.
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<ApiToken>, Error>>;

    /// Adds a token; its name differs from those that are in use.
    fn add_token(&self, token: ApiToken) -> BoxFuture<'_, Result<ApiToken, Error>>;

    /// Revokes a token; one that is revoked already stays as it is.
    fn revoke_token(&self, id: i64, at_s: i64) -> BoxFuture<'_, Result<ApiToken, Error>>;

    /// Notes when tokens were used, by their ids.
    fn note_tokens_used(&self, used: Vec<(i64, i64)>) -> BoxFuture<'_, Result<(), Error>>;

    /// A number that grows with every change of users, links and tokens, for those who hold tokens
    /// in memory.
    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>>;
}
