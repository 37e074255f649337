//! What a change of people may do, given all of them. Every adapter decides with these functions,
//! inside its transaction.

use super::{ApiToken, Error, Invitation, NewUser, RemovedUser, User, UserChange, handle};
use raingauge_core::access::Role;
use raingauge_core::limits::{API_TOKENS_MAX, INVITATIONS_MAX, USERS_MAX};

impl User {
    pub const fn may_sign_in(&self) -> bool {
        self.disabled_at.is_none()
    }

    const fn is_admin(&self) -> bool {
        matches!(self.role, Role::Admin) && self.may_sign_in()
    }

    /// Returns the user to add to `users`.
    pub fn added(users: &[Self], new: NewUser) -> Result<Self, Error> {
        if users.iter().any(|user| handle(&user.name) == handle(&new.name)) {
            return Err(Error::NameTaken(new.name));
        }

        if users.len() >= USERS_MAX {
            return Err(Error::TooMany { what: "people", most: USERS_MAX });
        }
        let id = users.iter().map(|user| user.id).max().unwrap_or(0) + 1;
        let NewUser { name, email, role, password, openid, at_s } = new;
        let (signed_in_at, disabled_at) = (None, None);

        Ok(Self {
            id,
            name,
            email,
            role,
            password,
            openid,
            created_at: at_s,
            signed_in_at,
            disabled_at,
        })
    }

    /// Returns one of these users as the change leaves it.
    pub fn changed(users: &[Self], id: i64, change: UserChange) -> Result<Self, Error> {
        let mut user =
            users.iter().find(|user| user.id == id).ok_or(Error::NotFound("person"))?.clone();
        match change {
            UserChange::Role(role) => user.role = role,
            UserChange::Disabled(at_s) => user.disabled_at = user.disabled_at.or(Some(at_s)),
            UserChange::Enabled => user.disabled_at = None,
            UserChange::Password(password) => user.password = password,
            UserChange::OpenId(openid) => user.openid = openid,
        }
        Self::with_an_admin(users, user)
    }

    /// Returns the user that an invitation makes: a new one, or one of `users` with a new password
    /// or identity.
    pub fn invited(users: &[Self], invitation: &Invitation, new: NewUser) -> Result<Self, Error> {
        let is_first = invitation.name.is_empty();
        if is_first && !users.is_empty() {
            return Err(Error::LinkSpent);
        }

        let name = if is_first { new.name } else { invitation.name.clone() };
        let email = if invitation.email.is_empty() { new.email } else { invitation.email.clone() };
        let new = NewUser { name, email, role: invitation.role, ..new };
        let Some(known) = users.iter().find(|user| handle(&user.name) == handle(&new.name)) else {
            return Self::added(users, new);
        };
        let NewUser { email, role, password, openid, .. } = new;

        let email = if invitation.email.is_empty() { known.email.clone() } else { email };
        let disabled_at = None;
        let known = known.clone();

        Self::with_an_admin(users, Self { email, role, password, openid, disabled_at, ..known })
    }

    /// Returns the user to remove. Its pseudonym is not a valid user name.
    pub fn removed(users: &[Self], id: i64) -> Result<RemovedUser, Error> {
        let user =
            users.iter().find(|user| user.id == id).ok_or(Error::NotFound("person"))?.clone();
        let pseudonym = format!("removed person {id}/{}", user.created_at);
        if user.may_sign_in() {
            Err(Error::NotDisabled)
        } else {
            Ok(RemovedUser { user, pseudonym })
        }
    }

    /// Refuses a change that would leave no administrator who may sign in.
    fn with_an_admin(users: &[Self], changed: Self) -> Result<Self, Error> {
        let had_one = users.iter().any(Self::is_admin);
        let has_one =
            changed.is_admin() || users.iter().any(|user| user.id != changed.id && user.is_admin());
        if had_one && !has_one { Err(Error::LastAdmin) } else { Ok(changed) }
    }
}

impl Invitation {
    /// Whether one more may be added.
    pub const fn fits(there_are: usize) -> Result<(), Error> {
        if there_are < INVITATIONS_MAX {
            Ok(())
        } else {
            Err(Error::TooMany { what: "invitations", most: INVITATIONS_MAX })
        }
    }
}

impl ApiToken {
    /// Whether the token is valid at this time.
    pub fn is_in_use(&self, now_s: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now_s < expires_at)
    }

    /// Returns the token to add to `tokens`.
    pub fn added(tokens: &[Self], new: Self) -> Result<Self, Error> {
        let in_use = || tokens.iter().filter(|token| token.is_in_use(new.created_at));
        if in_use().any(|token| token.name == new.name) {
            return Err(Error::NameTaken(new.name));
        }
        if in_use().count() >= API_TOKENS_MAX {
            return Err(Error::TooMany { what: "tokens", most: API_TOKENS_MAX });
        }
        let id = tokens.iter().map(|token| token.id).max().unwrap_or(0) + 1;
        Ok(Self { id, ..new })
    }
}
