//! Who comes in by an OpenID provider, and as whom.
//!
//! ```text
//!   known by issuer and subject? ──yes──▶ this account
//!        │ no
//!   address verified? ──no──▶ refused
//!        │ yes
//!   invited? an account that has the address? of a domain? ──▶ bound to issuer and subject
//!        │ none of them
//!   refused
//! ```
//!
//! An address identifies a person only once: providers give addresses to other people in time, but
//! never subjects.

use super::accounts::{Accounts, Admission, BY_OPENID};
use super::invitations::problem_of_name;
use super::trips::Trip;
use super::{AccountError, Origin};
use raingauge_core::access::Role;
use raingauge_ports::identity::{self, Identity, IdentityProvider};
use raingauge_ports::people::{self, Entry, NewUser, User, UserChange};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// A provider, and the rules for its users.
#[derive(Clone)]
pub struct OpenId {
    pub provider: Arc<dyn IdentityProvider>,
    pub rules: Rules,
}

/// What the provider sent the browser back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderAnswer<'a> {
    /// Exchanged at the provider for the identity.
    pub code: Option<&'a str>,
    /// Why the provider refused the sign-in.
    pub error: Option<&'a str>,
}

/// Who may sign in, and with which role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The label of the button.
    pub label: String,
    /// E-mail domains whose users need no invitation.
    pub domains: Vec<String>,
    /// The role of those users.
    pub role: Role,
    /// Groups with their roles; empty when roles are assigned in the portal.
    pub groups: Vec<(String, Role)>,
}

/// Why a user whom the provider identified may not sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The provider has not verified the address, or names none.
    Unverified,
    /// This address has no invitation.
    NotInvited(String),
    /// None of the user's groups has a role here.
    NoRole,
    Disabled,
    /// An account with this address or this name belongs to another identity.
    Contested(String),
    /// There is no administrator yet.
    NobodyYet,
    /// The provider confirms no identity.
    Provider(identity::Error),
    Account(AccountError),
}

impl<E: Into<AccountError>> From<E> for Denial {
    fn from(error: E) -> Self {
        Self::Account(error.into())
    }
}

impl Denial {
    /// The outcome in the audit log.
    const fn outcome(&self) -> &'static str {
        match self {
            Self::Unverified => "email_unverified",
            Self::NotInvited(_) => "not_invited",
            Self::NoRole => "no_role",
            Self::Disabled => "disabled",
            Self::Contested(_) => "address_contested",
            Self::NobodyYet => "no_administrator",
            Self::Provider(_) | Self::Account(_) => "failed",
        }
    }
}

impl OpenId {
    /// Begins a sign-in at the provider. Returns what the browser keeps, and the address to send it
    /// to.
    pub async fn begin(&self, next: &str, now_s: i64) -> Result<(Trip, String), identity::Error> {
        let trip = Trip::begin(next, now_s);
        let address = self.provider.begin(trip.ticket()).await?;
        Ok((trip, address))
    }

    async fn identify(
        &self,
        trip: &Trip,
        answer: ProviderAnswer<'_>,
    ) -> Result<Identity, identity::Error> {
        if let Some(error) = answer.error {
            // The browser brought it, so the log shows only characters that a code can have.
            let is_plain = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
            let code = error.chars().filter(is_plain).take(64).collect();
            return Err(identity::Error::Refused(code));
        }
        let no_code = || identity::Error::Unproven("there is no code in it".to_owned());
        let code = answer.code.ok_or_else(no_code)?;
        self.provider.finish(code.to_owned(), trip.ticket()).await
    }
}

impl Rules {
    /// The highest role of the user's groups; `None` when groups assign no roles.
    fn role_of(&self, groups: &[String]) -> Result<Option<Role>, Denial> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        let roles =
            self.groups.iter().filter(|(group, _)| groups.contains(group)).map(|(_, role)| *role);
        roles.max().map(Some).ok_or(Denial::NoRole)
    }

    /// Whether users with this address need no invitation. An address that cannot be a user name
    /// needs one, since an invitation carries a name.
    fn admit(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.domains.iter().any(|admitted| is_same(admitted, domain))
            && problem_of_name(email).is_none()
    }
}

