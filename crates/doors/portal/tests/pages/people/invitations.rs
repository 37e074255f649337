//! The page of people, and their one-time links.

use crate::browser::{HOST, PASSWORD};
use crate::world::{NOW_S, World};
use axum::http::StatusCode;
use raingauge_core::access::Role;

#[tokio::test]
async fn an_administrator_invites_a_person_by_a_link_that_is_shown_once() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    admin.get("/people").await.is(StatusCode::OK).shows("(you)").shows("Every link was used");

    let fields = [("name", "max"), ("email", "max@example.com"), ("role", "editor")];
    let page = admin.post("/people/invite", &fields).await;
    let link = page.is(StatusCode::OK).found(&format!("http://{HOST}/welcome/"));
    let path = link.strip_prefix(&format!("http://{HOST}")).unwrap().to_owned();
    let secret = path.strip_prefix("/welcome/").unwrap();

    admin.get("/people").await.shows("max").shows("by root").lacks(secret);
    let mut max = world.browser();
    max.get(&path).await.is(StatusCode::OK).shows("invited as <b>max</b>").shows("editor");

    // The link says who it is for: another name that is sent along is passed over.
    max.follow_link(&path, "root").await.leads_to("/?note=welcome");
    max.get("/people").await.is(StatusCode::FORBIDDEN).shows("It needs the role admin");

    let user = world.people.user_called("max").await.unwrap().unwrap();
    assert_eq!((user.role, &*user.email), (Role::Editor, "max@example.com"));
    max.get(&path).await.is(StatusCode::GONE);
}

#[tokio::test]
async fn problems_of_an_invitation_are_shown_beside_the_field() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    for (name, email, problem) in [
        ("", "", "Give a name"),
        ("a;b", "", "A name has letters"),
        ("max", "nowhere", "This is not an e-mail address"),
    ] {
        let page = admin
            .post("/people/invite", &[("name", name), ("email", email), ("role", "viewer")])
            .await;
        page.is(StatusCode::UNPROCESSABLE_ENTITY).shows(problem);
    }

    admin
        .post("/people/invite", &[("name", "max"), ("role", "king")])
        .await
        .is(StatusCode::BAD_REQUEST);
    assert_eq!(world.people.invitations().await.unwrap(), []);
}

#[tokio::test]
async fn links_are_withdrawn_and_expire() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    let mut link = async |name: &str| {
        let page = admin.post("/people/invite", &[("name", name), ("role", "viewer")]).await;
        page.found(&format!("http://{HOST}/welcome/")).replace(&format!("http://{HOST}"), "")
    };
    let max = link("max").await;
    let eve = link("eve").await;

    let of_max = world
        .people
        .invitations()
        .await
        .unwrap()
        .into_iter()
        .find(|found| found.name == "max")
        .unwrap();

    let hash = hex::encode(of_max.hash);
    admin
        .post("/people/withdraw", &[("invitation", &hash)])
        .await
        .leads_to("/people?note=withdrawn");
    admin.post("/people/withdraw", &[("invitation", &hash)]).await.is(StatusCode::NOT_FOUND);
    world.browser().get(&max).await.is(StatusCode::GONE);
    world.browser().get(&eve).await.is(StatusCode::OK);
    world.clock.set_s(NOW_S + 86_400);
    world.browser().get(&eve).await.is(StatusCode::GONE);
    world.browser().follow_link(&eve, "eve").await.is(StatusCode::GONE);

    for nothing in ["0", "../people", &"0".repeat(64), &"é".repeat(32)] {
        let page =
            world.browser().get(&format!("/welcome/{}", nothing.replace('é', "%C3%A9"))).await;
        assert!(
            [StatusCode::GONE, StatusCode::NOT_FOUND].contains(&page.status),
            "{nothing}: {}",
            page.status
        );
    }
}

#[tokio::test]
async fn a_link_for_a_known_person_gives_a_new_password() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    let zoe = world.user("zoe", Role::Editor).await;
    let mut before = world.browser_of(&zoe).await;
    let page = admin.post("/people/invite", &[("name", "zoe"), ("role", "editor")]).await;
    let path =
        page.found(&format!("http://{HOST}/welcome/")).replace(&format!("http://{HOST}"), "");
    before.get("/account").await.is(StatusCode::OK);
    world.browser().follow_link(&path, "").await.leads_to("/?note=welcome");
    before.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    world.browser().sign_in("zoe", PASSWORD).await.leads_to("/");
}

#[tokio::test]
async fn the_last_administrator_stays() {
    let world = World::closed();
    let mut admin = world.signed_in("root", Role::Admin).await;
    world.user("zoe", Role::Editor).await;
    admin
        .post("/people/1/role", &[("role", "viewer")])
        .await
        .is(StatusCode::CONFLICT)
        .shows("there is no other administrator");
    admin.post("/people/1/disable", &[]).await.is(StatusCode::CONFLICT);
    admin.post("/people/2/role", &[("role", "admin")]).await.leads_to("/people?note=role");
    admin.post("/people/1/role", &[("role", "viewer")]).await.leads_to("/people?note=role");
    admin.get("/people").await.is(StatusCode::FORBIDDEN).shows("you are a viewer. Ask zoe");
    admin.post("/people/2/disable", &[]).await.is(StatusCode::FORBIDDEN);
}
