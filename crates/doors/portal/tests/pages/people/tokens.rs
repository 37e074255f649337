//! The page of API tokens.

use crate::world::{NOW_S, World};
use axum::http::StatusCode;
use raingauge_core::access::Role;
use raingauge_people::secrets::hash_of;

#[tokio::test]
async fn a_token_is_shown_once_and_revoked() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    admin
        .get("/tokens")
        .await
        .is(StatusCode::OK)
        .shows("No token is in use")
        .shows("does not require tokens");

    let fields =
        [("name", "shop"), ("scope", "counts:read"), ("scope", "events:write"), ("expires", "30")];
    let page = admin.post("/tokens", &fields).await;
    let secret = page.is(StatusCode::OK).shows("is not shown again").found("rg_");
    assert_eq!(secret.len(), 67, "{secret}");

    let token = world.people.tokens().await.unwrap().remove(0);
    assert_eq!(token.hash, hash_of(&secret));
    assert_eq!(
        (&*token.name, &*token.created_by, token.expires_at),
        ("shop", "root", Some(NOW_S + 30 * 86_400))
    );
    assert_eq!(token.scopes.to_string(), "events:write,counts:read");
    admin.get("/tokens").await.shows("shop").shows("events:write").lacks("rg_");
    admin.get("/tokens?zone=Asia/Tokyo").await.shows("2024-10-04 21:00</time> Asia/Tokyo");
    admin
        .post("/tokens", &fields)
        .await
        .is(StatusCode::UNPROCESSABLE_ENTITY)
        .shows("Choose another one");
    admin.post("/tokens/1/revoke", &[]).await.leads_to("/tokens?note=revoked");
    admin
        .get("/tokens?note=revoked")
        .await
        .shows("Revoked and expired (1)")
        .shows("The token is revoked");
    admin.post("/tokens", &fields).await.is(StatusCode::OK);
    admin.post("/tokens/9/revoke", &[]).await.is(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn problems_of_a_token_are_shown_beside_the_field() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    let long = "x".repeat(129);

    for (name, scope, expires, problem) in [
        ("", "admin", "", "Give a name"),
        (&*long, "admin", "", "Give a name"),
        ("shop", "sing", "", "Choose what the token is good for"),
        ("shop", "admin", "7", "Choose one of the lifetimes"),
    ] {
        let page =
            admin.post("/tokens", &[("name", name), ("scope", scope), ("expires", expires)]).await;
        page.is(StatusCode::UNPROCESSABLE_ENTITY).shows(problem).lacks("rg_");
    }

    assert_eq!(world.people.tokens().await.unwrap(), []);
    admin
        .post("/tokens", &[("name", "ever"), ("scope", "admin"), ("expires", "")])
        .await
        .is(StatusCode::OK);
    assert_eq!(world.people.tokens().await.unwrap()[0].expires_at, None);
}

#[tokio::test]
async fn tokens_of_people_who_left_are_pointed_out() {
    let world = World::closed();
    let mut root = world.signed_in("root", Role::Admin).await;
    let mut ida = world.signed_in("ida lovelace", Role::Admin).await;
    ida.post("/tokens", &[("name", "shop"), ("scope", "admin"), ("expires", "")])
        .await
        .is(StatusCode::OK);
    root.get("/tokens").await.lacks("makers may not sign in");
    root.post("/people/2/disable", &[]).await.leads_to("/people?note=disabled-tokens");
    root.get("/people?note=disabled-tokens").await.shows("Tokens that they made are still valid");
    root.get("/tokens").await.shows("makers may not sign in any more: <b>shop</b>");

    // Removed for good, the name stands nowhere.
    root.post("/people/1/remove", &[]).await.is(StatusCode::CONFLICT).shows("disable them first");
    root.post("/people/2/remove", &[]).await.leads_to("/people?note=removed");
    root.get("/tokens").await.shows("makers may not sign in any more").lacks("lovelace");
    root.get("/audit").await.shows("person.remove").lacks("lovelace");
    root.post("/tokens/1/revoke", &[]).await.leads_to("/tokens?note=revoked");
    root.get("/tokens").await.lacks("makers may not sign in");
}
