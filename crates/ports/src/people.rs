//! The people of the portal: who may sign in, where they are signed in, who is invited, which API
//! tokens there are, and the audit log of what everybody changed.
//!
//! Secrets (the id of a session, a one-time link, a token) come here as their SHA-256 alone, and
//! passwords as what Argon2id made of them: whoever reads the database can use none of it.

mod audit_trail;
mod decide;
mod invitations;
mod sessions;
mod tokens;
mod users;

pub use audit_trail::AuditTrail;
pub use invitations::Invitations;
pub use sessions::Sessions;
pub use tokens::Tokens;
pub use users::Users;

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

/// By what a name is compared with others.
pub fn handle(name: &str) -> String {
    name.to_lowercase()
}

/// Everything that is kept of people, in one store.
///
/// No contract suite: what it is made of has one.
pub trait People: Users + Invitations + Sessions + Tokens + AuditTrail {}

impl<T: Users + Invitations + Sessions + Tokens + AuditTrail> People for T {}
