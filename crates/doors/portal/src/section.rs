//! The pages of a product: one section of the portal, with links among its pages.
//!
//! ```text
//!   address ──▶ page ──▶ Visit: person, fields, path, and the desk of the product
//!                          │
//!                          └──▶ the frame: links of the section, what was just done, the page
//! ```

use crate::html::parts::{self, Mood};
use crate::{Fault, Fields, Place, Portal, Query};
use axum::extract::{Extension, FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_people::Principal;
use raingauge_people::audit::AuditAction;
use raingauge_ports::BoxFuture;
use serde_json::Value as Json;
use std::future::Future;

/// A section, implemented by what its pages share: the desk, which knows the services.
pub trait Section: Clone + Send + Sync + 'static {
    /// One of the pages that the section links to.
    type Tab: Copy + PartialEq + 'static;

    /// The first page, and the link of the navigation.
    const HOME: &'static str;
    /// The name of the section, for screen readers.
    const NAME: &'static str;
    /// The pages of the section in order, each with its address and its label.
    const TABS: &'static [(Self::Tab, &'static str, &'static str)];

    /// A sentence on what was just done. Addresses have its code and no text.
    fn note(code: &str) -> Option<(Mood, &'static str)>;
}

/// A request to a page of a section.
pub struct Visit<D> {
    pub desk: D,
    pub portal: Portal,
    pub person: Principal,
    /// What the address asks for.
    pub query: Fields,
    /// What was submitted; empty for a page that is read.
    pub form: Fields,
    path: Vec<(String, String)>,
}

/// What a page answers.
pub type Answer = Result<Response, Fault>;

/// Wraps a page so that the router can call it.
pub fn page<D, F, R>(
    desk: &D,
    page: F,
) -> impl Fn(Arrival) -> BoxFuture<'static, Answer> + Clone + Send + Sync + 'static
where
    D: Section,
    F: Fn(Visit<D>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    let desk = desk.clone();
    move |Arrival { portal, person, path, query, form }| {
        let visit = Visit { desk: desk.clone(), portal, person, query, form, path };
        Box::pin(page(visit))
    }
}

/// What the guard of the portal passes on.
pub struct Arrival {
    portal: Portal,
    person: Principal,
    path: Vec<(String, String)>,
    query: Fields,
    form: Fields,
}

impl FromRequestParts<Portal> for Arrival {
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, portal: &Portal) -> Result<Self, Response> {
        let person = Extension::<Principal>::from_request_parts(head, portal).await;
        let Extension(person) = person.map_err(IntoResponse::into_response)?;
        let path = RawPathParams::from_request_parts(head, portal).await;
        let path = path.map_err(IntoResponse::into_response)?;

        let Ok(Query(query)) = Query::from_request_parts(head, portal).await;
        Ok(Self {
            portal: portal.clone(),
            person,
            path: path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            query,
            form: head.extensions.get::<Fields>().cloned().unwrap_or_default(),
        })
    }
}

impl<D: Section> Visit<D> {
    /// A parameter of the path.
    pub fn at(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn zone(&self) -> TimeZone {
        self.query.zone()
    }

    pub fn now_ms(&self) -> i64 {
        self.portal.clock.now_ms()
    }

    pub fn now_s(&self) -> i64 {
        self.portal.clock.now_s()
    }

    pub fn may_edit(&self) -> bool {
        self.person.may(Role::Editor)
    }

    pub fn may_administer(&self) -> bool {
        self.person.may(Role::Admin)
    }

    /// Renders a page of the section, with the links to the others.
    pub fn show(&self, tab: D::Tab, title: &str, body: &Markup) -> Response {
        let framed = html! {
            nav.segments aria-label=(D::NAME) {
                @for (one, address, label) in D::TABS {
                    a href=(address) aria-current=[(*one == tab).then_some("page")] { (label) }
                }
            }
            @if let Some((mood, sentence)) = D::note(self.query.text("note")) {
                (parts::notice(mood, &html! { (sentence) }))
            }
            (body)
        };
        self.portal
            .page(Some(&self.person), Place::Product(D::HOME), title, &framed)
            .into_response()
    }

    /// The page again, because what was submitted cannot be saved.
    pub fn show_again(&self, tab: D::Tab, title: &str, body: &Markup) -> Response {
        (StatusCode::UNPROCESSABLE_ENTITY, self.show(tab, title, body)).into_response()
    }
}

/// The field for the reason of a change.
pub fn reason_field(object: &str, typed: &str) -> Markup {
    let hint = format!("It stands in the history of the {object}.");
    let field = parts::Field { name: "reason", label: "Reason", hint: &hint, problem: None };
    field.text_area(typed, TEXT_LEN_MAX)
}

/// Leads to a page after a change, and notes the change in the audit log.
pub fn done(address: &str, verb: &'static str, object: String, details: Json) -> Response {
    let action = AuditAction::new(verb, object, details);
    (Extension(action), Redirect::to(address)).into_response()
}

/// A text as a part of a query string.
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
