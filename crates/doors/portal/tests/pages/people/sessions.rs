//! Sessions: what begins and ends them.

use crate::browser::PASSWORD;
use crate::world::World;
use axum::http::{Method, StatusCode, header};
use raingauge_core::access::Role;
use raingauge_people::secrets::{hash_of, new_secret};
use raingauge_ports::people::UserChange;

#[tokio::test]
async fn signing_in_begins_a_new_session_whatever_the_browser_had() {
    let world = World::closed();
    let link = world.portal.accounts.invite_first().await.unwrap().unwrap();
    let mut browser = world.browser();

    // Someone put a cookie into the browser before.
    let planted = new_secret();
    browser.cookie = Some(format!("raingauge_session={planted}"));

    let page = browser.follow_link(&link, "zoe").await;
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(
        !cookie.contains(&planted) && cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    assert_eq!(world.people.session(hash_of(&planted)).await.unwrap(), None);

    let first = browser.cookie.clone();
    browser.sign_in("zoe", PASSWORD).await.leads_to("/");
    assert_ne!(browser.cookie, first);

    // The session before is over, and not only forgotten.
    browser.cookie = first;
    browser.get("/account").await.leads_to("/sign-in?next=%2Faccount");
}

#[tokio::test]
async fn a_person_ends_their_own_sessions() {
    let world = World::closed();
    let user = world.user("zoe", Role::Viewer).await;
    let mut browsers = [
        world.browser_of(&user).await,
        world.browser_of(&user).await,
        world.browser_of(&user).await,
    ];

    let mut max = world.signed_in("max", Role::Viewer).await;
    let [one, second, third] = &mut browsers;
    let session = |cookie: &Option<String>| {
        let secret =
            cookie.as_deref().and_then(|cookie| cookie.split_once('=')).unwrap().1.to_owned();
        hex::encode(hash_of(&secret))
    };

    one.get("/account")
        .await
        .shows("this session")
        .shows(&session(&second.cookie))
        .shows("End all other sessions");

    // Another person's session is none of theirs.
    let of_max = session(&max.cookie);
    one.post("/account/sessions/end", &[("session", &of_max)]).await.is(StatusCode::NOT_FOUND);
    one.post("/account/sessions/end", &[("session", "zz")]).await.is(StatusCode::NOT_FOUND);

    let of_second = session(&second.cookie);
    one.post("/account/sessions/end", &[("session", &of_second)])
        .await
        .leads_to("/account?note=session-ended");
    second.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    third.get("/account").await.is(StatusCode::OK);
    one.post("/account/sessions/end", &[]).await.leads_to("/account?note=session-ended");
    third.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    one.get("/account").await.is(StatusCode::OK);
    max.get("/account").await.is(StatusCode::OK);
}

#[tokio::test]
async fn a_change_of_a_person_holds_at_once() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    let zoe = world.user("zoe", Role::Viewer).await;
    let mut browser = world.browser_of(&zoe).await;

    browser.get("/people").await.is(StatusCode::FORBIDDEN).shows("Ask root");
    admin.post("/people/2/role", &[("role", "admin")]).await.leads_to("/people?note=role");
    browser.get("/people").await.is(StatusCode::OK);
    admin.post("/people/2/sign-out", &[]).await.leads_to("/people?note=signed-out");
    browser.get("/account").await.leads_to("/sign-in?next=%2Faccount");

    let mut browser = world.browser_of(&zoe).await;
    browser.get("/account").await.is(StatusCode::OK);
    admin.post("/people/2/disable", &[]).await.leads_to("/people?note=disabled");
    browser.get("/account").await.leads_to("/sign-in?next=%2Faccount");

    // Even a session that was left over opens nothing.
    let mut browser = world.browser_of(&zoe).await;
    browser.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    world.people.change_user(zoe.id, UserChange::Enabled).await.unwrap();
    browser.get("/account").await.is(StatusCode::OK);
}

#[tokio::test]
async fn a_part_of_a_page_sends_the_whole_page_to_sign_in() {
    let world = World::closed();
    world.user("zoe", Role::Viewer).await;

    let headers = [("hx-request", "true"), ("hx-current-url", "http://rain.test:8080/audit?who=a")];
    let answer = world.browser().send(Method::GET, "/account", &headers, "").await;
    assert_eq!(
        answer.is(StatusCode::UNAUTHORIZED).headers["hx-redirect"],
        "/sign-in?next=%2Faudit%3Fwho%3Da"
    );

    world
        .browser()
        .post("/account/password", &[])
        .await
        .is(StatusCode::UNAUTHORIZED)
        .shows("Sign in, and repeat it");
}
