//! Who may sign in.

use super::{Error, NewUser, Removed, User, UserChange};
use crate::BoxFuture;

/// The people.
pub trait Users: Send + Sync {
    /// Everybody, by name.
    fn users(&self) -> BoxFuture<'_, Result<Vec<User>, Error>>;

    /// Whether there is anybody.
    fn has_users(&self) -> BoxFuture<'_, Result<bool, Error>>;

    /// The user of this name, whatever the case of its letters.
    fn user_called<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>>;

    fn user_of_openid<'a>(&'a self, openid: &'a str) -> BoxFuture<'a, Result<Option<User>, Error>>;

    /// Adds somebody who was not invited.
    fn add_user(&self, user: NewUser) -> BoxFuture<'_, Result<User, Error>>;

    /// Changes a user. At least one administrator stays who may sign in.
    fn change_user(&self, id: i64, change: UserChange) -> BoxFuture<'_, Result<User, Error>>;

    /// Removes somebody who may not sign in any more, with sessions and links. Their name is
    /// replaced by what is answered wherever it says who did something: versions, drafts, tokens
    /// and the audit log.
    fn remove_user(&self, id: i64) -> BoxFuture<'_, Result<Removed, Error>>;
}
