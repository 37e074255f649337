//! Signing in and out, and the principal of a session.

use super::audit::AuditLog;
use super::limits::{Attempts, Source};
use super::passwords::{self, Passwords};
use super::secrets::{csrf_of, hash_of, hash_of_sent, new_secret};
use super::{AccountError, Options, Origin, devices};
use crate::{Credential, OwnSession, Principal};
use raingauge_core::limits::PERSON_LEN_MAX;
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::people::{Entry, Error, Hash, People, Session, User, UserChange, handle};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often expired sessions, links and audit entries are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// How often a session is noted as active; noting it with every request would cost a write each.
const SEEN_STEP_S: i64 = 60;
/// The way in recorded for a sign-in at a provider.
pub(super) const BY_OPENID: &str = "openid";
/// Longest session of a user who signed in at a provider. After it the provider is asked again, so
/// that a user whom the provider has removed does not stay signed in.
pub const OPENID_SESSION_MAX_S: i64 = 8 * 3_600;
/// Characters that are kept of a browser's own name.
const BROWSER_CHARS_MAX: usize = 200;

/// Accounts, sessions and invitations, and the rules for signing in.
pub struct Accounts {
    pub(super) people: Arc<dyn People>,
    pub options: Options,
    pub audit: AuditLog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) passwords: Passwords,
    attempts: Attempts,
    /// Set once there was a user. The last administrator is never removed, so it stays true.
    has_people: AtomicBool,
}

/// What a browser receives when its user signs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Admission {
    /// The secret of a new session. It never continues a session that the browser had before.
    pub session: String,
    /// Identifies the browser at the next sign-in.
    pub mark: Option<String>,
}

impl Accounts {
    pub fn new(people: Arc<dyn People>, clock: Arc<dyn Clock>, options: Options) -> Self {
        let audit = AuditLog::new(people.clone(), Arc::clone(&clock));
        let passwords = Passwords::default();
        let attempts = Attempts::default();
        let has_people = AtomicBool::new(false);
        Self { people, options, audit, clock, passwords, attempts, has_people }
    }

    /// Returns the principal of the session with this secret, or `None` when nobody is signed in by
    /// it.
    pub async fn principal(&self, secret: &str) -> Result<Option<Principal>, Error> {
        let Some(hash) = hash_of_sent(secret) else {
            return Ok(None);
        };
        let Some((session, user)) = self.people.session(hash).await? else {
            return Ok(None);
        };
        let now_s = self.clock.now_s();
        if !self.is_open(&session, now_s) || !user.may_sign_in() {
            return Ok(None);
        }

        if now_s - session.seen_at >= SEEN_STEP_S {
            // The request is served all the same; the session only seems idle for a moment longer.
            if let Err(error) = self.people.touch_session(hash, now_s).await {
                tracing::warn!(%error, "the activity of a session could not be noted");
            }
        }

        let own =
            OwnSession { user_id: user.id, role: user.role, hash, since_s: session.created_at };
        Ok(Some(Principal {
            name: user.name.into(),
            credential: Credential::Session(own),
            csrf: Some(csrf_of(secret).into()),
            made_by: None,
        }))
    }

    /// Whether any user exists. Pages ask this before a sign-in, so it is answered from memory
    /// where possible.
    pub async fn has_people(&self) -> Result<bool, Error> {
        if self.has_people.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let has_people = self.people.has_users().await?;
        self.has_people.store(has_people, Ordering::Relaxed);
        Ok(has_people)
    }

    pub fn is_open(&self, session: &Session, now_s: i64) -> bool {
        now_s < session.expires_at && now_s - session.seen_at < self.options.session_idle_s
    }

