//! Signing in and out, and who a session is of.

use super::audit::AuditLog;
use super::limits::{Attempts, Source};
use super::passwords::{self, Passwords};
use super::secrets::{csrf_of, hash_of, hash_of_sent, new_secret};
use super::{Options, Origin, Refusal, devices};
use crate::{Credential, OwnSession, Principal};
use raingauge_core::limits::PERSON_LEN_MAX;
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::people::{
    Entry, Error, Hash, People, Session, Sweep, User, UserChange, handle,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often what has expired is removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// A session is noted as seen this often, and not with every request.
const SEEN_STEP_S: i64 = 60;
/// How somebody comes in who is known at a provider.
pub(super) const BY_OPENID: &str = "openid";
/// The longest session of somebody who comes from a provider: the provider is asked again after it,
/// so that nobody stays whom it does not know any more.
pub const OPENID_SESSION_MAX_S: i64 = 8 * 3_600;
/// What is kept of how a browser calls itself, in characters.
const BROWSER_CHARS_MAX: usize = 200;

/// Everything about who may come in.
pub struct Accounts {
    pub(super) people: Arc<dyn People>,
    pub options: Options,
    pub audit: AuditLog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) passwords: Passwords,
    attempts: Attempts,
    /// Somebody was there once. The last administrator is never removed, so there always is
    /// somebody then.
    has_people: AtomicBool,
}

/// What a browser is given when its person comes in.
#[derive(Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The secret of a new session, whatever session the browser had before.
    pub session: String,
    /// By which the browser is recognised at the next sign-in.
    pub mark: Option<String>,
}

impl Accounts {
    pub fn new(people: Arc<dyn People>, clock: Arc<dyn Clock>, options: Options) -> Self {
        let audit = AuditLog::new(Arc::clone(&people), Arc::clone(&clock));
        let passwords = Passwords::default();
        let attempts = Attempts::default();
        Self {
            people,
            options,
            audit,
            clock,
            passwords,
            attempts,
            has_people: AtomicBool::new(false),
        }
    }

