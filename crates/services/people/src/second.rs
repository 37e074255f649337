//! Four eyes: who may let a draft take effect that others wrote.

use super::accounts::Accounts;
use crate::Principal;
use raingauge_ports::drafts::Draft;
use raingauge_ports::people::{Error, User};

/// Why somebody is no second person for a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSecond {
    /// They wrote a part of it.
    Wrote,
    /// Nothing tells their account from that of this contributor: both may be one human's.
    MayBe(String),
}

impl Accounts {
    /// Whether this person may approve a draft: nobody who wrote a part of it, under any account,
    /// may.
    pub async fn is_second(
        &self,
        principal: &Principal,
        draft: &Draft,
    ) -> Result<Result<(), NotSecond>, Error> {
        let writers = draft.writers();
        if writers.contains(&&*principal.name) {
            return Ok(Err(NotSecond::Wrote));
        }

        let Some(own) = self.people.user_called(&principal.name).await? else {
            return Ok(Ok(()));
        };
        for writer in writers {
            let theirs = self.people.user_called(writer).await?;
            if theirs.is_some_and(|theirs| may_be_one(&own, &theirs)) {
                return Ok(Err(NotSecond::MayBe(writer.to_owned())));
            }
        }

        Ok(Ok(()))
    }
}

/// Whether two accounts may be one human's. A provider makes an account for an address that nobody
/// has yet, so an account without an address may be that of the same human.
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
    fn accounts_of_two_humans_can_be_told_apart() {
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
