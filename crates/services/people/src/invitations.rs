//! One-time links: for new users, for users who lost their password, for the first administrator.

use super::accounts::{Accounts, Admission};
use super::audit::AuditAction;
use super::passwords;
use super::secrets::{hash_of, hash_of_sent, new_secret};
use super::users::action;
use super::{AccountError, Origin};
use raingauge_core::access::Role;
use raingauge_core::limits::PERSON_LEN_MAX;
use raingauge_ports::people::{Error, Invitation, NewUser};
use serde_json::json;

/// The inviter in the audit log when a command on the server made the link.
pub const COMMAND_LINE: &str = "the command line";
/// The inviter of the first administrator.
const FIRST_START: &str = "the first start";
/// Names that raingauge itself uses in versions and in the audit log.
const RESERVED: [&str; 4] = ["anonymous", "nobody", COMMAND_LINE, FIRST_START];
/// Validity of a link.
pub const INVITATION_S: i64 = 24 * 3_600;
/// Validity of the link for the first administrator.
pub const FIRST_INVITATION_S: i64 = 3_600;

/// The person to invite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitee {
    pub name: String,
    pub email: String,
    pub role: Role,
}

/// A one-time link that was just made. Its path is shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub path: String,
    pub action: AuditAction,
}

impl Accounts {
    /// Makes a link for a new user, or for a user who needs a new password.
    pub async fn invite(&self, invitee: Invitee, invited_by: &str) -> Result<Link, AccountError> {
        if let Some(problem) = problem_of_name(&invitee.name) {
            return Err(AccountError::Field("name", problem));
        }
        if let Some(problem) = problem_of_email(&invitee.email) {
            return Err(AccountError::Field("email", problem));
        }

        let details = json!({ "role": invitee.role.name() });
        let action = action("person.invite", &invitee.name, details);
        let path = self.link(invitee, invited_by, INVITATION_S).await?;
        Ok(Link { path, action })
    }

    /// Returns the path of a link for the first administrator, or `None` when there is a user
    /// already. Earlier links become invalid.
    pub async fn invite_first(&self) -> Result<Option<String>, Error> {
        if !self.options.sign_in || self.has_people().await? {
            return Ok(None);
        }
        let earlier = self.people.invitations().await?;
        for invitation in earlier.into_iter().filter(|invitation| invitation.name.is_empty()) {
            self.people.withdraw(invitation.hash).await?;
        }
        let [name, email] = [String::new(), String::new()];
        let invitee = Invitee { name, email, role: Role::Admin };
        self.link(invitee, FIRST_START, FIRST_INVITATION_S).await.map(Some)
    }

    async fn link(
        &self,
        invitee: Invitee,
        invited_by: &str,
        valid_s: i64,
    ) -> Result<String, Error> {
        let secret = new_secret();
        let now_s = self.clock.now_s();
        let Invitee { name, email, role } = invitee;
        let invitation = Invitation {
            hash: hash_of(&secret),
            name,
            email,
            role,
            invited_by: invited_by.to_owned(),
            created_at: now_s,
            expires_at: now_s + valid_s,
        };

        self.people.invite(invitation).await?;
        Ok(format!("/welcome/{secret}"))
    }

    /// Returns the invitation of a link that is still valid.
    pub async fn invitation(&self, secret: &str) -> Result<Invitation, Error> {
        let hash = hash_of_sent(secret).ok_or(Error::LinkSpent)?;
        let found = self.people.invitation(hash).await?;
        let now_s = self.clock.now_s();
        let invitation =
            found.filter(|invitation| now_s < invitation.expires_at).ok_or(Error::LinkSpent)?;
        let is_first = invitation.name.is_empty();
        if is_first && self.has_people().await? { Err(Error::LinkSpent) } else { Ok(invitation) }
    }

    /// Uses a link and signs its user in. The first administrator chooses a name.
    pub async fn welcome(
        &self,
        secret: &str,
        name: &str,
        password: &str,
        origin: &Origin,
    ) -> Result<Admission, AccountError> {
        let invitation = self.invitation(secret).await?;

        // With passwords switched off, the operator of the server still has a way in.
        if !self.options.passwords
            && ![COMMAND_LINE, FIRST_START].contains(&&*invitation.invited_by)
        {
            return Err(AccountError::NoPasswords);
        }

        let name = if invitation.name.is_empty() { name } else { &invitation.name };
        if let Some(problem) = problem_of_name(name) {
            return Err(AccountError::Field("name", problem));
        }

        if let Some(problem) = passwords::problem_of(password, name) {
            return Err(AccountError::Field("password", problem));
        }
        let password = self.passwords.hash(password).await?;
        let [name, email, openid] = [name, "", ""].map(str::to_owned);
        let at_s = self.clock.now_s();
        let new = NewUser { name, email, role: invitation.role, password, openid, at_s };
        let user = self.people.accept(invitation.hash, new).await?;

        self.admit(&user, origin, "one-time link").await
    }
}

/// What is wrong with a user name; `None` when it may be used.
pub fn problem_of_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("Give a name, such as zoe or zoe@example.com.".to_owned());
    }

    if name.len() > PERSON_LEN_MAX {
        return Some(format!("It has more than {PERSON_LEN_MAX} bytes. Choose a shorter one."));
    }
    let is_allowed = |char: char| char.is_alphanumeric() || " ._-@+'".contains(char);
    if let Some(strange) = name.chars().find(|char| !is_allowed(*char)) {
        return Some(format!(
            "A name has letters, digits, blanks and . _ - @ + ', and not {strange:?}."
        ));
    }

    if RESERVED.contains(&&*name.to_lowercase()) {
        return Some(
            "raingauge itself has this name in its audit log. Choose another one.".to_owned(),
        );
    }

    let is_ragged = name.trim() != name || name.contains("  ");
    is_ragged.then(|| "It has blanks in a row, or at an end. Leave them out.".to_owned())
}

/// What is wrong with an e-mail address; `None` when it is empty or may be used.
pub fn problem_of_email(email: &str) -> Option<String> {
    let is_fine = email.is_empty()
        || email.len() <= PERSON_LEN_MAX
            && email
                .split_once('@')
                .is_some_and(|(who, place)| !who.is_empty() && !place.is_empty())
            && email
                .chars()
                .all(|char| !char.is_whitespace() && !char.is_control() && !"<>\"'".contains(char));
    (!is_fine).then(|| "This is not an e-mail address. Leave it empty if there is none.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable() {
        for fine in ["zoe", "Zoë Ångström", "zoe@example.com", "O'Neil", "李雷", "a.b_c-d+e 1"]
        {
            assert_eq!(problem_of_name(fine), None, "{fine}");
        }

        let long = "x".repeat(PERSON_LEN_MAX + 1);
        for wrong in [
            "",
            "Anonymous",
            "the command line",
            " zoe",
            "zoe ",
            "a  b",
            "<b>",
            "a\nb",
            "a\u{202e}b",
            "a\"b",
            "a;b",
            &long,
        ] {
            assert!(problem_of_name(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn addresses_look_like_addresses() {
        for fine in ["", "zoe@example.com", "zoe+x@localhost"] {
            assert_eq!(problem_of_email(fine), None, "{fine}");
        }
        for wrong in ["zoe", "@", "zoe@", "@example.com", "a b@c", "<zoe@example.com>"] {
            assert!(problem_of_email(wrong).is_some(), "{wrong}");
        }
    }
}
