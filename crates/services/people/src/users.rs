//! What an administrator does with the accounts of others.
//!
//! Each change returns the action that the audit log keeps of it.

use super::accounts::Accounts;
use super::audit::AuditAction;
use raingauge_core::access::Role;
use raingauge_ports::people::{Error, Hash, Invitation, User, UserChange};
use serde_json::{Value as Json, json};

impl Accounts {
    /// Everybody who has an account, by name.
    pub async fn users(&self) -> Result<Vec<User>, Error> {
        self.people.users().await
    }

    /// The invitations that can still be used, newest first.
    pub async fn open_invitations(&self) -> Result<Vec<Invitation>, Error> {
        let now_s = self.clock.now_s();
        let mut invitations = self.people.invitations().await?;
        invitations.retain(|invitation| now_s < invitation.expires_at);
        Ok(invitations)
    }

    /// Takes an invitation back.
    pub async fn withdraw(&self, hash: Hash) -> Result<AuditAction, Error> {
        let invitations = self.people.invitations().await?;
        let found = invitations.into_iter().find(|invitation| invitation.hash == hash);
        let invitation = found.ok_or(Error::NotFound("invitation"))?;

        self.people.withdraw(hash).await?;
        Ok(action("person.withdraw_invitation", &invitation.name, json!({})))
    }

    /// Gives a user another role. The last administrator stays one.
    pub async fn change_role(&self, id: i64, role: Role) -> Result<AuditAction, Error> {
        let user = self.people.change_user(id, UserChange::Role(role)).await?;
        Ok(action("person.role", &user.name, json!({ "role": role.name() })))
    }

    /// Keeps a user out from now on, and ends their sessions. Also returns how many API tokens of theirs stay in use:
    /// programs depend on those, so somebody has to decide about each.
    pub async fn disable(&self, id: i64) -> Result<(AuditAction, usize), Error> {
        let now_s = self.clock.now_s();
        let user = self.people.change_user(id, UserChange::Disabled(now_s)).await?;

        let mut tokens = self.people.tokens().await?;
        tokens.retain(|token| token.is_in_use(now_s) && token.created_by == user.name);
        let details = json!({ "tokensInUse": tokens.len() });
        Ok((action("person.disable", &user.name, details), tokens.len()))
    }

    /// Lets a disabled user sign in again.
    pub async fn enable(&self, id: i64) -> Result<AuditAction, Error> {
        let user = self.people.change_user(id, UserChange::Enabled).await?;
        Ok(action("person.enable", &user.name, json!({})))
    }

    /// Forgets a disabled user, name and all: a pseudonym takes its place wherever it was written down.
    pub async fn remove(&self, id: i64) -> Result<AuditAction, Error> {
        let removed = self.people.remove_user(id).await?;
        Ok(AuditAction::new("person.remove", removed.pseudonym, json!({})))
    }

    /// Ends all sessions of a user.
    pub async fn sign_out_everywhere(&self, id: i64) -> Result<AuditAction, Error> {
        let users = self.people.users().await?;
        let user = users.into_iter().find(|user| user.id == id);
        let user = user.ok_or(Error::NotFound("person"))?;

        self.people.close_sessions(id, None).await?;
        Ok(action("person.sign_out", &user.name, json!({})))
    }
}

