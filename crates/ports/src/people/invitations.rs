//! Who is invited.

use super::{Error, Hash, Invitation, NewUser, User};
use crate::BoxFuture;

/// One-time links.
pub trait Invitations: Send + Sync {
    /// Adds a one-time link.
    fn invite(&self, invitation: Invitation) -> BoxFuture<'_, Result<(), Error>>;

    /// The link of this hash, whether or not it has expired.
    fn invitation(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Invitation>, Error>>;

    /// Those that have not been used, newest first; expired ones, too, until they are swept.
    fn invitations(&self) -> BoxFuture<'_, Result<Vec<Invitation>, Error>>;

    /// Takes a link back.
    fn withdraw(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>>;

    /// Uses a link: whoever it names is made, or, when they are there already, is given its role,
    /// its e-mail address if it has one, and this password or identity, may sign in again, and is
    /// signed out everywhere. Of `user`, the role does not matter. All links for the same name are
    /// spent with it.
    fn accept(&self, hash: Hash, user: NewUser) -> BoxFuture<'_, Result<User, Error>>;

    /// Removes the links that have expired.
    fn sweep_invitations(&self, now_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}
