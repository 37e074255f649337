//! API tokens created in the portal.

use super::{ApiToken, Error};
use crate::BoxFuture;

/// The API tokens.
pub trait Tokens: Send + Sync {
    /// Returns all tokens that were ever created, newest first.
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<ApiToken>, Error>>;

    /// Adds a token, whose name must differ from those in use.
    fn add_token(&self, token: ApiToken) -> BoxFuture<'_, Result<ApiToken, Error>>;

    /// Revokes a token; an already revoked one stays unchanged.
    fn revoke_token(&self, id: i64, at_s: i64) -> BoxFuture<'_, Result<ApiToken, Error>>;

    /// Records when tokens were used, by their ids.
    fn note_tokens_used(&self, used: Vec<(i64, i64)>) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns a number that grows with every change of users, links and tokens, for processes that
    /// cache tokens.
    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>>;
}
