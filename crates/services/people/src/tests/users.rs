//! What an administrator does with accounts and tokens.

use super::{HOUR_S, House, NOW_S};
use crate::AccountError;
use crate::audit::AuditAction;
use crate::invitations::{FIRST_INVITATION_S, INVITATION_S};
use crate::tokens::TokenRequest;
use raingauge_core::access::{Role, Scope};
use raingauge_ports::people::Error;

fn written(action: &AuditAction) -> (&str, &str, String) {
    (&action.verb, &action.object, action.details.to_string())
}

#[tokio::test]
async fn an_account_goes_from_invitation_to_removal() {
    let house = House::with_root().await;
    let session = house.with("zoe", Role::Viewer).await;
    let id = house.id_of("zoe").await;

    let changed = house.accounts.change_role(id, Role::Editor).await.unwrap();
    let expected = ("person.role", "person zoe", r#"{"role":"editor"}"#.to_owned());
    assert_eq!(written(&changed), expected);
    assert_eq!(house.principal(&session).await.expect("signed in").role(), Some(Role::Editor));

    assert_eq!(house.accounts.remove(id).await, Err(Error::NotDisabled));
    let (disabled, tokens) = house.accounts.disable(id).await.unwrap();
    assert_eq!((written(&disabled).0, tokens), ("person.disable", 0));
    assert_eq!(house.principal(&session).await, None);

    house.accounts.enable(id).await.unwrap();
    house.accounts.disable(id).await.unwrap();

    let removed = house.accounts.remove(id).await.unwrap();
    assert!(!removed.object.contains("zoe"), "{}", removed.object);

    let again = house.accounts.sign_out_everywhere(id).await;
    assert_eq!(again, Err(Error::NotFound("person")));
}

#[tokio::test]
async fn a_link_is_good_until_it_is_used_withdrawn_or_expired() {
    let house = House::with_root().await;
    house.invite("zoe", "", Role::Viewer).await;

    let open = house.accounts.open_invitations().await.unwrap();
    let [open] = open.as_slice() else { panic!("one invitation is open") };
    let withdrawn = house.accounts.withdraw(open.hash).await.unwrap();
    assert_eq!(written(&withdrawn).1, "person zoe");

    let again = house.accounts.withdraw(open.hash).await;
    assert_eq!(again, Err(Error::NotFound("invitation")));

    let path = house.invite("zoe", "", Role::Viewer).await;
    house.clock.set_s(NOW_S + INVITATION_S);
    assert!(house.accounts.open_invitations().await.unwrap().is_empty());

    let late = house.accept(&path, "").await;
    assert_eq!(late.err(), Some(AccountError::Store(Error::LinkSpent)));
}

#[tokio::test]
async fn the_link_of_the_first_administrator_is_good_for_an_hour() {
    assert_eq!(FIRST_INVITATION_S, HOUR_S);
    let house = House::empty();
    let path = house.accounts.invite_first().await.unwrap().expect("nobody is there yet");
    house.clock.set_s(NOW_S + HOUR_S);
    let late = house.accept(&path, "root").await;
    assert_eq!(late.err(), Some(AccountError::Store(Error::LinkSpent)));
    house.clock.set_s(NOW_S + HOUR_S - 1);
    assert!(house.accept(&path, "root").await.is_ok());
}

#[tokio::test]
async fn the_last_administrator_stays_one() {
    let house = House::with_root().await;
    let id = house.id_of("root").await;
    assert_eq!(house.accounts.change_role(id, Role::Viewer).await, Err(Error::LastAdmin));
    assert_eq!(house.accounts.disable(id).await, Err(Error::LastAdmin));
}

#[tokio::test]
async fn a_disabled_person_leaves_tokens_to_decide_about() {
    let house = House::with_root().await;
    house.with("zoe", Role::Admin).await;

    let request = || {
        let scopes = [Scope::CountsRead].into_iter().collect();
        TokenRequest { name: "shop".to_owned(), scopes, lifetime_s: Some(60) }
    };
    let made = house.accounts.create_token(request(), "zoe").await.unwrap();
    let expected = r#"{"expiresAt":1727215260,"scopes":["counts:read"]}"#;
    assert_eq!(written(&made.action), ("token.create", "token shop", expected.to_owned()));

    let twin = house.accounts.create_token(request(), "root").await;
    assert!(matches!(twin, Err(AccountError::Field("name", _))));

    let (_, tokens) = house.accounts.disable(house.id_of("zoe").await).await.unwrap();
    assert_eq!(tokens, 1);

    let tokens = house.accounts.tokens().await.unwrap();
    let [token] = tokens.as_slice() else { panic!("one token") };
    let revoked = house.accounts.revoke_token(token.id).await.unwrap();
    assert_eq!(written(&revoked).1, "token shop");
    house.accounts.create_token(request(), "root").await.unwrap();
}