    /// Signs a user in with a password. `mark` is what the browser kept of an earlier sign-in.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        origin: &Origin,
        mark: Option<&str>,
    ) -> Result<Admission, AccountError> {
        if !self.options.passwords {
            return Err(AccountError::NoPasswords);
        }

        if name.is_empty()
            || name.len() > PERSON_LEN_MAX
            || password.len() > passwords::PASSWORD_LEN_MAX
        {
            return Err(AccountError::Wrong);
        }

        let user = self.people.user_called(name).await?;
        let source = source_of(name, origin, mark, user.as_ref());
        self.attempts.take(&source, self.clock.elapsed_ms())?;

        let user = user.filter(User::may_sign_in);
        let stored = user.as_ref().map(|user| user.password.as_str());
        let is_right = self.passwords.is_right(password, stored).await?;
        let Some(user) = user.filter(|_| is_right) else {
            self.note_failure(name, origin).await;
            return Err(AccountError::Wrong);
        };

        self.attempts.succeeded(&source);
        self.admit(&user, origin, "password").await
    }

    /// Begins a session for a user who has proved their identity.
    pub(super) async fn admit(
        &self,
        user: &User,
        origin: &Origin,
        way: &str,
    ) -> Result<Admission, AccountError> {
        let secret = new_secret();
        let now_s = self.clock.now_s();
        let max_s = match way {
            BY_OPENID => self.options.session_max_s.min(OPENID_SESSION_MAX_S),
            _ => self.options.session_max_s,
        };

        // Without an audit entry there is no session.
        let entry = Entry {
            details: json!({ "with": way }).to_string(),
            ..self.entry(&user.name, origin, "session.begin")
        };
        self.people.record(Entry { object: format!("person {}", user.name), ..entry }).await?;

        let session = Session {
            hash: hash_of(&secret),
            user_id: user.id,
            created_at: now_s,
            seen_at: now_s,
            expires_at: now_s + max_s,
            address: origin.address.clone(),
            browser: origin.browser.chars().take(BROWSER_CHARS_MAX).collect(),
        };

        self.people.open_session(session).await?;
        Ok(Admission { session: secret, mark: devices::mark_of(user) })
    }

    /// A name without an account is not recorded: it may be a password typed into the wrong field.
    async fn note_failure(&self, name: &str, origin: &Origin) {
        let known = self.people.user_called(name).await.ok().flatten();
        let object = known
            .map_or_else(|| "an unknown person".to_owned(), |user| format!("person {}", user.name));
        let entry = Entry {
            object,
            outcome: "wrong_password".to_owned(),
            ..self.entry("nobody", origin, "session.begin")
        };
        self.audit.keep(entry).await;
    }

    pub async fn sign_out(&self, principal: &Principal) -> Result<(), Error> {
        match principal.session() {
            Some(own) => self.people.close_session(own.hash).await,
            None => Ok(()),
        }
    }

    /// The open sessions of a user.
    pub async fn sessions(&self, user_id: i64) -> Result<Vec<Session>, Error> {
        let now_s = self.clock.now_s();
        let sessions = self.people.sessions(user_id).await?;
        Ok(sessions.into_iter().filter(|session| self.is_open(session, now_s)).collect())
    }

    /// Ends one of the user's own sessions, or all but the current one.
    pub async fn end_sessions(&self, own: &OwnSession, one: Option<Hash>) -> Result<(), Error> {
        let Some(hash) = one else {
            return self.people.close_sessions(own.user_id, Some(own.hash)).await;
        };
        let sessions = self.people.sessions(own.user_id).await?;
        let is_own = sessions.iter().any(|session| session.hash == hash);
        if is_own { self.people.close_session(hash).await } else { Err(Error::NotFound("session")) }
    }

    /// Whether the user signs in with a password, not only at a provider.
    pub async fn has_password(&self, principal: &Principal) -> Result<bool, Error> {
        let user = self.people.user_called(&principal.name).await?;
        Ok(self.options.passwords && user.is_some_and(|user| !user.password.is_empty()))
    }

    /// Changes the user's own password and ends all their other sessions. The current password is
    /// required, so that an unattended browser is not enough. Returns the new mark of this browser.
    pub async fn change_password(
        &self,
        principal: &Principal,
        current: &str,
        new: &str,
    ) -> Result<Option<String>, AccountError> {
        let Some(own) = principal.session() else {
            return Err(AccountError::Wrong);
        };
        if !self.options.passwords {
            return Err(AccountError::NoPasswords);
        }

        let source = Source::Account(own.user_id);
        self.attempts.take(&source, self.clock.elapsed_ms())?;

        let user =
            self.people.user_called(&principal.name).await?.ok_or(Error::NotFound("person"))?;
        if current.len() > passwords::PASSWORD_LEN_MAX
            || !self.passwords.is_right(current, Some(&user.password)).await?
        {
            let advice = "This is not your password.".to_owned();
            return Err(AccountError::Field("current", advice));
        }

        if let Some(problem) = passwords::problem_of(new, &user.name) {
            return Err(AccountError::Field("password", problem));
        }
        let hash = self.passwords.hash(new).await?;
        let user = self.people.change_user(user.id, UserChange::Password(hash)).await?;
        self.attempts.succeeded(&source);
        self.people.close_sessions(user.id, Some(own.hash)).await?;

        Ok(devices::mark_of(&user))
    }

    /// Removes expired sessions, links and audit entries periodically, for as long as it is polled.
    pub async fn keep_tidy(&self) {
        let sweep = || async {
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "expired sessions could not be removed; they open nothing");
            }
        };
        every(SWEEP_INTERVAL, sweep).await;
    }

    /// Removes expired sessions, links and audit entries once.
    pub async fn sweep(&self) -> Result<(), Error> {
        let now_s = self.clock.now_s();
        self.people.sweep_sessions(now_s, now_s - self.options.session_idle_s).await?;
        self.people.sweep_invitations(now_s).await?;
        self.people.sweep_entries(now_s - self.options.audit_keep_s).await
    }

    pub(super) fn entry(&self, who: &str, origin: &Origin, verb: &str) -> Entry {
        Entry {
            id: 0,
            at_s: self.clock.now_s(),
            who: who.to_owned(),
            address: origin.address.clone(),
            verb: verb.to_owned(),
            object: String::new(),
            details: "{}".to_owned(),
            outcome: "done".to_owned(),
        }
    }
}

/// The budget that an attempt is charged to.
fn source_of(name: &str, origin: &Origin, mark: Option<&str>, user: Option<&User>) -> Source {
    let nonce = mark.zip(user).and_then(|(mark, user)| devices::nonce_of(mark, user));
    match nonce {
        Some(nonce) => Source::Browser(nonce.to_owned()),
        None => Source::Stranger { name: handle(name), address: origin.address.parse().ok() },
    }
}
