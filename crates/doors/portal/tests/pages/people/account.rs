//! Changing one's own password.

use crate::browser::PASSWORD;
use crate::world::World;
use axum::http::StatusCode;
use raingauge_ports::people::Filter;

#[tokio::test]
async fn a_new_password_needs_the_old_one_and_ends_other_sessions() {
    let world = World::closed();
    let link = world.portal.accounts.invite_first().await.unwrap().unwrap();
    let (mut one, mut other) = (world.browser(), world.browser());
    one.follow_link(&link, "zoe").await;
    other.sign_in("zoe", PASSWORD).await.leads_to("/");

    let new = "other words of snow";
    for (current, password, again, problem) in [
        ("four words of hail", new, new, "This is not your password"),
        (PASSWORD, new, "other words of hail", "The two passwords differ"),
        (PASSWORD, "short", "short", "at least 10 characters"),
    ] {
        let fields = [("current", current), ("password", password), ("again", again)];
        let page = one.post("/account/password", &fields).await;
        page.is(StatusCode::UNPROCESSABLE_ENTITY).shows(problem).lacks(current).lacks(again);
    }

    other.get("/account").await.is(StatusCode::OK);
    let fields = [("current", PASSWORD), ("password", new), ("again", new)];
    one.post("/account/password", &fields).await.leads_to("/account?note=password");
    one.get("/account?note=password").await.is(StatusCode::OK).shows("The password is changed");
    other.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    world.browser().sign_in("zoe", PASSWORD).await.is(StatusCode::UNPROCESSABLE_ENTITY);
    world.browser().sign_in("zoe", new).await.leads_to("/");

    let entries = world
        .people
        .entries(Filter { verb: "person.password".to_owned(), ..Filter::default() })
        .await
        .unwrap();

    assert!(entries.iter().any(|entry| entry.outcome == "done" && entry.who == "zoe"));
    let everything = format!("{:?}", world.people.entries(Filter::default()).await.unwrap());
    assert!(!everything.contains(new) && !everything.contains(PASSWORD), "{everything}");
}
