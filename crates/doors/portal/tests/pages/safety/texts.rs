//! Texts from outside: whatever stands in them, they stay texts.

use crate::browser::Browser;
use crate::world::World;
use axum::http::StatusCode;
use raingauge_core::access::Role;
use raingauge_ports::people::{ApiToken, Entry, Invitation, NewUser};

/// Markup, ends of attributes, ends of statements.
const EVIL: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' OR '1'='1'; DROP TABLE users; --",
    "</textarea><svg/onload=alert(1)>${{7*7}}",
];

/// A page may show the text, escaped, and never has it as markup.
#[track_caller]
fn harmless(text: &str) {
    for markup in ["<script>alert", "<img src=x", "<svg/onload", "onerror=alert(1)>"] {
        assert!(!text.contains(markup), "{markup} in {text}");
    }
}

async fn look_at(browser: &mut Browser<'_>, addresses: &[&str]) {
    for address in addresses {
        let page = browser.get(address).await;
        assert!(!page.status.is_server_error(), "{address}: {}", page.text);
        harmless(&page.text);
    }
}

#[tokio::test]
async fn what_is_stored_is_shown_as_text() {
    let world = World::closed();
    let people = &world.people;
    for (number, evil) in EVIL.iter().enumerate() {
        // Past the checks of the forms, as a database might have it.
        let text = || (*evil).to_owned();
        let new = NewUser {
            name: text(),
            email: text(),
            role: Role::Admin,
            password: text(),
            openid: text(),
            at_s: 0,
        };

        people.add_user(new).await.unwrap();
        let hash = [number as u8; 32];
        let (created_at, expires_at) = (0, i64::MAX);
        let name = text();
        let email = text();

        let invited_by = text();
        let invitation = Invitation {
            hash,
            name,
            email,
            role: Role::Viewer,
            invited_by,
            created_at,
            expires_at,
        };

        people.invite(invitation).await.unwrap();
        let name = text();
        let created_by = text();
        let scopes = [raingauge_core::access::Scope::Admin].into_iter().collect();
        let expires_at = None;

        let revoked_at = None;
        let used_at = None;
        let token = ApiToken {
            id: 0,
            hash,
            name,
            scopes,
            created_by,
            created_at,
            expires_at,
            revoked_at,
            used_at,
        };

        people.add_token(token).await.unwrap();
        let who = text();
        let address = text();
        let verb = text();
        let object = text();

        let details = text();
        let outcome = text();
        people
            .record(Entry { id: 0, at_s: 0, who, address, verb, object, details, outcome })
            .await
            .unwrap();
    }

    for user in people.users().await.unwrap() {
        let mut browser = world.browser_of(&user).await;
        look_at(&mut browser, &["/", "/account", "/people", "/tokens", "/audit"]).await;
    }

    // A refusal says whom to ask.
    let mut viewer = world.signed_in("viewer", Role::Viewer).await;
    harmless(&viewer.get("/people").await.is(StatusCode::FORBIDDEN).text);

    // The log is read by spreadsheets, too.
    let mut root = world.signed_in("root", Role::Admin).await;
    let csv = root.get("/audit.csv").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
}

#[tokio::test]
async fn what_is_sent_comes_back_as_text() {
    let world = World::closed();
    let mut root = world.signed_in("root", Role::Admin).await;
    let link = {
        let page = root.post("/people/invite", &[("name", "max"), ("role", "viewer")]).await;
        page.found("http://rain.test:8080/welcome/").replace("http://rain.test:8080", "")
    };

    for evil in EVIL {
        let fields = [
            "name", "email", "role", "scope", "expires", "current", "password", "again", "next",
            "session",
        ]
        .map(|name| (name, if name == "again" { "" } else { evil }));

        for address in [
            "/people/invite",
            "/tokens",
            "/account/password",
            "/people/withdraw",
            "/account/sessions/end",
            "/people/1/role",
        ] {
            let page = root.post(address, &fields).await;
            assert!(page.status.is_client_error(), "{address}: {}", page.status);
            harmless(&page.text);
        }

        let mut nobody = world.browser();
        nobody.address.set_ip([198, 51, 100, evil.len() as u8].into());
        harmless(&nobody.post("/sign-in", &fields).await.is(StatusCode::UNPROCESSABLE_ENTITY).text);
        harmless(&nobody.post(&link, &fields).await.text);

        let query = |name: &str| {
            form_urlencoded::Serializer::new(String::new()).append_pair(name, evil).finish()
        };
        for name in ["who", "what", "object", "from", "to", "before", "note", "zone"] {
            for page in ["/audit", "/people", "/tokens", "/account", "/"] {
                let page = root.get(&format!("{page}?{}", query(name))).await;
                assert!(!page.status.is_server_error());
                harmless(&page.text);
            }
        }

        harmless(&nobody.get(&format!("/sign-in?{}", query("next"))).await.text);
        let path = query("x").replace("x=", "");

        for place in ["welcome", "people", "tokens"] {
            harmless(&nobody.get(&format!("/{place}/{path}")).await.text);
        }
    }

    // Nobody came in, nothing was made, nothing is gone.
    assert_eq!(world.people.users().await.unwrap().len(), 1);
    assert_eq!(world.people.tokens().await.unwrap(), []);
}

#[tokio::test]
async fn a_browser_may_call_itself_anything() {
    let world = World::closed();
    let link = world.portal.accounts.invite_first().await.unwrap().unwrap();

    for evil in EVIL {
        let mut browser = world.browser();
        let form = format!("name=zoe&password={p}&again={p}", p = "four+words+of+rain");
        let headers = [("sec-fetch-site", "same-origin"), ("user-agent", evil)];
        let address =
            if world.people.users().await.unwrap().is_empty() { link.as_str() } else { "/sign-in" };

        browser
            .send(axum::http::Method::POST, address, &headers, &form)
            .await
            .is(StatusCode::SEE_OTHER);
        harmless(&browser.get("/account").await.is(StatusCode::OK).text);
    }
}