/// Whether two addresses are equal. Case is folded for ASCII alone: folding other letters would
/// make addresses of strangers equal.
fn is_same(one: &str, other: &str) -> bool {
    !one.is_empty() && one.eq_ignore_ascii_case(other)
}

impl Accounts {
    /// Signs in the user whom the provider confirms. No address is limited here: only a browser
    /// that left for the provider comes back with its trip, and the provider limits guessing.
    pub async fn finish_trip(
        &self,
        openid: &OpenId,
        trip: &Trip,
        answer: ProviderAnswer<'_>,
        origin: &Origin,
    ) -> Result<Admission, Denial> {
        let identity = openid.identify(trip, answer).await.map_err(Denial::Provider)?;
        self.sign_in_by(&identity, &openid.rules, origin).await
    }

    /// Signs in the user whom the provider has confirmed.
    async fn sign_in_by(
        &self,
        identity: &Identity,
        rules: &Rules,
        origin: &Origin,
    ) -> Result<Admission, Denial> {
        match self.user_by(identity, rules, origin).await {
            Ok(user) => Ok(self.admit(&user, origin, BY_OPENID).await?),
            Err(denial) => {
                let details =
                    json!({ "with": "openid", "openid": identity.openid, "email": identity.email });
                let entry =
                    self.entry_of("nobody", "an unknown person", origin, "session.begin", &details);
                self.audit.keep(Entry { outcome: denial.outcome().to_owned(), ..entry }).await;
                Err(denial)
            }
        }
    }

    async fn user_by(
        &self,
        identity: &Identity,
        rules: &Rules,
        origin: &Origin,
    ) -> Result<User, Denial> {
        let role = rules.role_of(&identity.groups)?;
        let user = match self.people.user_of_openid(&identity.openid).await? {
            Some(user) => user,
            None => self.bound(identity, rules, role, origin).await?,
        };
        if !user.may_sign_in() {
            return Err(Denial::Disabled);
        }

        let Some(role) = role.filter(|role| *role != user.role) else {
            return Ok(user);
        };
        self.write_down(
            &user.name,
            origin,
            "person.role",
            json!({ "role": role.name(), "by": "openid" }),
        )
        .await?;
        Ok(self.people.change_user(user.id, UserChange::Role(role)).await?)
    }

    /// The account of a user who comes from the provider for the first time.
    async fn bound(
        &self,
        identity: &Identity,
        rules: &Rules,
        role: Option<Role>,
        origin: &Origin,
    ) -> Result<User, Denial> {
        let email = identity.email.as_str();
        if !identity.is_email_verified || email.is_empty() {
            return Err(Denial::Unverified);
        }

        if let Some(user) = self.invited(identity, origin).await? {
            return Ok(user);
        }
        let users = self.people.users().await?;
        let with_address: Vec<&User> =
            users.iter().filter(|user| is_same(&user.email, email)).collect();
        match with_address.as_slice() {
            [user] if user.openid.is_empty() && user.may_sign_in() => {
                self.write_down(
                    &user.name,
                    origin,
                    "person.bind",
                    json!({ "openid": identity.openid }),
                )
                .await?;
                let change = UserChange::OpenId(identity.openid.clone());
                Ok(self.people.change_user(user.id, change).await?)
            }
            [user] if user.openid.is_empty() => Err(Denial::Disabled),
            [] if rules.admit(email) => {
                let role = role.unwrap_or(rules.role);

                // Otherwise the first arrival would use up the link of the first administrator.
                if users.is_empty() && role != Role::Admin {
                    return Err(Denial::NobodyYet);
                }
                self.added(identity, role, origin).await
            }
            [] => Err(Denial::NotInvited(email.to_owned())),
            _ => Err(Denial::Contested(email.to_owned())),
        }
    }

