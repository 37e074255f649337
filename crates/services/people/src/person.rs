//! Who looks at a page, and what they may do.

use raingauge_core::access::Role;
use raingauge_ports::people::Hash;
use std::sync::Arc;

/// The person who sent a request. Handlers take it with `Extension<Person>`.
#[derive(Clone, Debug)]
pub struct Person {
    /// As it is written into versions and the audit log.
    pub name: Arc<str>,
    pub role: Role,
    /// What every form of this person carries in its field `csrf`.
    pub csrf: Arc<str>,
    /// None while nobody needs to sign in.
    pub signed_in: Option<SignedIn>,
}

/// By which session somebody is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedIn {
    pub user_id: i64,
    pub session: Hash,
    /// When the session began.
    pub since_s: i64,
}

impl Person {
    pub fn may(&self, role: Role) -> bool {
        self.role >= role
    }
}
