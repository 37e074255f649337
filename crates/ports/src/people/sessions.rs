//! Where people are signed in.

use super::{Error, Hash, Session, User};
use crate::BoxFuture;

/// The sessions of people.
pub trait Sessions: Send + Sync {
    /// Begins a session. Beyond the most that one person may have, the longest unused ones end.
    fn open_session(&self, session: Session) -> BoxFuture<'_, Result<(), Error>>;

    /// A session and whose it is, whether or not it has expired.
    fn session(&self, hash: Hash) -> BoxFuture<'_, Result<Option<(Session, User)>, Error>>;

    /// Notes that a session was seen.
    fn touch_session(&self, hash: Hash, at_s: i64) -> BoxFuture<'_, Result<(), Error>>;

    /// The sessions of a user, that which was seen last first.
    fn sessions(&self, user_id: i64) -> BoxFuture<'_, Result<Vec<Session>, Error>>;

    fn close_session(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends all sessions of a user but this one.
    fn close_sessions(&self, user_id: i64, but: Option<Hash>) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends the sessions that have expired, and those without a request since `idle_since_s`.
    fn sweep_sessions(&self, now_s: i64, idle_since_s: i64) -> BoxFuture<'_, Result<(), Error>>;
}
