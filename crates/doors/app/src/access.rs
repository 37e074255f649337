//! The decision that every door makes before it answers: whether this process can, and whether the
//! caller may.

use crate::problem::Problem;
use crate::{App, origin};
use axum::http::{HeaderMap, Uri, header};
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use raingauge_people::Principal;
use raingauge_people::tokens::Tokens;
use raingauge_settings::{Entry, Reader, Setting};
use std::sync::Arc;

raingauge_core::names! {
    /// What a process does in a deployment.
    #[derive(PartialOrd, Ord)]
    pub enum Role {
        Reader = "reader",
        Writer = "writer",
        Portal = "portal",
    }
}

impl Entry for Role {
    fn read_all(reader: &mut Reader, setting: &'static Setting) -> Vec<Self> {
        let names: Vec<String> = reader.value(setting);
        let role_of = |name: &String| Self::from_name(name);
        let mut roles: Vec<Self> = names.iter().filter_map(role_of).collect();
        roles.sort_unstable();
        roles.dedup();

        if roles.is_empty() || names.iter().any(|name| role_of(name).is_none()) {
            let message = format!("{:?} are not roles", names.join(","));
            let advice = "Give some of reader, writer and portal, with commas";
            reader.refuse(&setting.path(), message, advice);
            return Self::ALL.to_vec();
        }
        roles
    }
}

/// What one route or method asks of its callers, and of the process that answers it.
pub struct Access {
    tokens: Arc<Tokens>,
    scope: Option<Scope>,
    /// The role that it needs, when this process does not have it.
    lacks: Option<Role>,
}

impl Access {
    /// `None` as the scope opens it to all; `None` as the role lets every process answer it.
    pub fn new(app: &App, scope: Option<Scope>, role: Option<Role>) -> Self {
        Self {
            tokens: Arc::clone(&app.people.tokens),
            scope,
            lacks: role.filter(|role| !app.node.has(*role)),
        }
    }

    /// Answers whose request with this head is; `None` where nothing is asked of the caller.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<Option<Principal>, Box<Problem>> {
        if let Some(role) = self.lacks {
            return Err(Box::new(role_absent(role)));
        }
        let Some(scope) = self.scope else {
            return Ok(None);
        };
        if !self.asks_for_tokens() {
            refuse_foreign(headers, uri)?;
        }
        let who = self.tokens.check(authorization(headers), scope);
        who.map(Some).map_err(|denied| Box::new(denied.into()))
    }

    /// Whether callers need a token. If not, only requests of this machine are taken.
    pub fn asks_for_tokens(&self) -> bool {
        self.tokens.is_asked()
    }
}

/// Whether a request with this head has a scope, where the answer to it depends on that.
pub fn allows(tokens: &Tokens, scope: Scope, headers: &HeaderMap, uri: &Uri) -> bool {
    if !tokens.is_asked() {
        return origin::foreign(headers, uri).is_none();
    }
    tokens.check(authorization(headers), scope).is_ok()
}

fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()
}

/// Takes only requests of this machine where no token is needed.
fn refuse_foreign(headers: &HeaderMap, uri: &Uri) -> Result<(), Box<Problem>> {
    let Some(reason) = origin::foreign(headers, uri) else {
        return Ok(());
    };
    let detail = format!(
        "no token is asked for here, so only requests of this machine are taken, and {reason}: to serve others, set \
         auth.required or configure a token"
    );
    Err(Box::new(Problem::new(Code::ForeignRequest, detail)))
}

fn role_absent(role: Role) -> Problem {
    let detail = format!(
        "this instance does not have the role {0}: ask one that runs with --role {0}",
        role.name()
    );
    Problem::new(Code::RoleAbsent, detail)
}
