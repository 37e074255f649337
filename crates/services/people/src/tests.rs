//! The service as a whole, over people in memory.

mod entrance;
mod openid;
mod users;

use crate::accounts::{Accounts, Admission};
use crate::invitations::Invitee;
use crate::{AccountError, Options, Origin, Principal};
use raingauge_core::access::Role;
use raingauge_memory as memory;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::people::{Entry, Filter};
use std::sync::Arc;

const NOW_S: i64 = 1_727_215_200;
const HOUR_S: i64 = 3_600;
const PASSWORD: &str = "four words of rain";
const WRONG: &str = "four words of snow";
const HERE: &str = "192.0.2.7";

struct House {
    accounts: Accounts,
    clock: Arc<ManualClock>,
}

impl House {
    /// Nobody has an account yet.
    fn empty() -> Self {
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let options = Options { sign_in: true, session_max_s: 24 * HOUR_S, ..Options::default() };
        let people = Arc::<memory::People>::default();
        let accounts = Accounts::new(people as _, Arc::clone(&clock) as _, options);
        Self { accounts, clock }
    }

    /// With an administrator called root.
    async fn with_root() -> Self {
        let house = Self::empty();
        let path = house.accounts.invite_first().await.unwrap().expect("nobody is there yet");
        house.accept(&path, "root").await.unwrap();
        house
    }

    async fn accept(&self, path: &str, name: &str) -> Result<Admission, AccountError> {
        let secret = path.strip_prefix("/welcome/").expect("a link");
        self.accounts.welcome(secret, name, PASSWORD, &Origin::default()).await
    }

    async fn invite(&self, name: &str, email: &str, role: Role) -> String {
        let invitee = Invitee { name: name.to_owned(), email: email.to_owned(), role };
        self.accounts.invite(invitee, "root").await.unwrap().path
    }

    /// The session secret of a new person with this role, signed in.
    async fn with(&self, name: &str, role: Role) -> String {
        let path = self.invite(name, "", role).await;
        self.accept(&path, "").await.unwrap().session
    }

    async fn principal(&self, session: &str) -> Option<Principal> {
        self.accounts.principal(session).await.unwrap()
    }

    async fn id_of(&self, name: &str) -> i64 {
        let users = self.accounts.users().await.unwrap();
        users.into_iter().find(|user| user.name == name).expect("a user").id
    }

    async fn entries_of(&self, verb: &str) -> Vec<Entry> {
        let filter = Filter { verb: verb.to_owned(), ..Filter::default() };
        self.accounts.audit.entries(filter).await.unwrap()
    }
}
