//! The frame of every page: head, navigation, and notes on what was just done.

use super::parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use raingauge_core::access::Role;
use raingauge_people::Principal;

/// The sections of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Counters,
    Drafts,
    Query,
    Events,
    Checks,
    System,
    People,
    Tokens,
    Audit,
    /// A section of a product, by the address of its first page.
    Product(&'static str),
    Nowhere,
}

/// A link of the navigation: target, label, and the role that sees it.
pub type Link = (Place, &'static str, &'static str, Role);

/// The navigation, without the links of products.
pub const NAVIGATION: &[Link] = &[
    (Place::Counters, "/", "Counters", Role::Viewer),
    (Place::Drafts, "/drafts", "Drafts", Role::Viewer),
    (Place::Query, "/query", "Query", Role::Viewer),
    (Place::Events, "/events", "Events", Role::Viewer),
    (Place::Checks, "/checks", "Checks", Role::Viewer),
    (Place::System, "/system", "System", Role::Viewer),
    (Place::People, "/people", "People", Role::Admin),
    (Place::Tokens, "/tokens", "Tokens", Role::Admin),
    (Place::Audit, "/audit", "Audit", Role::Admin),
];

/// htmx neither adds styles to the page nor evaluates text: the content security policy forbids
/// both.
const HTMX_CONFIGURATION: &str = r#"{"includeIndicatorStyles":false,"allowEval":false,"historyCacheSize":0,"selfRequestsOnly":true,"responseHandling":[{"code":"204","swap":false},{"code":"...","swap":true}]}"#;

const LOGO: PreEscaped<&str> = PreEscaped(
    r#"<svg class="logo" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true"><path class="logo-water" d="M10 17h12v6.5a3.5 3.5 0 0 1-3.5 3.5h-5a3.5 3.5 0 0 1-3.5-3.5z"/><path class="logo-glass" d="M6 5h20M10 5v18.500a3.500 3.500 0 0 0 3.500 3.500h5a3.500 3.500 0 0 0 3.500-3.500V5"/><path class="logo-marks" d="M18.500 9.500H22M18.500 13.500H22"/></svg>"#,
);

/// Renders a whole page, without the navigation if the person has not signed in.
pub fn page(
    links: &[Link],
    person: Option<&Principal>,
    place: Place,
    title: &str,
    body: &Markup,
) -> Html<String> {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Scripts that submit a form on their own add this token.
                @if let Some(csrf) = person.and_then(|person| person.csrf.as_deref()) { meta name="csrf" content=(csrf); }
                meta name="htmx-config" content=(HTMX_CONFIGURATION);
                title { (title) " · raingauge" }
                link rel="icon" type="image/svg+xml" href="/assets/favicon.svg";
                link rel="stylesheet" href="/assets/style.css";
                link rel="stylesheet" href="/assets/parts.css";
                link rel="stylesheet" href="/assets/chart.css";
                link rel="stylesheet" href="/assets/counters.css";
                link rel="stylesheet" href="/assets/editor.css";
                link rel="stylesheet" href="/assets/system.css";
                link rel="stylesheet" href="/assets/people.css";
                script src="/assets/vendor/htmx.min.js" defer {}
                script src="/assets/portal.js" type="module" {}
                script src="/assets/chart.js" type="module" {}
                script src="/assets/system.js" type="module" {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.masthead {
                    a.brand href="/" { (LOGO) span.brand-name { "raingauge" } }
                    @if let Some(person) = person { (navigation(links, person, place)) (account(person)) }
                }
                main #main tabindex="-1" { (body) }
            }
        }
    };
    Html(markup.into_string())
}

/// Who is signed in, with links to the account and to sign out.
fn account(person: &Principal) -> Markup {
    html! {
        details.account {
            summary { span.account-name { (person.name) } @if let Some(role) = person.role() { span.state { (role) } } }
            div.account-menu {
                a href="/account" { "Your account" }
                @if person.session().is_some() {
                    form method="post" action="/sign-out" { (parts::csrf(person)) button { "Sign out" } }
                }
            }
        }
    }
}

/// Sets the address that the browser shows after a script loaded the page with longer parameters;
/// the address leads to the same page. Requests without htmx get no such header.
pub fn addressed(
    page: Html<String>,
    asked: &HeaderMap,
    header: &'static str,
    address: &str,
) -> Response {
    let mut response = page.into_response();
    if asked.contains_key("hx-request")
        && let Ok(address) = HeaderValue::from_str(address)
    {
        response.headers_mut().insert(header, address);
    }
    response
}

fn navigation(links: &[Link], person: &Principal, place: Place) -> Markup {
    html! {
        nav.places aria-label="Places" {
            ul {
                @for (there, address, words, role) in links {
                    @if person.may(*role) {
                        li { a href=(address) aria-current=[(*there == place).then_some("page")] { (words) } }
                    }
                }
            }
        }
    }
}
