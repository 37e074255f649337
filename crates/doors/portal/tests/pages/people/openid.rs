//! Signing in by OpenID Connect, at a provider that need not be honest.

use super::provider::{LABEL, Provider, SECRET, come_back, new_key, rules};
use crate::browser::{HOST, PASSWORD, options};
use crate::world::{NOW_S, Page, World};
use axum::http::{StatusCode, header};
use raingauge_core::access::Role;
use raingauge_people::Options;
use raingauge_people::invitations::Invitee;
use raingauge_people::trips::TRIP_S;
use raingauge_portal::OPENID_BACK;
use raingauge_ports::people::{Entry, Filter, User, UserChange};
use serde_json::json;
use sha2::{Digest as _, Sha256};

const ZOE: &str = "zoe@rain.example";

impl World {
    /// Someone with a password, whose address an administrator has given.
    async fn with_address(&self, name: &str, email: &str, role: Role) -> User {
        let guest = Invitee { name: name.to_owned(), email: email.to_owned(), role };
        let link = self.portal.accounts.invite(guest, "root").await.unwrap().path;
        self.browser().follow_link(&link, name).await.leads_to("/?note=welcome");
        self.called(name).await
    }

    async fn called(&self, name: &str) -> User {
        self.people.user_called(name).await.unwrap().unwrap()
    }

    async fn entries_of(&self, verb: &str) -> Vec<Entry> {
        self.people.entries(Filter { verb: verb.to_owned(), ..Filter::default() }).await.unwrap()
    }
}

impl Page {
    /// Nobody came in, and the page says so without a secret in it.
    #[track_caller]
    fn refuses(&self, status: StatusCode, words: &str) -> &Self {
        let given: Vec<_> = self
            .headers
            .get_all(header::SET_COOKIE)
            .iter()
            .map(|line| line.to_str().unwrap())
            .collect();

        assert!(given.iter().all(|line| line.starts_with("raingauge_trip=;")), "{given:?}");
        self.is(status)
            .shows(words)
            .shows("Back to sign-in")
            .lacks("a-code")
            .lacks("an-access-token")
            .lacks(SECRET)
    }
}

#[tokio::test]
async fn an_invited_person_comes_in_and_is_known_from_then_on() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    world.user("root", Role::Admin).await;

    let guest = Invitee {
        name: "Zoë".to_owned(),
        email: "Zoe@Rain.example".to_owned(),
        role: Role::Editor,
    };

    world.portal.accounts.invite(guest, "root").await.unwrap();
    let mut browser = world.browser();
    browser.get("/sign-in?next=/query").await.shows(LABEL).shows("/sign-in/openid?next=%2Fquery");
    provider.claims("7", ZOE, json!({}));

    let told = provider.begin(&mut browser, "/account").await;
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "rain"),
        ("scope", "openid email profile"),
        ("code_challenge_method", "S256"),
        ("redirect_uri", &format!("http://{HOST}{OPENID_BACK}")),
    ] {
        assert_eq!(told.text(name), value);
    }

    let page = come_back(&mut browser, told.text("state")).await;
    page.leads_to("/account");

    let cookies: Vec<_> = page
        .headers
        .get_all(header::SET_COOKIE)
        .iter()
        .map(|line| line.to_str().unwrap())
        .collect();

    assert!(cookies[0].starts_with("raingauge_session="), "{cookies:?}");
    assert_eq!(cookies[1], "raingauge_trip=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    browser
        .get("/account")
        .await
        .is(StatusCode::OK)
        .shows("Zoë")
        .shows("editor")
        .shows("no password");

    let (form, by) = provider.says(|says| says.asked.remove(0));
    assert!(by.starts_with("Basic "));

    let challenge = hex::encode(Sha256::digest(form.text("code_verifier")));
    assert_eq!(challenge, hex::encode(from_base64url(told.text("code_challenge"))));

    let user = world.called("zoë").await;
    assert_eq!((user.openid, user.password), (format!("{} 7", provider.issuer), String::new()));
    assert_eq!(world.people.invitations().await.unwrap(), []);

    let begun = world.entries_of("session.begin").await;
    assert_eq!((&*begun[0].who, &*begun[0].details), ("Zoë", r#"{"with":"openid"}"#));
    assert_eq!(world.entries_of("person.bind").await.len(), 1);

    // From now on the subject says who it is, whatever becomes of the address.
    provider.claims("7", "married@elsewhere.example", json!({ "email_verified": false }));
    let mut other = world.browser();
    provider.sign_in(&mut other, "/").await.leads_to("/");
    other.get("/account").await.shows("Zoë");

    // And a person who gets the address later is someone else.
    provider.claims("8", ZOE, json!({}));
    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::FORBIDDEN, "belongs to someone else");
}

fn from_base64url(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = text.bytes().map(|byte| DIGITS.iter().position(|digit| *digit == byte).unwrap());
    let bits: Vec<bool> =
        bits.flat_map(|digit| (0..6).rev().map(move |place| digit >> place & 1 == 1)).collect();
    bits.chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |all, bit| all << 1 | u8::from(*bit)))
        .collect()
}

