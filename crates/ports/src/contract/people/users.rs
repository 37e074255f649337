//! The contract of users and invitations.

use super::super::catalog::at_once;
use super::{AWKWARD, HOUR_S, NOW_S, hash, invitation, new_user, session, token};
use crate::people::{
    ApiToken, Entry, Error, Filter, Invitation, Invitations, NewUser, People, User, UserChange,
    Users,
};
use raingauge_core::access::Role;

async fn add(people: &dyn Users, name: &str, role: Role) -> User {
    people.add_user(new_user(name, role)).await.unwrap()
}

pub async fn nobody_is_there_at_first(people: &dyn People) {
    assert_eq!(people.users().await.unwrap(), []);
    assert_eq!(people.user_called("zoe").await.unwrap(), None);
    assert_eq!(people.user_of_openid("").await.unwrap(), None);
    assert_eq!(people.invitations().await.unwrap(), []);
    assert_eq!(people.session(hash(1)).await.unwrap(), None);
    assert_eq!(people.sessions(1).await.unwrap(), []);
    assert_eq!(people.tokens().await.unwrap(), []);
    assert_eq!(people.entries(Default::default()).await.unwrap(), []);
    assert_eq!(people.revision().await.unwrap(), 0);
    assert_eq!(people.change_user(1, UserChange::Enabled).await, Err(Error::NotFound("person")));
}

pub async fn a_user_comes_back_whole(people: &dyn People) {
    let [name, email, password, openid] =
        ["name", "email", "password", "openid"].map(|field| format!("{field} {AWKWARD}"));
    let new =
        NewUser { name, email, role: Role::Editor, password, openid: openid.clone(), at_s: NOW_S };
    let added = people.add_user(new.clone()).await.unwrap();
    let NewUser { name, email, role, password, .. } = new;
    let (signed_in_at, disabled_at) = (None, None);
    let whole = User {
        id: 1,
        name,
        email,
        role,
        password,
        openid,
        created_at: NOW_S,
        signed_in_at,
        disabled_at,
    };

    assert_eq!(added, whole);
    assert_eq!(people.users().await.unwrap(), std::slice::from_ref(&whole));
    assert_eq!(people.user_called(&whole.name).await.unwrap().as_ref(), Some(&whole));

    let openid = whole.openid.clone();
    assert_eq!(people.user_of_openid(&openid).await.unwrap(), Some(whole));

    for another in
        ["another", &openid.to_uppercase(), &format!("{openid} "), &openid[..openid.len() - 1]]
    {
        assert_eq!(people.user_of_openid(another).await.unwrap(), None, "{another}");
    }
}

pub async fn names_differ_in_more_than_case(people: &dyn People) {
    add(people, "Zoë", Role::Viewer).await;
    add(people, "max", Role::Viewer).await;
    assert_eq!(people.user_called("ZOË").await.unwrap().unwrap().name, "Zoë");
    for taken in ["Zoë", "zoë", "ZOË", "MAX"] {
        let refused = people.add_user(new_user(taken, Role::Viewer)).await;
        assert_eq!(refused, Err(Error::NameTaken(taken.to_owned())));
    }
    // A name that only looks alike belongs to another user.
    add(people, "zoe", Role::Viewer).await;
    let names: Vec<String> =
        people.users().await.unwrap().into_iter().map(|user| user.name).collect();
    assert_eq!(names, ["max", "zoe", "Zoë"]);
}

pub async fn changes_are_kept(people: &dyn People) {
    add(people, "root", Role::Admin).await;
    let user = add(people, "zoe", Role::Viewer).await;
    let change = async |change| people.change_user(user.id, change).await.unwrap();
    assert_eq!(change(UserChange::Role(Role::Editor)).await.role, Role::Editor);
    assert_eq!(change(UserChange::Password("new".to_owned())).await.password, "new");
    assert_eq!(change(UserChange::OpenId("issuer 7".to_owned())).await.openid, "issuer 7");
    assert_eq!(change(UserChange::Disabled(NOW_S + 1)).await.disabled_at, Some(NOW_S + 1));
    assert_eq!(change(UserChange::Disabled(NOW_S + 2)).await.disabled_at, Some(NOW_S + 1));

    let changed = User {
        role: Role::Editor,
        password: "new".to_owned(),
        openid: "issuer 7".to_owned(),
        disabled_at: Some(NOW_S + 1),
        ..user.clone()
    };

    assert_eq!(people.user_called("zoe").await.unwrap(), Some(changed.clone()));
    assert_eq!(change(UserChange::Enabled).await, User { disabled_at: None, ..changed });
}

