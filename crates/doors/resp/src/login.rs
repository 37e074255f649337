//! Who a caller is, and what it may do.

use std::sync::Arc;

use raingauge_core::access::Scope as TokenScope;
use raingauge_people::tokens::{Denial, Tokens};
use raingauge_resp::{Failure, Rights, Scope};

/// The user that everybody is who has not logged in.
const DEFAULT_USER: &str = "default";

/// The login of a connection, by a token of the configuration or of the portal.
pub(crate) struct Login {
    tokens: Arc<Tokens>,
    holder: Option<Holder>,
    rights: Rights,
}

/// A token that was accepted.
struct Holder {
    secret: String,
    name: String,
}

/// Each scope of commands, and the scope of tokens that allows it.
const SCOPES: [(Scope, TokenScope); 5] = [
    (Scope::ObjectsRead, TokenScope::ObjectsRead),
    (Scope::ObjectsWrite, TokenScope::ObjectsWrite),
    (Scope::CountsRead, TokenScope::CountsRead),
    (Scope::EventsWrite, TokenScope::EventsWrite),
    (Scope::Admin, TokenScope::Admin),
];

impl Login {
    pub(crate) fn new(tokens: Arc<Tokens>) -> Login {
        let rights = if tokens.is_asked() { Rights::default() } else { Rights::all() };

        Login { tokens, holder: None, rights }
    }

    /// Whether commands may run: nothing is asked here, or a token was accepted.
    pub(crate) fn is_done(&self) -> bool {
        self.is_open() || self.holder.is_some()
    }

    /// Whether nobody is asked for a token.
    pub(crate) fn is_open(&self) -> bool {
        !self.tokens.is_asked()
    }

    pub(crate) fn rights(&self) -> Rights {
        self.rights
    }

    /// The name of the caller.
    pub(crate) fn user(&self) -> &str {
        self.holder.as_ref().map_or(DEFAULT_USER, |holder| &holder.name)
    }

    /// Logs in with a token. A login that fails leaves the one before.
    pub(crate) fn enter(&mut self, secret: &[u8]) -> Result<(), Failure> {
        let secret = std::str::from_utf8(secret).map_err(|_| wrong())?;
        let (rights, name) = look_up(&self.tokens, secret)?;

        self.holder = Some(Holder { secret: secret.to_owned(), name });
        self.rights = rights;
        Ok(())
    }

    /// Looks the token up again, since it can be withdrawn. A token that cannot be checked at
    /// present keeps its rights.
    pub(crate) fn renew(&mut self) {
        let Some(holder) = &self.holder else {
            return;
        };

        match look_up(&self.tokens, &holder.secret) {
            Ok((rights, _)) => self.rights = rights,
            Err(Failure::Text(line)) if line.starts_with("WRONGPASS") => self.leave(),
            Err(_) => {}
        }
    }

    pub(crate) fn leave(&mut self) {
        *self = Login::new(Arc::clone(&self.tokens));
    }
}

/// The rights of a token, and the name of its holder.
fn look_up(tokens: &Tokens, secret: &str) -> Result<(Rights, String), Failure> {
    let principal = tokens.principal(secret).map_err(|denial| match denial {
        Denial::Stale => Failure::owned(format!("ERR {denial}")),
        Denial::Missing | Denial::Unknown | Denial::Scope(_) => wrong(),
    })?;
    let rights = SCOPES
        .iter()
        .filter(|(_, needed)| principal.allows(*needed))
        .fold(Rights::default(), |rights, (scope, _)| rights.with(*scope));

    // Names are words of `CLIENT LIST`, where a space would end them.
    let name = principal.recorded_name();
    let name = name.strip_prefix("token:").unwrap_or(&name);
    Ok((rights, name.replace(char::is_whitespace, "_")))
}

fn wrong() -> Failure {
    Failure::text("WRONGPASS invalid username-password pair or user is disabled.")
}
