//! The two-person rule: who may approve a draft.

use super::Error;
use raingauge_ports::drafts::Draft;
use raingauge_ports::people::{People, User};

/// The principal who proposes or decides.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    /// The name in drafts, versions and the audit log: that of a person or of a token.
    pub name: &'a str,
    /// The person who acts: a token acts for the person who made it. `None` for a token of the
    /// configuration, which belongs to no person.
    pub person: Option<&'a str>,
}

impl<'a> Actor<'a> {
    /// A person who acts under their own name.
    pub const fn person(name: &'a str) -> Self {
        Self { name, person: Some(name) }
    }

    /// Records that this person, under this name, contributed to a draft.
    pub(super) fn contributes_to(self, draft: Draft) -> Draft {
        let draft = match self.person {
            Some(person) if person != self.name => draft.edited_by(person),
            _ => draft,
        };
        draft.edited_by(self.name)
    }
}

/// Why an actor may not approve a draft.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSecond {
    #[error(
        "Nobody who wrote a part of a draft can approve it: ask another editor, or an administrator."
    )]
    Contributor,
    /// The account cannot be distinguished from that of this contributor: both may belong to one
    /// human.
    #[error(
        "Your account and that of {0} may be one person's: one of them comes from the provider, and \
         the other has no e-mail address, or both have the same. Ask an administrator to invite {0} \
         again with an address."
    )]
    MaybeContributor(String),
    #[error(
        "A token of the configuration belongs to nobody, so it cannot be the second person: approve \
         with a token that a person made in the portal, or on the page of the draft."
    )]
    Nobody,
}

/// Refuses everyone who contributed to a draft, under any name or account.
pub async fn check(people: &dyn People, by: Actor<'_>, draft: &Draft) -> Result<(), Error> {
    let person = by.person.ok_or(NotSecond::Nobody)?;
    let writers = draft.writers();
    if writers.contains(&by.name) || writers.contains(&person) {
        return Err(NotSecond::Contributor.into());
    }

    let Some(own) = people.user_called(person).await? else {
        return Ok(());
    };
    for writer in writers {
        let theirs = people.user_called(writer).await?;
        if theirs.is_some_and(|theirs| may_be_one(&own, &theirs)) {
            return Err(NotSecond::MaybeContributor(writer.to_owned()).into());
        }
    }

    Ok(())
}

/// Whether two accounts may belong to one human. A provider creates an account for an address that
/// no account has yet, so an account without an address may belong to the same human.
fn may_be_one(one: &User, other: &User) -> bool {
    let is_same_address = !one.email.is_empty() && one.email.eq_ignore_ascii_case(&other.email);
    let is_unlinked = |user: &User| user.email.is_empty() && user.openid.is_empty();
    let is_by_provider = |user: &User| !user.openid.is_empty();
    is_same_address
        || is_unlinked(one) && is_by_provider(other)
        || is_by_provider(one) && is_unlinked(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::access::Role;

    #[test]
    fn accounts_of_two_humans_can_be_distinguished() {
        let user = |id, email: &str, openid: &str| {
            let [email, openid] = [email, openid].map(str::to_owned);
            let name = format!("user {id}");
            let password = String::new();
            let role = Role::Editor;

            User {
                id,
                name,
                email,
                role,
                password,
                openid,
                created_at: 0,
                signed_in_at: None,
                disabled_at: None,
            }
        };

        let unlinked = user(1, "", "");
        let [linked, other] = [user(2, "zoe@rain.example", ""), user(3, "max@rain.example", "")];
        let [by_provider, another] =
            [user(4, "Zoe@Rain.example", "i#1"), user(5, "ada@rain.example", "i#2")];

        for (one, two, expected) in [
            (&unlinked, &user(6, "", ""), false),
            (&unlinked, &linked, false),
            (&linked, &other, false),
            (&by_provider, &another, false),
            (&other, &by_provider, false),
            (&unlinked, &by_provider, true),
            (&linked, &by_provider, true),
        ] {
            assert_eq!(
                (may_be_one(one, two), may_be_one(two, one)),
                (expected, expected),
                "{one:?} {two:?}"
            );
        }
    }
}
