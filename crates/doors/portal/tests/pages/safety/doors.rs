//! Every route, asked by everybody: the table is the router's own, so that a new route is asked
//! too.

use crate::browser::{Browser, HOST};
use crate::world::{Page, World};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode, header};
use flate2::read::GzDecoder;
use raingauge_core::access::Role;
use raingauge_portal::{CONTENT_SECURITY_POLICY, Needs, Route, routes};
use std::collections::HashSet;
use std::io::Read as _;

/// An address of a route, with something in the place of each of its names.
pub fn address_of(route: &Route) -> String {
    let parts = route.path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

async fn ask(browser: &mut Browser<'_>, route: &Route) -> Page {
    let address = address_of(route);
    match route.method {
        Method::POST => browser.post(&address, &[]).await,
        _ => browser.get(&address).await,
    }
}

/// Whether someone was sent away because of who they are.
fn is_turned_away(page: &Page) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&page.status)
        || page.location().starts_with("/sign-in?")
        || page.location() == "/sign-in"
}

#[tokio::test]
async fn each_route_lets_in_whom_it_should() {
    let world = World::closed();
    let admin = world.user("root", Role::Admin).await;
    let roles = [("viewer", Role::Viewer), ("editor", Role::Editor)];
    let mut users = vec![(Role::Admin, admin)];

    for (name, role) in roles {
        users.push((role, world.user(name, role).await));
    }

    for route in routes().iter() {
        let page = ask(&mut world.browser(), route).await;
        match (route.needs, &route.method) {
            (Needs::Nothing, _) => assert!(!is_turned_away(&page), "{route:?}: {}", page.status),
            (_, &Method::POST) => assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{route:?}"),
            _ => assert!(
                page.status == StatusCode::SEE_OTHER && is_turned_away(&page),
                "{route:?}: {}",
                page.status
            ),
        }

        for (role, user) in &users {
            // A session of its own for each, since some routes end it.
            let page = ask(&mut world.only_browser_of(user).await, route).await;
            let may = route.needs.role().is_none_or(|needed| *role >= needed);
            let is_away = is_turned_away(&page) && route.path != "/sign-out";
            assert_eq!(is_away, !may, "{route:?} as {role}: {} {}", page.status, page.location());
            assert!(
                may || page.status == StatusCode::FORBIDDEN,
                "{route:?} as {role}: {}",
                page.status
            );
            assert!(!page.status.is_server_error() || may, "{route:?} as {role}");
        }
    }
}

#[tokio::test]
async fn each_form_is_accepted_from_our_own_pages_alone() {
    let world = World::closed();
    let root = world.user("root", Role::Admin).await;
    let zoe = world.user("zoe", Role::Admin).await;
    let of_zoe = world.browser_of(&zoe).await.csrf();

    for route in routes().iter().filter(|route| route.method == Method::POST) {
        let address = address_of(route);
        let mut browser = world.only_browser_of(&root).await;
        let own = format!("csrf={}", browser.csrf());
        let own = own.as_str();
        let same = ("sec-fetch-site", "same-origin");
        let cases: [(&[(&str, &str)], &str); 10] = [
            (&[same], ""),
            (&[same], "csrf="),
            (&[same], &format!("csrf={of_zoe}")),
            (&[same], &own[..own.len() - 1]),
            (&[("sec-fetch-site", "cross-site")], own),
            (&[("sec-fetch-site", "same-site")], own),
            (&[("origin", "https://evil.example")], own),
            (&[("origin", "null")], own),
            (&[same, ("origin", "http://rain.test:8081")], own),
            (&[same, ("origin", "http://rain.test:8080.evil.example")], own),
        ];

        for (headers, body) in cases {
            let page = browser.send(Method::POST, &address, headers, body).await;
            assert_eq!(page.status, StatusCode::FORBIDDEN, "{route:?} {headers:?} {body}");
            page.shows("The form was not accepted");
        }

        // Nobody's form needs the browser's word.
        let mut nobody = world.browser();
        for headers in
            [&[][..], &[("origin", "https://evil.example")], &[("sec-fetch-site", "cross-site")]]
        {
            let page = nobody.send(Method::POST, &address, headers, "name=root&password=x").await;
            let refused = if route.needs == Needs::Nothing {
                StatusCode::FORBIDDEN
            } else {
                StatusCode::UNAUTHORIZED
            };
            assert_eq!(page.status, refused, "{route:?} {headers:?}");
        }
    }
}

#[tokio::test]
async fn each_answer_protects_itself() {
    let world = World::closed();
    let root = world.user("root", Role::Admin).await;
    for route in routes().iter() {
        for browser in [&mut world.browser(), &mut world.only_browser_of(&root).await] {
            let page = ask(browser, route).await;
            for (name, value) in [
                ("content-security-policy", CONTENT_SECURITY_POLICY),
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("referrer-policy", "same-origin"),
                ("cache-control", "no-store"),
                ("cross-origin-opener-policy", "same-origin"),
            ] {
                let found = page.headers.get(name).and_then(|found| found.to_str().ok());
                assert_eq!(found, Some(value), "{route:?}");
            }

            assert!(!page.headers.contains_key(header::SERVER), "{route:?}");
        }
    }

    for asset in raingauge_portal::ASSETS {
        let file = world.browser().get(asset.path).await;
        assert_eq!(
            file.is(StatusCode::OK).headers["x-content-type-options"],
            "nosniff",
            "{}",
            asset.path
        );
    }
}

/// The text of a page that was sent compressed.
fn unpacked(page: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(page).read_to_string(&mut text).expect("the page is compressed");
    text
}

#[tokio::test]
async fn pages_are_compressed_and_their_tokens_masked() {
    let world = World::closed();
    let root = world.user("root", Role::Admin).await;
    let browser = world.browser_of(&root).await;
    let ask = async |address: &str| {
        let request = Request::get(address)
            .header(header::HOST, HOST)
            .header(header::ACCEPT_ENCODING, "gzip")
            .header(header::COOKIE, browser.cookie.as_deref().expect("a session"));
        let mut request = request.body(Body::empty()).expect("a request");
        request.extensions_mut().insert(ConnectInfo(browser.address));
        world.fetch(request).await
    };

    let mut tokens = HashSet::new();
    for address in ["/people", "/people", "/tokens", "/counters/99"] {
        let (headers, bytes) = ask(address).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip", "{address}");
        let text = unpacked(&bytes);
        let (_, rest) = text.split_once("name=\"csrf\" content=\"").expect("a token");
        let token = rest.split('"').next().unwrap_or_default();
        assert_eq!(text.matches("name=\"csrf\"").count(), text.matches(token).count());
        assert!(tokens.insert(token.to_owned()), "{address} repeats a token");
    }

    let (headers, bytes) = ask("/assets/style.css").await;
    assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
    assert!(unpacked(&bytes).contains(":root"));
}

#[tokio::test]
async fn a_form_that_is_too_large_is_refused() {
    let world = World::closed();
    let mut root = world.signed_in("root", Role::Admin).await;
    let large = "x".repeat(300 * 1024);
    root.post("/tokens", &[("name", &large)])
        .await
        .is(StatusCode::PAYLOAD_TOO_LARGE)
        .shows("Send less at once");
}
