//! Statements and rows of people. Both databases understand every one.

use crate::database::Statement;
use hex::encode as hex;
use raingauge_core::access::{Role, Scopes};
use raingauge_ports::people::{ApiToken, Entry, Error, Hash, Invitation, Session, User, handle};

macro_rules! users {
    ($rest:literal) => {
        concat!(
            "SELECT user_id, name, email, role, password, openid, created_at, signed_in_at, disabled_at FROM users ",
            $rest
        )
    };
}
pub const USERS: &str = users!("ORDER BY handle");
pub const ANY_USER: &str = "SELECT 1 FROM users LIMIT 1";
pub const USER: &str = users!("WHERE user_id = ?");
pub const USER_CALLED: &str = users!("WHERE handle = ?");
pub const USER_OF_OPENID: &str = users!("WHERE openid = ? AND openid <> ''");
const INSERT_USER: &str =
    "INSERT INTO users (user_id, handle, name, email, role, password, openid, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const UPDATE_USER: &str =
    "UPDATE users SET email = ?, role = ?, password = ?, openid = ?, disabled_at = ?
    WHERE user_id = ?";
pub const SIGNED_IN: &str = "UPDATE users SET signed_in_at = ? WHERE user_id = ?";

macro_rules! sessions {
    ($rest:literal) => {
        concat!("SELECT session_hash, user_id, created_at, seen_at, expires_at, address, browser FROM sessions ", $rest)
    };
}
pub const SESSION: &str = sessions!("WHERE session_hash = ?");
pub const SESSIONS: &str =
    sessions!("WHERE user_id = ? ORDER BY seen_at DESC, created_at DESC, session_hash DESC");
const INSERT_SESSION: &str =
    "INSERT INTO sessions (session_hash, user_id, created_at, seen_at, expires_at, address, browser)
    VALUES (?, ?, ?, ?, ?, ?, ?)";
pub const TOUCH_SESSION: &str = "UPDATE sessions SET seen_at = ? WHERE session_hash = ?";
pub const CLOSE_SESSION: &str = "DELETE FROM sessions WHERE session_hash = ?";
/// All sessions of a user except one. No hash is empty.
pub const CLOSE_SESSIONS: &str = "DELETE FROM sessions WHERE user_id = ? AND session_hash <> ?";
pub const SWEEP_SESSIONS: &str = "DELETE FROM sessions WHERE expires_at <= ? OR seen_at <= ?";

macro_rules! invitations {
    ($rest:literal) => {
        concat!(
            "SELECT invitation_hash, name, email, role, invited_by, created_at, expires_at FROM invitations ",
            $rest
        )
    };
}
pub const INVITATIONS: &str = invitations!("ORDER BY created_at DESC, invitation_hash DESC");
/// An invitation by its hash, even when it has expired.
pub const INVITATION_OF_HASH: &str = invitations!("WHERE invitation_hash = ?");
pub const INVITATION: &str = invitations!("WHERE invitation_hash = ? AND expires_at > ?");
const INSERT_INVITATION: &str =
    "INSERT INTO invitations (invitation_hash, handle, name, email, role, invited_by, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
pub const WITHDRAW: &str = "DELETE FROM invitations WHERE invitation_hash = ?";
pub const SPEND_INVITATIONS: &str = "DELETE FROM invitations WHERE handle = ?";
pub const SWEEP_INVITATIONS: &str = "DELETE FROM invitations WHERE expires_at <= ?";

pub const TOKENS: &str =
    "SELECT token_id, token_hash, name, scopes, created_by, created_at, expires_at, revoked_at, used_at
    FROM api_tokens ORDER BY token_id DESC";
const INSERT_TOKEN: &str =
    "INSERT INTO api_tokens (token_id, token_hash, name, scopes, created_by, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)";
pub const REVOKE_TOKEN: &str = "UPDATE api_tokens SET revoked_at = ? WHERE token_id = ?";
pub const TOKEN_USED: &str = "UPDATE api_tokens SET used_at = ? WHERE token_id = ?";

/// An empty text is contained in every other one. `INSTR` treats no character as a pattern.
pub const ENTRIES: &str =
    "SELECT entry_id, at, who, address, verb, object, details, outcome FROM audit_entries
    WHERE entry_id < ? AND at >= ? AND at < ?
    AND INSTR(who, ?) > 0 AND INSTR(verb, ?) > 0 AND INSTR(object, ?) > 0
    ORDER BY entry_id DESC LIMIT ?";
const INSERT_ENTRY: &str =
    "INSERT INTO audit_entries (at, who, address, verb, object, details, outcome)
    VALUES (?, ?, ?, ?, ?, ?, ?)";
/// Every place where a name records who did something. The parameters are the replacement and the
/// name.
pub const RENAME: [&str; 10] = [
    "UPDATE audit_entries SET who = ?, address = '' WHERE who = ?",
    "UPDATE api_tokens SET created_by = ? WHERE created_by = ?",
    "UPDATE invitations SET invited_by = ? WHERE invited_by = ?",
    "UPDATE counter_versions SET changed_by = ? WHERE changed_by = ?",
    "UPDATE cache_policies SET changed_by = ? WHERE changed_by = ?",
    "UPDATE drafts SET author = ? WHERE author = ?",
    "UPDATE drafts SET changed_by = ? WHERE changed_by = ?",
    "UPDATE drafts SET reviewer = ? WHERE reviewer = ?",
    "UPDATE rollouts SET started_by = ? WHERE started_by = ?",
    "UPDATE product_documents SET changed_by = ? WHERE changed_by = ?",
];
/// The parameters are the name and its replacement, each as a JSON text.
pub const RENAME_CONTRIBUTOR: &str =
    "UPDATE draft_contributors SET contributors = REPLACE(contributors, ?, ?)";
