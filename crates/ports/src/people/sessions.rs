//! Sessions of signed-in users.

use super::{Error, Hash, Session, User};
use crate::BoxFuture;

/// The sessions of all users.
pub trait Sessions: Send + Sync {
    /// Begins a session. Beyond the maximum per user, the sessions unused for longest end.
    fn open_session(&self, session: Session) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns a session and its user, even when it has expired.
    fn session(&self, hash: Hash) -> BoxFuture<'_, Result<Option<(Session, User)>, Error>>;

    /// Notes that a session was used.
    fn touch_session(&self, hash: Hash, at_s: i64) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns the sessions of a user, the most recently used first.
    fn sessions(&self, user_id: i64) -> BoxFuture<'_, Result<Vec<Session>, Error>>;

    fn close_session(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends all sessions of a user except this one.
    fn close_sessions(&self, user_id: i64, but: Option<Hash>) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends expired sessions, and those without a request since `idle_since_s`.
    fn sweep_sessions(&self, now_s: i64, idle_since_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}
