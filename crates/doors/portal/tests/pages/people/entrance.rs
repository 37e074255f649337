//! Signing in and out.

use crate::browser::{PASSWORD, options};
use crate::world::World;
use axum::http::{StatusCode, header};
use raingauge_core::access::Role;
use raingauge_people::Options;
use raingauge_people::invitations::{COMMAND_LINE, Invitee};
use raingauge_people::limits::NAME_IN_NETWORK;
use raingauge_ports::people::{Filter, UserChange};

/// A portal with its first administrator, called zoe.
async fn with_zoe(options: Options) -> World {
    let world = World::with(options);
    let link = world.portal.accounts.invite_first().await.unwrap().expect("nobody is there");
    world.browser().follow_link(&link, "zoe").await.leads_to("/?note=welcome");
    world
}

#[tokio::test]
async fn a_first_administrator_is_made_by_a_link_that_is_good_once() {
    let world = World::closed();
    let mut browser = world.browser();
    browser.get("/sign-in").await.is(StatusCode::OK).shows("Nobody can sign in yet");

    let links =
        [world.portal.accounts.invite_first().await, world.portal.accounts.invite_first().await];
    let [earlier, first] = links.map(|link| link.unwrap().expect("nobody is there yet"));
    browser.get(&earlier).await.is(StatusCode::GONE);
    browser.get(&first).await.is(StatusCode::OK).shows("become its administrator");

    for (name, password, again, problem) in [
        ("", PASSWORD, PASSWORD, "Give a name"),
        ("<b>", PASSWORD, PASSWORD, "A name has letters"),
        ("zoe", "short", "short", "Choose at least 10 characters"),
        ("zoe", PASSWORD, "four words of snow", "The two passwords differ"),
        ("zoe", "1234567890", "1234567890", "among the first that are tried"),
        ("zoe", "i am Zoe of rain", "i am Zoe of rain", "It contains your name"),
    ] {
        let page =
            browser.post(&first, &[("name", name), ("password", password), ("again", again)]).await;
        page.is(StatusCode::UNPROCESSABLE_ENTITY).shows(problem).lacks(password);
    }

    browser.follow_link(&first, "zoe").await.leads_to("/?note=welcome");
    browser.get("/?note=welcome").await.is(StatusCode::OK).shows("zoe").shows("admin");

    for spent in [&first, &earlier] {
        world
            .browser()
            .get(spent)
            .await
            .is(StatusCode::GONE)
            .shows("ask an administrator for a new one");
        world.browser().follow_link(spent, "max").await.is(StatusCode::GONE);
    }

    assert_eq!(world.portal.accounts.invite_first().await.unwrap(), None);
    assert_eq!(world.people.users().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_password_opens_the_portal_and_leads_back_to_the_page() {
    let world = with_zoe(options()).await;
    let mut browser = world.browser();
    browser
        .get("/audit?who=zo%C3%AB")
        .await
        .leads_to("/sign-in?next=%2Faudit%3Fwho%3Dzo%25C3%25AB");
    browser.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    browser.get("/sign-in?next=%2Faudit%3Fwho%3Dzo").await.shows("value=\"/audit?who=zo\"");

    let fields = [("name", "ZOE"), ("password", PASSWORD), ("next", "/audit?who=zo")];
    browser.post("/sign-in", &fields).await.leads_to("/audit?who=zo");
    browser.get("/audit").await.is(StatusCode::OK).shows("session.begin");

    // A person who is signed in has nothing to do there.
    browser.get("/sign-in?next=/people").await.leads_to("/people");
    browser.post("/sign-out", &[]).await.leads_to("/sign-in");
    assert_eq!(browser.cookie, None);
    browser.get("/audit").await.leads_to("/sign-in?next=%2Faudit");
}

#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let world = with_zoe(options()).await;
    for foreign in
        ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
    {
        let fields = [("name", "zoe"), ("password", PASSWORD), ("next", foreign)];
        world.browser().post("/sign-in", &fields).await.leads_to("/");
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("next", foreign).finish();
        world.browser().get(&format!("/sign-in?{query}")).await.shows("name=\"next\" value=\"/\"");
    }
}

#[tokio::test]
async fn a_refusal_does_not_reveal_whether_a_person_exists() {
    let world = with_zoe(options()).await;
    let user = world.people.user_called("zoe").await.unwrap().unwrap();
    world.user("root", Role::Admin).await;

    let mut said = Vec::new();
    for (name, password) in [
        ("zoe", "four words of snow"),
        ("nobody", PASSWORD),
        ("root", PASSWORD),
        ("", ""),
        ("zoe", ""),
    ] {
        let page = world.browser().sign_in(name, password).await;
        page.is(StatusCode::UNPROCESSABLE_ENTITY).shows("Name or password is wrong.");
        assert!(page.headers.get(header::SET_COOKIE).is_none());
        said.push(page.text.replace(&format!("value=\"{name}\""), "value=\"\""));
    }

    world.people.change_user(user.id, UserChange::Disabled(0)).await.unwrap();
    said.push(
        world.browser().sign_in("zoe", PASSWORD).await.text.replace("value=\"zoe\"", "value=\"\""),
    );
    assert!(said.windows(2).all(|pair| pair[0] == pair[1]));

    // What was typed as a name may have been a password: only names of people are written down.
    let entries = world
        .people
        .entries(Filter { verb: "session.begin".to_owned(), ..Filter::default() })
        .await
        .unwrap();

    assert!(entries.iter().all(|entry| !entry.object.contains("nobody")), "{entries:?}");
    assert!(
        entries
            .iter()
            .any(|entry| entry.object == "person zoe" && entry.outcome == "wrong_password")
    );
}

#[tokio::test]
async fn guessing_a_password_is_slow() {
    let world = with_zoe(options()).await;
    for _ in 0..NAME_IN_NETWORK.burst() {
        world
            .browser()
            .sign_in("zoe", "four words of snow")
            .await
            .is(StatusCode::UNPROCESSABLE_ENTITY);
    }

    // The right password does not help a browser that cannot be distinguished from the guesser's.
    let page = world.browser().sign_in("ZOE", PASSWORD).await;
    page.is(StatusCode::TOO_MANY_REQUESTS).shows("Wait 30 s");
    assert_eq!(page.headers[header::RETRY_AFTER], "30");

    let mut elsewhere = world.browser();
    elsewhere.address.set_ip([198, 51, 100, 1].into());
    elsewhere.sign_in("zoe", PASSWORD).await.leads_to("/");
    world.clock.set_s(crate::world::NOW_S + 30);
    world.browser().sign_in("zoe", PASSWORD).await.leads_to("/");
}

#[tokio::test]
async fn without_sign_in_only_this_machine_may_ask() {
    let world = World::new();
    world.get("/account").await.is(StatusCode::OK).shows("anonymous");
    world.get("/sign-in").await.leads_to("/");
    world.get("/account").await.is(StatusCode::OK).shows("Nobody needs to sign in here");

    // A name from elsewhere that was made to lead here.
    world
        .browser()
        .get("/account")
        .await
        .is(StatusCode::FORBIDDEN)
        .shows("http://localhost")
        .lacks("csrf");
    assert_eq!(world.portal.accounts.invite_first().await.unwrap(), None);
}

#[tokio::test]
async fn over_tls_the_cookie_is_kept_to_it() {
    let public_url = Some("https://rain.example".to_owned());
    let world = World::with(Options { public_url, ..options() });
    let link = world.portal.accounts.invite_first().await.unwrap().unwrap();
    let mut browser = world.browser();
    let page = browser.follow_link(&link, "zoe").await;
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap();

    assert!(cookie.starts_with("__Host-raingauge_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{cookie}");

    let page = browser.get("/account").await;
    assert!(page.is(StatusCode::OK).headers.contains_key(header::STRICT_TRANSPORT_SECURITY));

    // A cookie that came over another way counts for nothing.
    browser.cookie = browser.cookie.map(|cookie| cookie.replace("__Host-", ""));
    browser.get("/account").await.leads_to("/sign-in?next=%2Faccount");
}

#[tokio::test]
async fn without_passwords_only_the_operator_gives_a_way_in() {
    let world = World::with(Options { passwords: false, ..options() });
    let link = world.portal.accounts.invite_first().await.unwrap().expect("nobody is there yet");
    let mut zoe = world.browser();
    zoe.follow_link(&link, "zoe").await.leads_to("/?note=welcome");
    world.browser().get("/sign-in").await.is(StatusCode::OK).lacks("name=\"password\"");
    world
        .browser()
        .sign_in("zoe", PASSWORD)
        .await
        .is(StatusCode::FORBIDDEN)
        .shows("Passwords are switched off");
    zoe.get("/account").await.is(StatusCode::OK).lacks("/account/password");

    let fields = [
        ("current", PASSWORD),
        ("password", "other words of snow"),
        ("again", "other words of snow"),
    ];

    zoe.post("/account/password", &fields).await.is(StatusCode::FORBIDDEN);

    let guest =
        |name: &str| Invitee { name: name.to_owned(), email: String::new(), role: Role::Viewer };
    let of_zoe = world.portal.accounts.invite(guest("max"), "zoe").await.unwrap().path;
    world
        .browser()
        .follow_link(&of_zoe, "")
        .await
        .is(StatusCode::FORBIDDEN)
        .shows("Passwords are switched off");

    let of_operator = world.portal.accounts.invite(guest("eva"), COMMAND_LINE).await.unwrap().path;
    world.browser().follow_link(&of_operator, "").await.leads_to("/?note=welcome");
}

/// A browser that was left open gives nobody rights.
#[tokio::test]
async fn rights_are_given_shortly_after_a_sign_in() {
    let world = with_zoe(options()).await;
    let mut zoe = world.browser();
    zoe.sign_in("zoe", PASSWORD).await.leads_to("/");

    let token = [("name", "shop"), ("scope", "admin"), ("expires", "30")];
    let guest = [("name", "max"), ("role", "admin")];
    world.clock.set_s(crate::world::NOW_S + 901);
    zoe.post("/tokens", &token).await.leads_to("/sign-in?again=1&next=%2Ftokens");

    for address in ["/people/invite", "/people/1/role", "/people/1/enable", "/people/1/remove"] {
        zoe.post(address, &guest).await.leads_to("/sign-in?again=1&next=%2Fpeople");
    }
    assert_eq!(
        (world.people.tokens().await.unwrap(), world.people.invitations().await.unwrap()),
        (vec![], vec![])
    );

    let refused = world
        .people
        .entries(Filter { verb: "token.".to_owned(), ..Filter::default() })
        .await
        .unwrap();

    assert_eq!(refused[0].outcome, "refused_403");

    zoe.get("/sign-in?again=1&next=%2Ftokens")
        .await
        .is(StatusCode::OK)
        .shows("You are <b>zoe</b>")
        .shows("csrf");
    let fields = [("name", "zoe"), ("password", PASSWORD), ("next", "/tokens")];
    zoe.post("/sign-in", &fields).await.leads_to("/tokens");
    zoe.post("/tokens", &token).await.is(StatusCode::OK).shows("is not shown again");
}
