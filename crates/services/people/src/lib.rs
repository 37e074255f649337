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
mod second;
pub mod secrets;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod trips;
mod users;
pub mod views;

use networks::Network;
pub use principal::{ANONYMOUS, Credential, OwnSession, Principal};
use raingauge_ports::people;
pub use second::NotSecond;

/// The settings of the portal that concern people.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether people must sign in. If not, whoever reaches the portal is an administrator.
    pub sign_in: bool,
    /// Whether people may sign in by passwords.
    pub passwords: bool,
    /// How browsers reach the portal, `https://host[:port]`; none when that is not known.
    pub public_url: Option<String>,
    /// Whether the door itself speaks TLS.
    pub has_tls: bool,
    /// A session without a request for so long ends.
    pub session_idle_s: i64,
    /// A session that is so old ends.
    pub session_max_s: i64,
    /// How long audit entries are kept.
    pub audit_keep_s: i64,
    /// The header in which a proxy in front writes the address of its client, in lower case.
    pub address_header: Option<String>,
    /// The proxies whose word in that header is believed.
    pub proxies: Vec<Network>,
    /// Whether `/v1` answers nobody without a token.
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
    /// Whether browsers come over TLS, so that cookies can be kept from any other way.
    pub fn is_https(&self) -> bool {
        self.has_tls || self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }
}

/// Where a request comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// An IP address; empty when it is not known.
    pub address: String,
    /// As the browser calls itself.
    pub browser: String,
}

/// Why somebody does not come in, or a change of people is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Name or password is wrong, or the person may not sign in: which of them is not told.
    Wrong,
    /// Too many tries; one comes back after so many seconds.
    Wait(i64),
    /// Too many sign-ins at once.
    Busy,
    /// Passwords are switched off.
    NoPasswords,
    /// A field of the form: its name, and what is wrong with it.
    Field(&'static str, String),
    /// The store's word.
    Store(people::Error),
}

impl From<people::Error> for Refusal {
    fn from(error: people::Error) -> Self {
        Self::Store(error)
    }
}

impl From<passwords::Busy> for Refusal {
    fn from(_: passwords::Busy) -> Self {
        Self::Busy
    }
}

impl From<limits::Wait> for Refusal {
    fn from(limits::Wait(seconds): limits::Wait) -> Self {
        Self::Wait(seconds)
    }
}