pub async fn an_administrator_stays(people: &dyn People) {
    let first = add(people, "first", Role::Admin).await;
    let change = async |user: &User, change| people.change_user(user.id, change).await;
    for refused in [UserChange::Role(Role::Editor), UserChange::Disabled(NOW_S)] {
        assert_eq!(change(&first, refused).await, Err(Error::LastAdmin));
    }
    let second = add(people, "second", Role::Admin).await;
    change(&second, UserChange::Disabled(NOW_S)).await.unwrap();
    // A disabled user is no administrator.
    assert_eq!(change(&first, UserChange::Role(Role::Viewer)).await, Err(Error::LastAdmin));
    change(&second, UserChange::Enabled).await.unwrap();
    assert_eq!(change(&first, UserChange::Role(Role::Viewer)).await.unwrap().role, Role::Viewer);
}

pub async fn of_two_administrators_who_remove_each_other_one_stays(people: &dyn People) {
    let (one, other) =
        (add(people, "one", Role::Admin).await, add(people, "other", Role::Admin).await);
    let removing =
        [&one, &other].map(|user| people.change_user(user.id, UserChange::Role(Role::Viewer)));
    let answers = at_once(removing.into()).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    let users = people.users().await.unwrap();
    assert_eq!(users.iter().filter(|user| user.role == Role::Admin).count(), 1);
}

pub async fn a_link_is_good_once(people: &dyn People) {
    let sent = invitation(1, "zoe", Role::Editor);
    people.invite(sent.clone()).await.unwrap();
    people.invite(invitation(2, "ZOE", Role::Admin)).await.unwrap();
    people.invite(invitation(3, "max", Role::Viewer)).await.unwrap();
    assert_eq!(people.invitations().await.unwrap()[2], sent);
    assert_eq!(people.accept(hash(9), new_user("zoe", Role::Admin)).await, Err(Error::LinkSpent));

    // Name and role come from the link, whatever the request says.
    let user = people.accept(hash(1), new_user("mallory", Role::Admin)).await.unwrap();
    assert_eq!(
        (&*user.name, user.role, &*user.password),
        ("zoe", Role::Editor, "$argon2id$ of mallory")
    );
    assert_eq!(people.users().await.unwrap(), [user]);

    for spent in [1, 2] {
        assert_eq!(
            people.accept(hash(spent), new_user("zoe", Role::Admin)).await,
            Err(Error::LinkSpent)
        );
    }

    assert_eq!(people.invitations().await.unwrap(), [invitation(3, "max", Role::Viewer)]);
    people.withdraw(hash(3)).await.unwrap();
    assert_eq!(people.accept(hash(3), new_user("max", Role::Viewer)).await, Err(Error::LinkSpent));

    let answers = {
        people.invite(invitation(4, "eve", Role::Viewer)).await.unwrap();
        at_once((0..4).map(|_| people.accept(hash(4), new_user("eve", Role::Viewer))).collect())
            .await
    };
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
}

pub async fn a_link_for_a_known_person_sets_a_new_password(people: &dyn People) {
    let root = add(people, "root", Role::Admin).await;
    let zoe = add(people, "zoe", Role::Viewer).await;
    people.open_session(session(1, &zoe)).await.unwrap();
    people.open_session(session(2, &root)).await.unwrap();
    people.change_user(zoe.id, UserChange::Disabled(NOW_S)).await.unwrap();
    people.invite(invitation(1, "Zoe", Role::Editor)).await.unwrap();

    let new = NewUser { password: "another".to_owned(), ..new_user("zoe", Role::Admin) };
    let back = people.accept(hash(1), new).await.unwrap();
    let expected = User {
        role: Role::Editor,
        password: "another".to_owned(),
        disabled_at: None,
        ..zoe.clone()
    };

    assert_eq!(back, User { signed_in_at: back.signed_in_at, ..expected });
    assert_eq!(people.sessions(zoe.id).await.unwrap(), []);
    assert_eq!(people.sessions(root.id).await.unwrap().len(), 1);

    // A link cannot demote the last administrator.
    people.invite(invitation(3, "root", Role::Viewer)).await.unwrap();
    assert_eq!(people.accept(hash(3), new_user("root", Role::Viewer)).await, Err(Error::LastAdmin));
    assert_eq!(people.user_called("root").await.unwrap().unwrap().role, Role::Admin);
}

