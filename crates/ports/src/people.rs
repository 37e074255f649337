//! The people of the portal: who may sign in, where they are signed in, who is invited, which API tokens there are, and
//! the audit log of what everybody changed.
//!
//! Secrets (the id of a session, a one-time link, a token) come here as their SHA-256 alone, and passwords as what
//! Argon2id made of them: whoever reads the database can use none of it.

mod decide;

use crate::BoxFuture;
use raingauge_core::access::{Role, Scopes};

/// The SHA-256 of a secret of 32 random bytes.
pub type Hash = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("there is somebody called {0} already: choose another name")]
    NameTaken(String),
    #[error("nobody else is an administrator: make somebody else one first")]
    LastAdmin,
    #[error("this person may still sign in: disable them first")]
    NotDisabled,
    #[error("the link was used, was withdrawn or has expired: ask an administrator for a new one")]
    LinkSpent,
    #[error("there are {most} {what}, which is the most there may be: remove one first")]
    TooMany { what: &'static str, most: usize },
    #[error("the database of people is out of reach: {0}")]
    Unavailable(String),
}

/// Somebody who may sign in. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// 1, 2, 3 …
    pub id: i64,
    /// As the person writes it. No two names differ in upper and lower case alone.
    pub name: String,
    /// Empty when nobody has given one.
    pub email: String,
    pub role: Role,
    /// What Argon2id made of the password, in PHC form; empty for somebody who signs in elsewhere.
    pub password: String,
    /// Issuer and subject of an OpenID provider; empty for somebody who signs in here.
    pub openid: String,
    pub created_at: i64,
    pub signed_in_at: Option<i64>,
    /// Since when the person may not sign in any more.
    pub disabled_at: Option<i64>,
}

/// Somebody new, before they have an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    pub name: String,
    pub email: String,
    pub role: Role,
    pub password: String,
    pub openid: String,
    pub at_s: i64,
}

/// What may change of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserChange {
    Role(Role),
    /// From this moment on; their sessions end.
    Disabled(i64),
    Enabled,
    Password(String),
    /// The identity at an OpenID provider.
    OpenId(String),
}

/// Somebody who was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    pub user: User,
    /// What stands in the place of the name.
    pub pseudonym: String,
}

/// One browser in which somebody is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub hash: Hash,
    pub user_id: i64,
    pub created_at: i64,
    /// The newest request, to the minute.
    pub seen_at: i64,
    /// When it ends however busy it is.
    pub expires_at: i64,
    pub address: String,
    pub browser: String,
}

/// A one-time link: whoever has it chooses a password, and becomes the person that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub hash: Hash,
    /// Empty for the first administrator, who chooses a name.
    pub name: String,
    pub email: String,
    pub role: Role,
    pub invited_by: String,
    pub created_at: i64,
    pub expires_at: i64,
}

/// An API token that was made in the portal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// 1, 2, 3 …; what a new one is given does not matter.
    pub id: i64,
    pub hash: Hash,
    pub name: String,
    pub scopes: Scopes,
    pub created_by: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// The newest request, to the minute.
    pub used_at: Option<i64>,
}

/// One line of the audit log: who did what, to what, from where, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Grows with each entry; what a new one is given does not matter.
    pub id: i64,
    pub at_s: i64,
    /// A person, a token, or the part of raingauge that acted by itself.
    pub who: String,
    /// The address that the request came from; empty when there was none.
    pub address: String,
    /// What was done, such as `counter.replace`.
    pub verb: String,
    /// To what, such as `counter 34`.
    pub object: String,
    /// More of it, as JSON. Never a secret.
    pub details: String,
    /// `done`, or the code of the refusal.
    pub outcome: String,
}

/// Which entries are asked for. An empty text lets everything through; others must be contained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub who: String,
    pub verb: String,
    pub object: String,
    /// `[from, to)`.
    pub from_s: i64,
    pub to_s: i64,
    /// Entries before this one, which ends the page before.
    pub before: i64,
    /// Most entries of the answer.
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        let [who, verb, object] = [const { String::new() }; 3];
        Self { who, verb, object, from_s: i64::MIN, to_s: i64::MAX, before: i64::MAX, limit: 100 }
    }
}

/// Up to when things are swept away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub now_s: i64,
    /// Sessions without a request since then have ended.
    pub idle_since_s: i64,
    /// Audit entries from before then are removed.
    pub audit_before_s: i64,
}

/// By what a name is compared with others.
pub fn handle(name: &str) -> String {
    name.to_lowercase()
}

pub trait People: Send + Sync {
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

    /// Removes somebody who may not sign in any more, with sessions and links. Their name is replaced by what is answered
    /// wherever it says who did something: versions, drafts, tokens and the audit log.
    fn remove_user(&self, id: i64) -> BoxFuture<'_, Result<Removed, Error>>;

    /// Adds a one-time link.
    fn invite(&self, invitation: Invitation) -> BoxFuture<'_, Result<(), Error>>;

    /// The link of this hash, whether or not it has expired.
    fn invitation(&self, hash: Hash) -> BoxFuture<'_, Result<Option<Invitation>, Error>>;

    /// Those that have not been used, newest first; expired ones, too, until they are swept.
    fn invitations(&self) -> BoxFuture<'_, Result<Vec<Invitation>, Error>>;

    /// Takes a link back.
    fn withdraw(&self, hash: Hash) -> BoxFuture<'_, Result<(), Error>>;

    /// Uses a link: whoever it names is made, or, when they are there already, is given its role, its e-mail address if it
    /// has one, and this password or identity, may sign in again, and is signed out everywhere. Of `user`, the role does not matter. All links for
    /// the same name are spent with it.
    fn accept(&self, hash: Hash, user: NewUser) -> BoxFuture<'_, Result<User, Error>>;

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

    /// All tokens that were ever made, newest first.
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<ApiToken>, Error>>;

    /// Adds a token; its name differs from those that are in use.
    fn add_token(&self, token: ApiToken) -> BoxFuture<'_, Result<ApiToken, Error>>;

    /// Revokes a token; one that is revoked already stays as it is.
    fn revoke_token(&self, id: i64, at_s: i64) -> BoxFuture<'_, Result<ApiToken, Error>>;

    /// Notes when tokens were used, by their ids.
    fn note_tokens_used(&self, used: Vec<(i64, i64)>) -> BoxFuture<'_, Result<(), Error>>;

    /// A number that grows with every change of users, links and tokens, for those who hold tokens in memory.
    fn revision(&self) -> BoxFuture<'_, Result<i64, Error>>;

    /// Adds an entry to the audit log.
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), Error>>;

    /// Entries of the audit log, newest first.
    fn entries(&self, filter: Filter) -> BoxFuture<'_, Result<Vec<Entry>, Error>>;

    /// Removes what has expired.
    fn sweep(&self, sweep: Sweep) -> BoxFuture<'_, Result<(), Error>>;
}