pub(super) fn action(verb: &'static str, name: &str, details: Json) -> AuditAction {
    AuditAction::new(verb, format!("person {name}"), details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invitations::Invitee;
    use crate::tokens::TokenRequest;
    use crate::{Options, Origin, Refusal};
    use raingauge_core::access::Scope;
    use raingauge_memory::MemoryPeople;
    use raingauge_ports::clock::ManualClock;
    use std::sync::Arc;

    const NOW_S: i64 = 1_727_215_200;
    const PASSWORD: &str = "four words of rain";

    struct House {
        accounts: Accounts,
        clock: Arc<ManualClock>,
    }

    impl House {
        /// With an administrator called root.
        async fn new() -> Self {
            let clock = Arc::new(ManualClock::at_s(NOW_S));
            let options = Options { sign_in: true, ..Options::default() };
            let people = Arc::<MemoryPeople>::default();
            let accounts = Accounts::new(people as _, Arc::clone(&clock) as _, options);
            let house = Self { accounts, clock };

            let path = house.accounts.invite_first().await.unwrap().expect("nobody is there yet");
            house.accept(&path, "root").await;
            house
        }

        async fn accept(&self, path: &str, name: &str) -> String {
            let secret = path.strip_prefix("/welcome/").expect("a link");
            let origin = Origin::default();
            self.accounts.welcome(secret, name, PASSWORD, &origin).await.unwrap().session
        }

        async fn invite(&self, name: &str, role: Role) -> String {
            let invitee = Invitee { name: name.to_owned(), email: String::new(), role };
            self.accounts.invite(invitee, "root").await.unwrap().path
        }

        async fn id_of(&self, name: &str) -> i64 {
            let users = self.accounts.users().await.unwrap();
            users.into_iter().find(|user| user.name == name).expect("a user").id
        }
    }

    fn what(action: &AuditAction) -> (&str, &str, String) {
        (action.verb, &action.object, action.details.to_string())
    }

    #[tokio::test]
    async fn an_account_goes_from_invitation_to_removal() {
        let house = House::new().await;
        let link = house.invite("zoe", Role::Viewer).await;
        let session = house.accept(&link, "").await;
        let id = house.id_of("zoe").await;
        let zoe = || house.accounts.principal(&session);

        let changed = house.accounts.change_role(id, Role::Editor).await.unwrap();
        let expected = ("person.role", "person zoe", r#"{"role":"editor"}"#.to_owned());
        assert_eq!(what(&changed), expected);
        assert_eq!(zoe().await.unwrap().expect("signed in").role(), Some(Role::Editor));

        assert_eq!(house.accounts.remove(id).await, Err(Error::NotDisabled));
        let (disabled, tokens) = house.accounts.disable(id).await.unwrap();
        assert_eq!((what(&disabled).0, tokens), ("person.disable", 0));
        assert_eq!(zoe().await, Ok(None));

        house.accounts.enable(id).await.unwrap();
        house.accounts.disable(id).await.unwrap();
        let removed = house.accounts.remove(id).await.unwrap();
        assert!(!removed.object.contains("zoe"), "{}", removed.object);
        let again = house.accounts.sign_out_everywhere(id).await;
        assert_eq!(again, Err(Error::NotFound("person")));
    }

    #[tokio::test]
    async fn an_invitation_is_good_until_it_is_used_withdrawn_or_expired() {
        let house = House::new().await;
        house.invite("zoe", Role::Viewer).await;
        let [open] = &*house.accounts.open_invitations().await.unwrap() else {
            panic!("one invitation is open");
        };
        let withdrawn = house.accounts.withdraw(open.hash).await.unwrap();
        assert_eq!(what(&withdrawn).1, "person zoe");
        let again = house.accounts.withdraw(open.hash).await;
        assert_eq!(again, Err(Error::NotFound("invitation")));

        let link = house.invite("zoe", Role::Viewer).await;
        house.clock.set_s(NOW_S + crate::invitations::INVITATION_S);
        assert!(house.accounts.open_invitations().await.unwrap().is_empty());
        let secret = link.strip_prefix("/welcome/").expect("a link");
        let late = house.accounts.welcome(secret, "", PASSWORD, &Origin::default()).await;
        assert_eq!(late.err(), Some(Refusal::Store(Error::LinkSpent)));
    }

    #[tokio::test]
    async fn the_last_administrator_stays_one() {
        let house = House::new().await;
        let id = house.id_of("root").await;
        assert_eq!(house.accounts.change_role(id, Role::Viewer).await, Err(Error::LastAdmin));
        assert_eq!(house.accounts.disable(id).await, Err(Error::LastAdmin));
    }

    #[tokio::test]
    async fn whoever_is_disabled_leaves_tokens_to_decide_about() {
        let house = House::new().await;
        let link = house.invite("zoe", Role::Admin).await;
        house.accept(&link, "").await;
        let request = || {
            let scopes = [Scope::CountsRead].into_iter().collect();
            TokenRequest { name: "shop".to_owned(), scopes, lifetime_s: Some(60) }
        };
        let made = house.accounts.create_token(request(), "zoe").await.unwrap();
        let expected = r#"{"expiresAt":1727215260,"scopes":["counts:read"]}"#;
        assert_eq!(what(&made.action), ("token.create", "token shop", expected.to_owned()));
        let twin = house.accounts.create_token(request(), "root").await;
        assert!(matches!(twin, Err(Refusal::Field("name", _))));

        let (_, tokens) = house.accounts.disable(house.id_of("zoe").await).await.unwrap();
        assert_eq!(tokens, 1);
        let [token] = &*house.accounts.tokens().await.unwrap() else { panic!("one token") };
        let revoked = house.accounts.revoke_token(token.id).await.unwrap();
        assert_eq!(what(&revoked).1, "token shop");
        house.accounts.create_token(request(), "root").await.unwrap();
    }
}
