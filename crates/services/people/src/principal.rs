//! Who is asking, and what they may do.

use raingauge_core::access::{Role, Scope, Scopes};
use raingauge_ports::catalog::TOKEN_PREFIX as TOKEN_MARK;
use raingauge_ports::people::Hash;
use std::sync::Arc;

/// The name of a principal whom nobody asks to sign in or to send a token.
pub const ANONYMOUS: &str = "anonymous";

/// Who sent a request. Handlers take it with `Extension<Principal>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of a person or a token, or [`ANONYMOUS`].
    pub name: Arc<str>,
    pub credential: Credential,
    /// The secret that every form on this principal's pages carries. A token has no pages.
    pub csrf: Option<Arc<str>>,
    /// The person who made the token in the portal. `None` for a token of the settings.
    pub made_by: Option<Arc<str>>,
}

/// What a request proves its principal by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing, where nobody is asked for anything: everything is allowed.
    None,
    /// An API token. It opens no page.
    Token(Scopes),
    /// A session of the portal.
    Session(OwnSession),
}

/// The session in which a person sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnSession {
    pub user_id: i64,
    pub role: Role,
    pub hash: Hash,
    /// When the session began.
    pub since_s: i64,
}

impl Principal {
    /// An anonymous caller, where no sign-in is required.
    pub fn anonymous(csrf: Option<Arc<str>>) -> Self {
        Self { name: ANONYMOUS.into(), credential: Credential::None, csrf, made_by: None }
    }

    /// The holder of a token.
    pub fn of_token(name: Arc<str>, scopes: Scopes) -> Self {
        Self { name, credential: Credential::Token(scopes), csrf: None, made_by: None }
    }

    /// The role on pages; `None` for a token.
    pub const fn role(&self) -> Option<Role> {
        match self.credential {
            Credential::None => Some(Role::Admin),
            Credential::Token(_) => None,
            Credential::Session(session) => Some(session.role),
        }
    }

    /// Whether pages for this role are open to the principal.
    pub fn may(&self, role: Role) -> bool {
        self.role() >= Some(role)
    }

    /// Whether the API does for the principal what this scope is for.
    pub fn allows(&self, scope: Scope) -> bool {
        match self.credential {
            Credential::None => true,
            Credential::Token(scopes) => scopes.allow(scope),
            Credential::Session(_) => false,
        }
    }

    /// The session of a person who is signed in.
    pub const fn session(&self) -> Option<OwnSession> {
        match self.credential {
            Credential::Session(session) => Some(session),
            _ => None,
        }
    }

    /// The person who acts: a token acts for the person who made it. `None` for a token of the
    /// settings, which belongs to nobody in particular.
    pub fn person(&self) -> Option<&str> {
        match self.credential {
            Credential::Token(_) => self.made_by.as_deref(),
            _ => Some(&self.name),
        }
    }

    /// The name as versions and the audit log keep it: that of a token is marked, since a person
    /// may have it too.
    pub fn recorded_name(&self) -> String {
        match self.credential {
            Credential::Token(_) => format!("{TOKEN_MARK}{}", self.name),
            _ => self.name.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_credential_opens_its_own_doors() {
        let scopes = [Scope::CountsRead].into_iter().collect();
        let token = Principal::of_token("zoe".into(), scopes);
        let session =
            OwnSession { user_id: 1, role: Role::Editor, hash: Hash::default(), since_s: 7 };
        let credential = Credential::Session(session);
        let person =
            Principal { name: "zoe".into(), credential, csrf: Some("abc".into()), made_by: None };

        let anonymous = Principal::anonymous(None);

        assert!(Role::ALL.into_iter().all(|role| !token.may(role)));
        assert!(token.allows(Scope::CountsRead) && !token.allows(Scope::EventsWrite));
        assert!(person.may(Role::Editor) && !person.may(Role::Admin));
        assert!(Scope::ALL.into_iter().all(|scope| !person.allows(scope)));
        assert!(anonymous.may(Role::Admin) && anonymous.allows(Scope::Admin));

        let names = [&token, &person, &anonymous].map(Principal::recorded_name);
        assert_eq!(names, ["token:zoe", "zoe", "anonymous"]);
    }
}