pub async fn a_link_with_an_address_sets_it(people: &dyn People) {
    let zoe = add(people, "zoe", Role::Viewer).await;
    let email = "zoe@rain.example".to_owned();
    people
        .invite(Invitation { email: email.clone(), ..invitation(1, "zoe", Role::Viewer) })
        .await
        .unwrap();

    let openid = "issuer 7".to_owned();
    let new = NewUser {
        openid,
        password: String::new(),
        email: "mallory@example.com".to_owned(),
        ..new_user("zoe", Role::Viewer)
    };

    let changed = people.accept(hash(1), new).await.unwrap();
    assert_eq!((&changed.email, &*changed.openid, &*changed.password), (&email, "issuer 7", ""));
    assert_eq!(people.user_of_openid("issuer 7").await.unwrap(), Some(changed));

    // A link without an address keeps the old one, and a password replaces the identity.
    people.invite(invitation(2, "zoe", Role::Viewer)).await.unwrap();
    let back = people.accept(hash(2), new_user("zoe", Role::Viewer)).await.unwrap();
    assert_eq!(back, User { email, password: "$argon2id$ of zoe".to_owned(), ..zoe });
    assert_eq!(people.user_of_openid("issuer 7").await.unwrap(), None);
}

pub async fn the_first_link_is_spent_with_the_first_user(people: &dyn People) {
    for number in [1, 2] {
        people.invite(invitation(number, "", Role::Admin)).await.unwrap();
    }
    let first = people.accept(hash(1), new_user("zoe", Role::Viewer)).await.unwrap();
    assert_eq!((&*first.name, first.role), ("zoe", Role::Admin));
    assert_eq!(people.accept(hash(2), new_user("max", Role::Admin)).await, Err(Error::LinkSpent));
    people.invite(invitation(3, "", Role::Admin)).await.unwrap();
    assert_eq!(people.accept(hash(3), new_user("max", Role::Admin)).await, Err(Error::LinkSpent));
}

pub async fn a_link_ends(people: &dyn Invitations) {
    people.invite(invitation(1, "zoe", Role::Viewer)).await.unwrap();
    let late = NewUser { at_s: NOW_S + 24 * HOUR_S, ..new_user("zoe", Role::Viewer) };
    assert_eq!(people.accept(hash(1), late.clone()).await, Err(Error::LinkSpent));
    people.accept(hash(1), NewUser { at_s: late.at_s - 1, ..late }).await.unwrap();
}

pub async fn a_removed_person_is_forgotten(people: &dyn People) {
    assert!(!people.has_users().await.unwrap());
    let root = add(people, "root", Role::Admin).await;
    let zoe = add(people, "zoe", Role::Editor).await;
    assert!(people.has_users().await.unwrap());
    people.open_session(session(1, &zoe)).await.unwrap();
    people.invite(invitation(1, "Zoe", Role::Editor)).await.unwrap();
    people.invite(invitation(2, "max", Role::Editor)).await.unwrap();
    assert_eq!(people.invitation(hash(1)).await.unwrap(), Some(invitation(1, "Zoe", Role::Editor)));
    people.add_token(ApiToken { created_by: "zoe".to_owned(), ..token(3, "shop") }).await.unwrap();

    let wrote = |who: &str, object: &str, details: &str| Entry {
        at_s: NOW_S,
        who: who.to_owned(),
        address: "192.0.2.7".to_owned(),
        object: object.to_owned(),
        details: details.to_owned(),
        ..Entry::default()
    };

    people.record(wrote("zoe", "counter 34", "{\"version\":1}")).await.unwrap();
    people.record(wrote("root", "person zoe", "{\"email\":\"zoe@example.com\"}")).await.unwrap();
    people.record(wrote("root", "person zoey", "{\"email\":\"zoey@example.com\"}")).await.unwrap();

    assert_eq!(people.remove_user(zoe.id).await, Err(Error::NotDisabled));
    let zoe = people.change_user(zoe.id, UserChange::Disabled(NOW_S)).await.unwrap();
    let revision = people.revision().await.unwrap();
    let removed = people.remove_user(zoe.id).await.unwrap();

    assert_eq!((&removed.user.name, people.users().await.unwrap()), (&zoe.name, vec![root]));
    assert!(people.revision().await.unwrap() > revision);
    assert_eq!(people.remove_user(zoe.id).await, Err(Error::NotFound("person")));
    assert_eq!(people.session(hash(1)).await.unwrap(), None);
    assert_eq!(people.invitation(hash(1)).await.unwrap(), None);
    assert!(people.invitation(hash(2)).await.unwrap().is_some());
    assert_eq!(people.tokens().await.unwrap()[0].created_by, removed.pseudonym);

    let entries = people.entries(Filter::default()).await.unwrap();
    let kept: Vec<[&str; 4]> = entries
        .iter()
        .map(|entry| [&*entry.who, &*entry.address, &*entry.object, &*entry.details])
        .collect();
    let expected = [
        ["root", "192.0.2.7", "person zoey", "{\"email\":\"zoey@example.com\"}"],
        ["root", "192.0.2.7", &removed.pseudonym, "{}"],
        [&removed.pseudonym, "", "counter 34", "{\"version\":1}"],
    ];
    assert_eq!(kept, expected);
}
