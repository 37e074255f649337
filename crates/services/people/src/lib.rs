//! People: who may come in, who a request is of, and what each of them changed.
//!
//! ```text
//!   name, password ──▶ accounts: attempts left? ──▶ passwords ──▶ session
//!   trip ──▶ IdentityProvider ──▶ openid: who may come in ──────▶ session
//!   secret of a session ──▶ accounts ──▶ Principal
//!   `Authorization` ──▶ tokens ──▶ Principal
//!   a change ──▶ audit: who, from where, what, how it went
//! ```
//!
//! Nothing here speaks HTTP: a door finds the cookie, the header and the address in a request, and
//! sets cookies.

pub mod accounts;
pub mod audit;
mod devices;
pub mod invitations;
pub mod limits;
pub mod networks;
pub mod openid;
pub mod passwords;
mod principal;
pub mod secrets;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod trips;
mod users;
pub mod views;

use networks::Network;
pub use principal::{ANONYMOUS, Credential, OwnSession, Principal};
use raingauge_ports::people;

/// The settings that concern people.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether users must sign in. If not, everyone who reaches the portal is an administrator.
    pub sign_in: bool,
    /// Whether users may sign in with passwords.
    pub passwords: bool,
    /// How browsers reach the portal, `https://host[:port]`; `None` when unknown.
    pub public_url: Option<String>,
    /// Whether the process itself serves TLS.
    pub has_tls: bool,
    /// Idle time after which a session ends.
    pub session_idle_s: i64,
    /// Age at which a session ends.
    pub session_max_s: i64,
    /// Retention of audit entries.
    pub audit_keep_s: i64,
    /// The header in which a proxy passes on the address of its client, in lower case.
    pub address_header: Option<String>,
    /// The proxies that this header is accepted from.
    pub proxies: Vec<Network>,
    /// Whether `/v1` requires a token.
    pub asks_for_tokens: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sign_in: false,
            passwords: true,
            public_url: None,
            has_tls: false,
            session_idle_s: 12 * 3_600,
            session_max_s: 14 * 86_400,
            audit_keep_s: 1_095 * 86_400,
            address_header: None,
            proxies: Vec::new(),
            asks_for_tokens: false,
        }
    }
}

impl Options {
    /// Whether browsers use TLS, so that cookies can be restricted to it.
    pub fn is_https(&self) -> bool {
        self.has_tls || self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }
}

/// The source of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// An IP address; empty when unknown.
    pub address: String,
    /// The `User-Agent` of the browser.
    pub browser: String,
}

/// Why a sign-in or a change of people is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountError {
    /// The name or the password is wrong, or the user may not sign in. The caller does not learn
    /// which.
    Wrong,
    /// Too many attempts; the next one is possible after this many seconds.
    Wait(i64),
    /// Too many concurrent sign-ins.
    Busy,
    /// Passwords are switched off.
    NoPasswords,
    /// The name of a form field, and what is wrong with its value.
    Field(&'static str, String),
    /// The store refused the change or is unreachable.
    Store(people::Error),
}

impl From<people::Error> for AccountError {
    fn from(error: people::Error) -> Self {
        Self::Store(error)
    }
}

impl From<passwords::Busy> for AccountError {
    fn from(_: passwords::Busy) -> Self {
        Self::Busy
    }
}

impl From<limits::Wait> for AccountError {
    fn from(limits::Wait(seconds): limits::Wait) -> Self {
        Self::Wait(seconds)
    }
}