#[tokio::test]
async fn an_account_with_a_password_keeps_it() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    let zoe = world.with_address("zoe", ZOE, Role::Admin).await;
    provider.claims("7", "ZOE@rain.example", json!({}));

    let mut browser = world.browser_of(&zoe).await;
    let session = browser.cookie.clone().unwrap();
    browser.cookie = None;

    let told = provider.begin(&mut browser, "/").await;

    // The browser had a session by then: another one begins, and the old one is over.
    browser.cookie = Some(format!("{session}; {}", browser.cookie.unwrap()));
    come_back(&mut browser, told.text("state")).await.leads_to("/");
    assert_ne!(browser.cookie.as_deref(), Some(session.as_str()));

    let mut old = world.browser();
    old.cookie = Some(session);
    old.get("/account").await.leads_to("/sign-in?next=%2Faccount");
    world.browser().sign_in("zoe", PASSWORD).await.leads_to("/");
    assert!(world.called("zoe").await.openid.ends_with(" 7"));
}

#[tokio::test]
async fn only_the_browser_that_left_comes_back_and_in_time() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    world.with_address("zoe", ZOE, Role::Admin).await;
    provider.claims("7", ZOE, json!({}));

    let mut browser = world.browser();
    let state = provider.begin(&mut browser, "/").await.text("state").to_owned();
    let trip = browser.cookie.clone();
    let foreign = provider.begin(&mut world.browser(), "/").await.text("state").to_owned();
    for wrong in ["", &foreign, &state[1..], &state.to_uppercase()] {
        browser.cookie.clone_from(&trip);
        come_back(&mut browser, wrong).await.refuses(StatusCode::BAD_REQUEST, "Start again");
    }

    let mut other = world.browser();
    come_back(&mut other, &state).await.refuses(StatusCode::BAD_REQUEST, "Start again");

    // A cookie with another time is another trip.
    let later = format!(".{}.", NOW_S + 1);
    other.cookie = trip.as_ref().map(|trip| trip.replace(&format!(".{NOW_S}."), &later));
    world.clock.set_s(NOW_S + TRIP_S);
    come_back(&mut other, &state).await.refuses(StatusCode::BAD_REQUEST, "Start again");
    come_back(&mut browser, &state).await.refuses(StatusCode::BAD_REQUEST, "more than 10 minutes");
    assert_eq!(provider.says(|says| says.asked.len()), 0);
    world.clock.set_s(NOW_S + TRIP_S - 1);
    provider.says(|says| says.claims["exp"] = json!(NOW_S + TRIP_S));
    browser.cookie = trip;
    provider.says(|says| says.nonce.clear());

    let told = provider.begin(&mut browser, "/").await;
    come_back(&mut browser, told.text("state")).await.leads_to("/");
}

#[tokio::test]
async fn a_token_that_is_wrong_opens_nothing() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    world.with_address("zoe", ZOE, Role::Admin).await;

    for (what, claims) in [
        ("made for another trip", json!({ "nonce": "another" })),
        ("expired", json!({ "iat": NOW_S - 600, "exp": NOW_S - 61 })),
        ("for another client", json!({ "aud": "snow" })),
        ("for others as well", json!({ "aud": ["rain", "snow"] })),
        ("of another issuer", json!({ "iss": "https://evil.example" })),
    ] {
        provider.claims("7", ZOE, claims);
        let page = provider.sign_in(&mut world.browser(), "/").await;
        assert_eq!(page.status, StatusCode::BAD_GATEWAY, "{what}: {}", page.text);
        page.refuses(StatusCode::BAD_GATEWAY, "answer was not accepted");
    }

    provider.claims("7", ZOE, json!({}));
    let forgeries: [fn(String) -> Option<String>; 4] = [
        |_| None,
        |_| Some("no.token.at-all".to_owned()),
        // `{"alg":"none"}` in the place of the header, and no signature.
        |token| Some(format!("eyJhbGciOiJub25lIn0.{}.", token.split('.').nth(1)?)),
        |token| {
            let (signed, signature) = token.rsplit_once('.')?;
            Some(format!("{signed}.{}", signature.chars().rev().collect::<String>()))
        },
    ];

    for forge in forgeries {
        provider.says(|says| says.forge = forge);
        provider
            .sign_in(&mut world.browser(), "/")
            .await
            .refuses(StatusCode::BAD_GATEWAY, "answer was not accepted");
    }

    assert_eq!(world.called("zoe").await.openid, "");

    // A clock that goes after by less than a minute is forgiven.
    provider.says(|says| says.forge = Some);
    provider.claims("7", ZOE, json!({ "exp": NOW_S - 59 }));
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");
}

