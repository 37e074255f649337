//! Users: who may sign in.

use super::{Error, NewUser, RemovedUser, User, UserChange};
use crate::BoxFuture;

/// The users.
pub trait Users: Send + Sync {
    /// Returns all users, by name.
    fn users(&self) -> BoxFuture<'_, Result<Vec<User>, Error>>;

    /// Whether there are any users.
    fn has_users(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// Returns the user with this name, regardless of case.
    fn user_called<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>>;

    fn user_of_openid<'a>(&'a self, openid: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>>;

    /// Adds a user without an invitation.
    fn add_user(&self, user: NewUser) -> BoxFuture<'_, Result<User, Error>>;

    /// Changes a user. At least one administrator who may sign in remains.
    fn change_user(&self, id: i64, change: UserChange) -> BoxFuture<'_, Result<User, Error>>;

    /// Removes a disabled user, with their sessions and links. The returned pseudonym replaces
    /// their name wherever it records who did something: versions, drafts, tokens and the audit
    /// log.
    fn remove_user(&self, id: i64) -> BoxFuture<'_, Result<RemovedUser, Error>>;
}