/// The parameters are the pseudonym and `person NAME`.
pub const FORGET_OBJECT: &str =
    "UPDATE audit_entries SET object = ?, details = '{}' WHERE object = ?";
pub const REMOVE_USER: &str = "DELETE FROM users WHERE user_id = ?";
pub const SWEEP_ENTRIES: &str = "DELETE FROM audit_entries WHERE at < ?";

/// Id, name, e-mail, role, password, external identity, created, last sign-in, disabled.
pub type UserRow = (i64, String, String, String, String, String, i64, Option<i64>, Option<i64>);

pub fn user(row: UserRow) -> Result<User, Error> {
    let (id, name, email, role, password, openid, created_at, signed_in_at, disabled_at) = row;
    let role = role_of(&role, &format!("user {id}"))?;
    Ok(User { id, name, email, role, password, openid, created_at, signed_in_at, disabled_at })
}

pub fn insert_user(user: &User) -> Statement {
    let statement =
        Statement::new(INSERT_USER).with(user.id).with(handle(&user.name)).with(&*user.name);
    let statement = statement.with(&*user.email).with(user.role.name()).with(&*user.password);
    statement.with(&*user.openid).with(user.created_at)
}

pub fn update_user(user: &User) -> Statement {
    let statement =
        Statement::new(UPDATE_USER).with(&*user.email).with(user.role.name()).with(&*user.password);
    statement.with(&*user.openid).with(user.disabled_at).with(user.id)
}

/// Hash, user, created, last seen, expires, address, browser.
pub type SessionRow = (String, i64, i64, i64, i64, String, String);

pub fn session(row: SessionRow) -> Result<Session, Error> {
    let (hash, user_id, created_at, seen_at, expires_at, address, browser) = row;
    let hash = hash_of(&hash, "a session")?;
    Ok(Session { hash, user_id, created_at, seen_at, expires_at, address, browser })
}

pub fn insert_session(session: &Session) -> Statement {
    let statement = Statement::new(INSERT_SESSION).with(hex(session.hash)).with(session.user_id);
    let statement =
        statement.with(session.created_at).with(session.seen_at).with(session.expires_at);
    statement.with(&*session.address).with(&*session.browser)
}

/// Hash, name, e-mail, role, author, created, expires.
pub type InvitationRow = (String, String, String, String, String, i64, i64);

pub fn invitation(row: InvitationRow) -> Result<Invitation, Error> {
    let (hash, name, email, role, invited_by, created_at, expires_at) = row;
    let what = format!("the invitation of {name}");
    let hash = hash_of(&hash, &what)?;
    let role = role_of(&role, &what)?;
    Ok(Invitation { hash, name, email, role, invited_by, created_at, expires_at })
}

pub fn insert_invitation(invitation: &Invitation) -> Statement {
    let statement =
        Statement::new(INSERT_INVITATION).with(hex(invitation.hash)).with(handle(&invitation.name));
    let statement =
        statement.with(&*invitation.name).with(&*invitation.email).with(invitation.role.name());
    statement.with(&*invitation.invited_by).with(invitation.created_at).with(invitation.expires_at)
}

/// Id, hash, name, scopes, author, created, expires, revoked, last used.
pub type TokenRow =
    (i64, String, String, String, String, i64, Option<i64>, Option<i64>, Option<i64>);

pub fn token(row: TokenRow) -> Result<ApiToken, Error> {
    let (id, hash, name, scopes, created_by, created_at, expires_at, revoked_at, used_at) = row;
    let what = format!("token {id}");
    let hash = hash_of(&hash, &what)?;
    let scopes = Scopes::from_names(&scopes).ok_or_else(|| unreadable(&what))?;
    Ok(ApiToken { id, hash, name, scopes, created_by, created_at, expires_at, revoked_at, used_at })
}

pub fn insert_token(token: &ApiToken) -> Statement {
    let statement =
        Statement::new(INSERT_TOKEN).with(token.id).with(hex(token.hash)).with(&*token.name);
    let statement = statement.with(token.scopes.to_string()).with(&*token.created_by);
    statement.with(token.created_at).with(token.expires_at)
}

/// Id, time, who, address, verb, object, details, outcome.
pub type EntryRow = (i64, i64, String, String, String, String, String, String);

pub fn entry((id, at_s, who, address, verb, object, details, outcome): EntryRow) -> Entry {
    Entry { id, at_s, who, address, verb, object, details, outcome }
}

pub fn insert_entry(entry: Entry) -> Statement {
    let statement =
        Statement::new(INSERT_ENTRY).with(entry.at_s).with(entry.who).with(entry.address);
    statement.with(entry.verb).with(entry.object).with(entry.details).with(entry.outcome)
}

/// An unreadable role is an error and grants nothing: the row was altered by hand.
fn role_of(name: &str, what: &str) -> Result<Role, Error> {
    Role::from_name(name).ok_or_else(|| unreadable(what))
}

fn hash_of(text: &str, what: &str) -> Result<Hash, Error> {
    let mut hash = Hash::default();
    hex::decode_to_slice(text, &mut hash).map_err(|_| unreadable(what))?;
    Ok(hash)
}

fn unreadable(what: &str) -> Error {
    Error::Unavailable(format!(
        "the row of {what} cannot be read: correct it, or restore the catalog from a backup"
    ))
}