#[tokio::test]
async fn keys_may_change() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    world.with_address("zoe", ZOE, Role::Admin).await;
    provider.claims("7", ZOE, json!({}));
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");
    assert_eq!(provider.says(|says| says.discoveries), 1);
    provider.says(|says| says.key = new_key("second"));

    // The keys were read a moment ago: nobody makes us ask all the time.
    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::BAD_GATEWAY, "answer was not accepted");
    world.clock.set_s(NOW_S + 5);
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");
    assert_eq!(provider.says(|says| says.discoveries), 2);

    // Under the same name, another key proves nothing.
    provider.says(|says| says.key = new_key("second"));
    world.clock.set_s(NOW_S + 10);
    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::BAD_GATEWAY, "answer was not accepted");
}

#[tokio::test]
async fn a_person_without_admission_stays_outside_and_learns_what_to_do() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    let zoe = world.with_address("zoe", ZOE, Role::Editor).await;
    world.with_address("max", "max@rain.example", Role::Admin).await;

    for (email, more, words, outcome) in [
        (ZOE, json!({ "email_verified": false }), "address verified", "email_unverified"),
        (ZOE, json!({ "email_verified": null }), "address verified", "email_unverified"),
        ("", json!({}), "address verified", "email_unverified"),
        ("eve@rain.example", json!({}), "nobody has invited this address", "not_invited"),
    ] {
        provider.claims("7", email, more);
        provider.says(|says| says.user_info = json!({ "sub": "7" }));
        provider.sign_in(&mut world.browser(), "/").await.refuses(StatusCode::FORBIDDEN, words);

        let entry = world.entries_of("session.begin").await.remove(0);
        assert_eq!(
            (&*entry.who, &*entry.object, &*entry.outcome),
            ("nobody", "an unknown person", outcome)
        );
    }

    world.people.change_user(zoe.id, UserChange::Disabled(NOW_S)).await.unwrap();
    provider.claims("7", ZOE, json!({}));
    provider.sign_in(&mut world.browser(), "/").await.refuses(StatusCode::FORBIDDEN, "is disabled");
    world.people.change_user(zoe.id, UserChange::Enabled).await.unwrap();
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");
    world.people.change_user(zoe.id, UserChange::Disabled(NOW_S)).await.unwrap();
    provider.sign_in(&mut world.browser(), "/").await.refuses(StatusCode::FORBIDDEN, "is disabled");

    // A new invitation with the address binds the account to the person who has it now.
    let guest = Invitee { name: "zoe".to_owned(), email: ZOE.to_owned(), role: Role::Viewer };
    world.portal.accounts.invite(guest, "max").await.unwrap();
    provider.claims("8", ZOE, json!({}));
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");

    let zoe = world.called("zoe").await;
    assert_eq!(
        (zoe.openid, zoe.role, zoe.disabled_at),
        (format!("{} 8", provider.issuer), Role::Viewer, None)
    );

    // An invitation that has expired is none.
    let guest = Invitee {
        name: "eve".to_owned(),
        email: "eve@rain.example".to_owned(),
        role: Role::Viewer,
    };

    world.portal.accounts.invite(guest, "max").await.unwrap();
    world.clock.set_s(NOW_S + 86_400);
    provider.claims("9", "eve@rain.example", json!({ "exp": NOW_S + 86_500 }));

    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::FORBIDDEN, "nobody has invited this address");
}

