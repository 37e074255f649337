//! Who a caller is, and what it may do.

use std::sync::Arc;
use std::time::Instant;

use raingauge_core::access::Scope as TokenScope;
use raingauge_people::tokens::{Denial, Tokens};
use raingauge_resp::{Failure, Rights, Scope};

use crate::ending::Ending;
use crate::limits::RESP_LOGIN_RECHECK;

/// The user that everybody is who has not logged in.
const DEFAULT_USER: &str = "default";

/// The login of a connection, by a token of the configuration or of the portal.
pub(crate) struct Login {
    tokens: Arc<Tokens>,
    holder: Option<Holder>,
    rights: Rights,
    /// When the token was last looked up.
    checked: Instant,
}

/// A token that was accepted.
struct Holder {
    secret: Arc<str>,
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

        Login { tokens, holder: None, rights, checked: Instant::now() }
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

        self.checked = Instant::now();
        self.holder = Some(Holder { secret: secret.into(), name });
        self.rights = rights;
        Ok(())
    }

    /// Looks the token up again from time to time, since it can be withdrawn. One that cannot be
    /// checked at present keeps its rights. Returns whether it was time for that.
    pub(crate) fn renew(&mut self) -> bool {
        if self.checked.elapsed() < RESP_LOGIN_RECHECK {
            return false;
        }

        self.checked = Instant::now();
        let holder = self.holder.as_ref();
        match holder.map(|holder| look_up(&self.tokens, &holder.secret)) {
            Some(Ok((rights, _))) => self.rights = rights,
            Some(Err(failure)) if is_withdrawn(&failure) => self.leave(),
            Some(Err(_)) | None => {}
        }
        true
    }

    /// Returns when the token is to be looked up again; never without one.
    pub(crate) async fn due(&self) {
        match self.holder {
            Some(_) => tokio::time::sleep_until((self.checked + RESP_LOGIN_RECHECK).into()).await,
            None => std::future::pending().await,
        }
    }

    /// The token that was accepted, for [`while_held`].
    pub(crate) fn secret(&self) -> Option<Arc<str>> {
        self.holder.as_ref().map(|holder| Arc::clone(&holder.secret))
    }

    pub(crate) fn leave(&mut self) {
        *self = Login::new(Arc::clone(&self.tokens));
    }
}

/// Does some work, unless a token is withdrawn in the meantime, which is looked up from time to
/// time.
pub(crate) async fn while_held<T>(
    tokens: &Tokens,
    secret: Option<Arc<str>>,
    work: impl Future<Output = Result<T, Ending>>,
) -> Result<T, Ending> {
    let Some(secret) = secret else {
        return work.await;
    };
    let withdrawn = async {
        loop {
            tokio::time::sleep(RESP_LOGIN_RECHECK).await;
            if look_up(tokens, &secret).is_err_and(|failure| is_withdrawn(&failure)) {
                return;
            }
        }
    };

    tokio::select! {
        biased;
        done = work => done,
        () = withdrawn => Err(Ending::Login),
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

/// Whether a token does not hold any more. One that cannot be checked at present holds.
fn is_withdrawn(failure: &Failure) -> bool {
    matches!(failure, Failure::Text(line) if line.starts_with("WRONGPASS"))
}

fn wrong() -> Failure {
    Failure::text("WRONGPASS invalid username-password pair or user is disabled.")
}
