//! The people of the portal: who may sign in, their sessions, invitations and API tokens, and the
//! audit log of all changes.
//!
//! Secrets (the id of a session, a one-time link, a token) arrive here as their SHA-256 only, and
//! passwords as Argon2id hashes. Someone who reads the database can use none of them.

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
    #[error("a person called {0} already exists: choose another name")]
    NameTaken(String),
    #[error("there is no other administrator: make another person one first")]
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

/// A user account. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// 1, 2, 3 …
    pub id: i64,
    /// As the person spells it. Names are unique regardless of case.
    pub name: String,
    /// Empty when the user has no e-mail address.
    pub email: String,
    pub role: Role,
    /// The Argon2id hash of the password in PHC form. Empty when the user signs in elsewhere.
    pub password: String,
    /// Issuer and subject at an OpenID provider. Empty when the user signs in here.
    pub openid: String,
    pub created_at: i64,
    pub signed_in_at: Option<i64>,
    /// Since when the user has been disabled.
    pub disabled_at: Option<i64>,
}

/// A user that has no id yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    pub name: String,
    pub email: String,
    pub role: Role,
    pub password: String,
    pub openid: String,
    pub at_s: i64,
}

/// A change to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserChange {
    Role(Role),
    /// Disabled from this time on. All sessions of the user end.
    Disabled(i64),
    Enabled,
    Password(String),
    /// The identity at an OpenID provider.
    OpenId(String),
}

/// A removed user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedUser {
    pub user: User,
    /// Replaces the name.
    pub pseudonym: String,
}

/// A session: one browser in which a user is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub hash: Hash,
    pub user_id: i64,
    pub created_at: i64,
    /// Time of the latest request, to the minute.
    pub seen_at: i64,
    /// When the session expires, even when it is in use.
    pub expires_at: i64,
    pub address: String,
    pub browser: String,
}

/// A one-time link. Its bearer chooses a password and becomes the user that it names.
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

/// An API token created in the portal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// 1, 2, 3 … Ignored when a token is added.
    pub id: i64,
    pub hash: Hash,
    pub name: String,
    pub scopes: Scopes,
    pub created_by: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Time of the latest request, to the minute.
    pub used_at: Option<i64>,
}

/// An entry of the audit log: who did what, to which object, from which address, and with what
/// outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Grows with each entry. Ignored when an entry is added.
    pub id: i64,
    pub at_s: i64,
    /// A person, a token, or the part of raingauge that acted on its own.
    pub who: String,
    /// The address of the client. Empty when there was no request.
    pub address: String,
    /// The action, such as `counter.replace`.
    pub verb: String,
    /// The object of the action, such as `counter 34`.
    pub object: String,
    /// Further details as JSON. Never a secret.
    pub details: String,
    /// `done`, or the code of the refusal.
    pub outcome: String,
}

/// Selects entries of the audit log. An empty text matches everything; any other text must be
/// contained in the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub who: String,
    pub verb: String,
    pub object: String,
    /// `[from, to)`.
    pub from_s: i64,
    pub to_s: i64,
    /// Only entries before this id, the last one of the previous page.
    pub before: i64,
    /// Most entries to return.
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        let [who, verb, object] = [const { String::new() }; 3];
        Self { who, verb, object, from_s: i64::MIN, to_s: i64::MAX, before: i64::MAX, limit: 100 }
    }
}

/// The form in which names are compared.
pub fn handle(name: &str) -> String {
    name.to_lowercase()
}

/// The whole store of people.
///
/// No contract suite: each of the ports it combines has one.
pub trait People: Users + Invitations + Sessions + Tokens + AuditTrail {}

impl<T: Users + Invitations + Sessions + Tokens + AuditTrail> People for T {}