#[tokio::test]
async fn what_the_token_lacks_the_page_of_claims_says() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    world.with_address("zoe", ZOE, Role::Admin).await;
    provider.claims("7", "", json!({ "email": null, "email_verified": true }));

    // The word that an address is verified goes for the address beside it alone.
    provider.says(|says| says.user_info = json!({ "sub": "7", "email": ZOE }));
    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::FORBIDDEN, "address verified");
    provider
        .says(|says| says.user_info = json!({ "sub": "8", "email": ZOE, "email_verified": true }));
    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::BAD_GATEWAY, "answer was not accepted");
    provider
        .says(|says| says.user_info = json!({ "sub": "7", "email": ZOE, "email_verified": true }));
    provider.sign_in(&mut world.browser(), "/").await.leads_to("/");
}

#[tokio::test]
async fn a_provider_that_is_away_hinders_nobody_else() {
    let provider = Provider::start().await;
    let down = Provider { issuer: "http://127.0.0.1:1".to_owned(), ..provider.clone() };
    let world = down.world(rules());
    world.with_address("zoe", ZOE, Role::Admin).await;

    let page = world.browser().get("/sign-in/openid").await;
    page.refuses(StatusCode::BAD_GATEWAY, "anyone who has a password here can sign in")
        .lacks("127.0.0.1");
    world.browser().sign_in("zoe", PASSWORD).await.leads_to("/");

    // One that is not who it should be is no provider.
    let other = Provider { issuer: format!("{}/other", provider.issuer), ..provider.clone() };
    other
        .world(rules())
        .browser()
        .get("/sign-in/openid")
        .await
        .refuses(StatusCode::BAD_GATEWAY, "Try again");

    // One that is away once it was known, and one that does not want us.
    let world = provider.world(rules());
    provider.says(|says| says.token_status = StatusCode::UNAUTHORIZED);
    provider
        .sign_in(&mut world.browser(), "/")
        .await
        .refuses(StatusCode::BAD_GATEWAY, "log of raingauge");
}

#[tokio::test]
async fn the_provider_may_say_no() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    world.user("root", Role::Admin).await;

    for (error, status, words) in [
        ("access_denied", StatusCode::FORBIDDEN, "cancelled there"),
        ("server_error", StatusCode::BAD_GATEWAY, "log of raingauge"),
        ("%3Cscript%3Ealert(1)", StatusCode::BAD_GATEWAY, "log of raingauge"),
    ] {
        let mut browser = world.browser();
        let told = provider.begin(&mut browser, "/").await;
        let query =
            format!("error={error}&error_description=%3Cscript%3E&state={}", told.text("state"));
        let page = browser.get(&format!("{OPENID_BACK}?{query}")).await;

        page.refuses(status, words).lacks("<script>alert").lacks("%3Cscript");
    }

    let mut browser = world.browser();
    let told = provider.begin(&mut browser, "/").await;
    let page = browser.get(&format!("{OPENID_BACK}?state={}", told.text("state"))).await;
    page.refuses(StatusCode::BAD_GATEWAY, "Start again");
}

#[tokio::test]
async fn nobody_is_led_elsewhere() {
    let provider = Provider::start().await;
    let world = provider.world(rules());
    let zoe = world.with_address("zoe", ZOE, Role::Admin).await;
    provider.claims("7", ZOE, json!({}));

    for foreign in
        ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
    {
        provider.sign_in(&mut world.browser(), foreign).await.leads_to("/");
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("next", foreign).finish();
        let mut signed_in = world.browser_of(&zoe).await;
        signed_in.get(&format!("/sign-in/openid?{query}")).await.leads_to("/");
    }

    // A cookie that was changed is another trip.
    let mut browser = world.browser();
    let told = provider.begin(&mut browser, "/x").await;
    browser.cookie = browser.cookie.map(|cookie| cookie.replace("%2Fx", "%2F%2Fevil.example"));

    come_back(&mut browser, told.text("state"))
        .await
        .refuses(StatusCode::BAD_REQUEST, "Start again");
}

#[tokio::test]
async fn over_tls_the_trip_is_kept_to_it() {
    let provider = Provider::start().await;
    let public_url = Some("https://rain.example".to_owned());
    let world = provider.world_with(rules(), Options { public_url, ..options() });
    let page = world.browser().get("/sign-in/openid?next=/query").await;
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-raingauge_trip="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600"), "{cookie}");
}

#[tokio::test]
async fn without_a_provider_there_is_no_button() {
    let world = World::closed();
    world.browser().get("/sign-in").await.lacks("/sign-in/openid");
    for path in ["/sign-in/openid", OPENID_BACK] {
        world
            .browser()
            .get(path)
            .await
            .is(StatusCode::NOT_FOUND)
            .shows("There is no sign-in by OpenID Connect");
    }
}
