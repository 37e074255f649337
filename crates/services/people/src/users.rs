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

    /// Locks a user out and ends their sessions. Also returns how many API tokens of theirs remain
    /// in use: programs depend on those, so an administrator decides about each.
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

    /// Removes a disabled user. A pseudonym replaces the name wherever it was recorded.
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