    /// Uses an invitation for this address.
    async fn invited(&self, identity: &Identity, origin: &Origin) -> Result<Option<User>, Denial> {
        let now_s = self.clock.now_s();
        let invitations = self.people.invitations().await?;
        let found = invitations.into_iter().find(|invitation| {
            is_same(&invitation.email, &identity.email)
                && !invitation.name.is_empty()
                && now_s < invitation.expires_at
        });

        let Some(invitation) = found else {
            return Ok(None);
        };
        self.write_down(
            &invitation.name,
            origin,
            "person.bind",
            json!({ "openid": identity.openid }),
        )
        .await?;

        let new = self.new_user(&invitation.name, identity, invitation.role);
        Ok(Some(self.people.accept(invitation.hash, new).await?))
    }

    /// Adds a user of an admitted domain. The name is the address, which is unique; a name chosen
    /// at the provider could be another person's.
    async fn added(
        &self,
        identity: &Identity,
        role: Role,
        origin: &Origin,
    ) -> Result<User, Denial> {
        let email = identity.email.as_str();
        let details = json!({ "openid": identity.openid, "role": role.name() });
        self.write_down(email, origin, "person.add", details).await?;
        match self.people.add_user(self.new_user(email, identity, role)).await {
            Err(people::Error::NameTaken(name)) => Err(Denial::Contested(name)),
            added => Ok(added?),
        }
    }

    fn new_user(&self, name: &str, identity: &Identity, role: Role) -> NewUser {
        let name = name.to_owned();
        let email = identity.email.clone();
        let openid = identity.openid.clone();
        NewUser { name, email, role, password: String::new(), openid, at_s: self.clock.now_s() }
    }

    /// A change that cannot be recorded is not made.
    async fn write_down(
        &self,
        name: &str,
        origin: &Origin,
        verb: &str,
        details: Json,
    ) -> Result<(), people::Error> {
        self.people
            .record(self.entry_of(name, &format!("person {name}"), origin, verb, &details))
            .await
    }

    fn entry_of(
        &self,
        who: &str,
        object: &str,
        origin: &Origin,
        verb: &str,
        details: &Json,
    ) -> Entry {
        let object = object.to_owned();
        let details = details.to_string();
        Entry { object, details, ..self.entry(who, origin, verb) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(domains: &[&str], groups: &[(&str, Role)]) -> Rules {
        Rules {
            label: "Sign in with rain".to_owned(),
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
            role: Role::Viewer,
            groups: groups.iter().map(|(group, role)| ((*group).to_owned(), *role)).collect(),
        }
    }

    #[test]
    fn a_domain_is_all_that_follows_the_last_sign() {
        let rules = rules(&["rain.example"], &[]);
        for fine in ["zoe@rain.example", "ZOE@Rain.Example", "a@evil.example@rain.example"] {
            assert!(rules.admit(fine), "{fine}");
        }

        for foreign in [
            "",
            "rain.example",
            "zoe@evil.example",
            "zoe@rain.example.evil.example",
            "zoe@notrain.example",
            "zoe@sub.rain.example",
            "zoe@rain.example@evil.example",
            "<zoe>@rain.example",
        ] {
            assert!(!rules.admit(foreign), "{foreign}");
        }

        assert!(!self::rules(&[], &[]).admit("zoe@rain.example"));
    }

    #[test]
    fn the_highest_role_of_all_groups_holds() {
        let rules =
            rules(&[], &[("team", Role::Viewer), ("ops", Role::Admin), ("devs", Role::Editor)]);
        let role = |groups: &[&str]| {
            rules.role_of(&groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(role(&["team", "devs"]), Ok(Some(Role::Editor)));
        assert_eq!(role(&["ops", "team", "others"]), Ok(Some(Role::Admin)));
        for none in [&[][..], &["others"], &["OPS"]] {
            assert_eq!(role(none), Err(Denial::NoRole));
        }
        assert_eq!(self::rules(&[], &[]).role_of(&[]), Ok(None));
    }

    #[test]
    fn only_ascii_has_two_cases() {
        assert!(is_same("Zoe@Rain.example", "zoe@rain.EXAMPLE"));
        // The sign of kelvin becomes a k in lower case.
        assert!(!is_same("kim@rain.example", "\u{212a}im@rain.example"));
        assert!(!is_same("", ""));
    }
}