    /// Whose session has this secret; none for somebody who is not signed in.
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
            // Whoever comes with this session comes in all the same; it only seems idle for a
            // moment longer.
            if let Err(error) = self.people.touch_session(hash, now_s).await {
                tracing::warn!(%error, "a session could not be noted as seen");
            }
        }

        let own =
            OwnSession { user_id: user.id, role: user.role, hash, since_s: session.created_at };
        Ok(Some(Principal {
            name: user.name.into(),
            credential: Credential::Session(own),
            csrf: Some(csrf_of(secret).into()),
        }))
    }

    /// Whether anybody can sign in. Asked by people who are not signed in, and so answered from
    /// memory where it can be.
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

    /// Signs somebody in with a password. `mark` is what the browser kept of an earlier sign-in.
    pub async fn sign_in(
        &self,
        name: &str,
        password: &str,
        origin: &Origin,
        mark: Option<&str>,
    ) -> Result<Admitted, Refusal> {
        if !self.options.passwords {
            return Err(Refusal::NoPasswords);
        }

        if name.is_empty()
            || name.len() > PERSON_LEN_MAX
            || password.len() > passwords::PASSWORD_LEN_MAX
        {
            return Err(Refusal::Wrong);
        }

        let user = self.people.user_called(name).await?;
        let source = source_of(name, origin, mark, user.as_ref());
        self.attempts.take(&source, self.clock.elapsed_ms())?;

        let user = user.filter(User::may_sign_in);
        let stored = user.as_ref().map(|user| user.password.as_str());
        let is_right = self.passwords.is_right(password, stored).await?;
        let Some(user) = user.filter(|_| is_right) else {
            self.note_failure(name, origin).await;
            return Err(Refusal::Wrong);
        };

        self.attempts.succeeded(&source);
        self.admit(&user, origin, "password").await
    }

    /// Begins a session of somebody who has proved who they are.
    pub(super) async fn admit(
        &self,
        user: &User,
        origin: &Origin,
        way: &str,
    ) -> Result<Admitted, Refusal> {
        let secret = new_secret();
        let now_s = self.clock.now_s();
        let max_s = match way {
            BY_OPENID => self.options.session_max_s.min(OPENID_SESSION_MAX_S),
            _ => self.options.session_max_s,
        };

        // Whoever cannot be written down does not come in.
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
        Ok(Admitted { session: secret, mark: devices::mark_of(user) })
    }

    /// A name that nobody has is not written down: it may be a password in the wrong field.
    async fn note_failure(&self, name: &str, origin: &Origin) {
        let known = self.people.user_called(name).await.ok().flatten();
        let object = known
            .map_or_else(|| "somebody unknown".to_owned(), |user| format!("person {}", user.name));
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

    /// The own sessions that are open.
    pub async fn sessions(&self, user_id: i64) -> Result<Vec<Session>, Error> {
        let now_s = self.clock.now_s();
        let sessions = self.people.sessions(user_id).await?;
        Ok(sessions.into_iter().filter(|session| self.is_open(session, now_s)).collect())
    }

    /// Ends one of somebody's own sessions, or all but the one that they ask from.
    pub async fn end_sessions(&self, own: &OwnSession, one: Option<Hash>) -> Result<(), Error> {
        match one {
            Some(hash) => self.close_own(own, hash).await,
            None => self.people.close_sessions(own.user_id, Some(own.hash)).await,
        }
    }

    /// Whether somebody signs in by a password, and not at a provider alone.
    pub async fn has_password(&self, principal: &Principal) -> Result<bool, Error> {
        let user = self.people.user_called(&principal.name).await?;
        Ok(self.options.passwords && user.is_some_and(|user| !user.password.is_empty()))
    }

    async fn close_own(&self, own: &OwnSession, hash: Hash) -> Result<(), Error> {
        let is_own =
            self.people.sessions(own.user_id).await?.iter().any(|session| session.hash == hash);
        if is_own { self.people.close_session(hash).await } else { Err(Error::NotFound("session")) }
    }

    /// Changes somebody's own password, which ends all their other sessions. The old one is asked
    /// for, so that a browser that was left open is not enough. Returns by what this browser is
    /// recognised from now on.
    pub async fn change_password(
        &self,
        principal: &Principal,
        current: &str,
        new: &str,
    ) -> Result<Option<String>, Refusal> {
        let Some(own) = principal.session() else {
            return Err(Refusal::Wrong);
        };
        if !self.options.passwords {
            return Err(Refusal::NoPasswords);
        }

        let source = Source::Account(own.user_id);
        self.attempts.take(&source, self.clock.elapsed_ms())?;

        let user =
            self.people.user_called(&principal.name).await?.ok_or(Error::NotFound("person"))?;
        if current.len() > passwords::PASSWORD_LEN_MAX
            || !self.passwords.is_right(current, Some(&user.password)).await?
        {
            let advice = "This is not your password.".to_owned();
            return Err(Refusal::Field("current", advice));
        }

        if let Some(problem) = passwords::problem_of(new, &user.name) {
            return Err(Refusal::Field("password", problem));
        }
        let hash = self.passwords.hash(new).await?;
        let user = self.people.change_user(user.id, UserChange::Password(hash)).await?;
        self.attempts.succeeded(&source);
        self.people.close_sessions(user.id, Some(own.hash)).await?;

        Ok(devices::mark_of(&user))
    }

    /// Removes sessions, links and audit entries that have expired, for as long as it is polled.
    pub async fn keep_tidy(&self) {
        let sweep = || async {
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "expired sessions could not be removed; they open nothing");
            }
        };
        every(SWEEP_INTERVAL, sweep).await;
    }

    /// Removes what has expired.
    pub async fn sweep(&self) -> Result<(), Error> {
        let now_s = self.clock.now_s();
        let idle_since_s = now_s - self.options.session_idle_s;
        self.people
            .sweep(Sweep { now_s, idle_since_s, audit_before_s: now_s - self.options.audit_keep_s })
            .await
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

/// To which budget an attempt is charged.
fn source_of(name: &str, origin: &Origin, mark: Option<&str>, user: Option<&User>) -> Source {
    let nonce = mark.zip(user).and_then(|(mark, user)| devices::nonce_of(mark, user));
    match nonce {
        Some(nonce) => Source::Browser(nonce.to_owned()),
        None => Source::Stranger { name: handle(name), address: origin.address.parse().ok() },
    }
}
