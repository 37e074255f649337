//! The frame of every page: head, navigation, and the account.

use super::parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use raingauge_core::access::Role;
use raingauge_people::Principal;

/// The link of the navigation that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Counters,
    Drafts,
    Query,
    Events,
    Checks,
    System,
    Cache,
    People,
    Tokens,
    Audit,
    /// A link of a product, by its address.
    Product(&'static str),
    Nowhere,
}

impl Place {
    /// The address of the link; `None` for a page that belongs to none.
    pub const fn path(self) -> Option<&'static str> {
        Some(match self {
            Self::Counters => "/",
            Self::Drafts => "/drafts",
            Self::Query => "/query",
            Self::Events => "/events",
            Self::Checks => "/checks",
            Self::System => "/system",
            Self::Cache => "/system/cache",
            Self::People => "/people",
            Self::Tokens => "/tokens",
            Self::Audit => "/audit",
            Self::Product(path) => path,
            Self::Nowhere => return None,
        })
    }
}

/// A link of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The group that it stands in; links of one group follow each other.
    pub group: &'static str,
    pub path: &'static str,
    pub label: &'static str,
    /// The role that sees it.
    pub role: Role,
}

/// htmx neither adds styles to the page nor evaluates text: the content security policy forbids
/// both.
const HTMX_CONFIGURATION: &str = r#"{"includeIndicatorStyles":false,"allowEval":false,"historyCacheSize":0,"selfRequestsOnly":true,"responseHandling":[{"code":"204","swap":false},{"code":"...","swap":true}]}"#;

const LOGO: PreEscaped<&str> = PreEscaped(
    r#"<svg class="logo" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true"><path class="logo-water" d="M10 17h12v6.5a3.5 3.5 0 0 1-3.5 3.5h-5a3.5 3.5 0 0 1-3.5-3.5z"/><path class="logo-glass" d="M6 5h20M10 5v18.500a3.500 3.500 0 0 0 3.500 3.500h5a3.500 3.500 0 0 0 3.500-3.500V5"/><path class="logo-marks" d="M18.500 9.500H22M18.500 13.500H22"/></svg>"#,
);

/// The files of every page, below `/assets/`.
const STYLE_SHEETS: [&str; 7] = [
    "style.css",
    "parts.css",
    "chart.css",
    "counters.css",
    "editor.css",
    "system.css",
    "people.css",
];
const SCRIPTS: [&str; 3] = ["portal.js", "chart.js", "system.js"];

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
                @if let Some(token) = person.and_then(|person| person.csrf.as_deref()) {
                    meta name="csrf" content=(token);
                }
                meta name="htmx-config" content=(HTMX_CONFIGURATION);
                title { (title) " · raingauge" }
                link rel="icon" type="image/svg+xml" href="/assets/favicon.svg";
                @for sheet in STYLE_SHEETS { link rel="stylesheet" href={ "/assets/" (sheet) }; }
                script src="/assets/vendor/htmx.min.js" defer {}
                @for script in SCRIPTS { script src={ "/assets/" (script) } type="module" {} }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.masthead {
                    a.brand href="/" { (LOGO) span.brand-name { "raingauge" } }
                    @if let Some(person) = person {
                        (navigation(links, person, place))
                        (account(person))
                    }
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
            summary {
                span.account-name { (person.name) }
                @if let Some(role) = person.role() { span.state { (role) } }
            }
            div.account-menu {
                a href="/account" { "Your account" }
                @if person.session().is_some() {
                    form method="post" action="/sign-out" {
                        (parts::csrf(person))
                        button { "Sign out" }
                    }
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

/// The groups, and the pages of the current one. Each group leads to its first page that the person
/// may see.
fn navigation(links: &[Link], person: &Principal, place: Place) -> Markup {
    let seen: Vec<Link> = links.iter().filter(|link| person.may(link.role)).copied().collect();
    let groups: Vec<&[Link]> = seen.chunk_by(|one, other| one.group == other.group).collect();
    let is_here = |link: &Link| place.path() == Some(link.path);
    let current = groups.iter().find(|group| group.iter().any(is_here));

    // A group of one page needs no second row.
    let pages = current.filter(|group| group.len() > 1);
    let mark = |group: &[Link]| match group {
        [only] if is_here(only) => Some("page"),
        group => group.iter().any(is_here).then_some("true"),
    };

    html! {
        nav.places.groups aria-label="Sections" {
            ul {
                @for group in &groups {
                    li { a href=(group[0].path) aria-current=[mark(group)] { (group[0].group) } }
                }
            }
        }
        @if let Some(pages) = pages {
            nav.places.pages aria-label=(pages[0].group) {
                ul {
                    @for link in *pages {
                        @let mark = is_here(link).then_some("page");
                        li { a href=(link.path) aria-current=[mark] { (link.label) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: [Link; 4] = [
        Link { group: "Counting", path: "/", label: "Counters", role: Role::Viewer },
        Link { group: "Counting", path: "/drafts", label: "Drafts", role: Role::Viewer },
        Link { group: "Drops", path: "/drops", label: "Drops", role: Role::Viewer },
        Link { group: "People", path: "/people", label: "People", role: Role::Admin },
    ];

    fn shown(place: Place) -> String {
        navigation(&LINKS, &Principal::anonymous(None), place).into_string()
    }

    #[test]
    fn the_group_and_the_page_are_marked() {
        let drafts = shown(Place::Drafts);
        assert!(drafts.contains("href=\"/\" aria-current=\"true\">Counting<"), "{drafts}");
        assert!(drafts.contains("href=\"/drafts\" aria-current=\"page\">Drafts<"), "{drafts}");
        assert_eq!(drafts.matches("aria-current").count(), 2, "{drafts}");
    }

    #[test]
    fn a_group_of_one_page_has_no_second_row() {
        let drops = shown(Place::Product("/drops"));
        assert!(drops.contains("href=\"/drops\" aria-current=\"page\">Drops<"), "{drops}");
        assert_eq!(drops.matches("<nav").count(), 1, "{drops}");
        assert_eq!(shown(Place::Nowhere).matches("aria-current").count(), 0);
    }
}
