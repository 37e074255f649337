//! Invitations.

use super::{Error, Hash, Invitation, NewUser, User};
use crate::BoxFuture;

/// One-time links.
pub trait Invitations: Send + Sync {
    /// Adds a one-time link.
    fn invite(&self, invitation: Invitation) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns the link with this hash, even when it has expired.
    fn invitation(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Invitation>, Error>>;

    /// Returns the unused links, newest first, including expired ones that have not been swept.
    fn invitations(&self) -> BoxFuture<'_, Result<Vec<Invitation>, Error>>;

    /// Revokes a link.
    fn withdraw(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>>;

    /// Uses a link. Creates the user that it names. When that user exists, sets the role, the
    /// e-mail address if there is one, and this password or identity, enables the user and ends all
    /// sessions. The role in `user` is ignored. All links for the same name are spent as well.
    fn accept(&self, hash: Hash, user: NewUser) -> BoxFuture<'_, Result<User, Error>>;

    /// Removes expired links.
    fn sweep_invitations(&self, now_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}
