//! A request to a page: who sent it, what it asks for, and the frame of the answer.

use super::desk::Desk;
use axum::extract::{Extension, FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_campaigns::campaign::CampaignId;
use raingauge_core::access::Role;
use raingauge_core::limits::TEXT_LEN_MAX;
use raingauge_people::Principal;
use raingauge_people::audit::AuditAction;
use raingauge_portal::html::parts::{self, Mood};
use raingauge_portal::{Fault, Fields, Place, Portal, Query};
use raingauge_ports::BoxFuture;
use serde_json::Value as Json;
use std::future::Future;

/// The first page, and the link of the navigation.
pub const HOME: &str = "/campaigns";

/// The pages of the section, with their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Campaigns,
    WhyNot,
    Decisions,
    Actions,
    Destinations,
    Tables,
    Experiments,
    Shared,
}

impl Tab {
    const ALL: [Self; 8] = [
        Self::Campaigns,
        Self::WhyNot,
        Self::Decisions,
        Self::Actions,
        Self::Destinations,
        Self::Tables,
        Self::Experiments,
        Self::Shared,
    ];

    const fn address(self) -> &'static str {
        match self {
            Self::Campaigns => HOME,
            Self::WhyNot => "/campaigns/why",
            Self::Decisions => "/campaigns/decisions",
            Self::Actions => "/campaigns/actions",
            Self::Destinations => "/campaigns/destinations",
            Self::Tables => "/campaigns/tables",
            Self::Experiments => "/campaigns/experiments",
            Self::Shared => "/campaigns/shared",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Campaigns => "Campaigns",
            Self::WhyNot => "Why not",
            Self::Decisions => "Decisions",
            Self::Actions => "Actions",
            Self::Destinations => "Destinations",
            Self::Tables => "Tables",
            Self::Experiments => "Experiments",
            Self::Shared => "Budgets, caps, lookups",
        }
    }
}

/// A request to a page of campaigns.
pub struct Visit {
    pub desk: Desk,
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
pub fn page<F, R>(
    desk: &Desk,
    page: F,
) -> impl Fn(Arrival) -> BoxFuture<'static, Answer> + Clone + Send + Sync + 'static
where
    F: Fn(Visit) -> R + Clone + Send + Sync + 'static,
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

impl Visit {
    /// A parameter of the path.
    pub fn at(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The campaign that the path names.
    pub fn campaign_id(&self) -> Result<CampaignId, Fault> {
        self.at("id").parse().map_err(|_| Fault::not_found("such campaign"))
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
    pub fn show(&self, tab: Tab, title: &str, body: &Markup) -> Response {
        let framed = html! {
            nav.segments aria-label="Campaigns" {
                @for one in Tab::ALL {
                    a href=(one.address()) aria-current=[(one == tab).then_some("page")] { (one.label()) }
                }
            }
            (self.note())
            (body)
        };
        self.portal.page(Some(&self.person), Place::Product(HOME), title, &framed).into_response()
    }

    /// The page again, because what was submitted cannot be saved.
    pub fn show_again(&self, tab: Tab, title: &str, body: &Markup) -> Response {
        (StatusCode::UNPROCESSABLE_ENTITY, self.show(tab, title, body)).into_response()
    }

    /// A sentence on what was just done. The address has its code and no text.
    fn note(&self) -> Markup {
        let sentence = match self.query.text("note") {
            "saved" => (Mood::Good, "Saved, and in effect."),
            "saved-later" => {
                (Mood::Wait, "Saved. It takes effect when campaigns reach it in the log.")
            }
            "state" => (Mood::Good, "The state has changed, and is in effect."),
            "redriven" => (Mood::Good, "They are sent again, under the same ids."),
            "cancelled" => (Mood::Good, "Cancelled. What it reserved is back in its budget."),
            "nothing" => (Mood::Wait, "Nothing was there to change any more."),
            "loaded" => (Mood::Good, "The new version of the table is in use."),
            "removed" => (Mood::Good, "Removed. Its versions stay in the history."),
            "job-ended" => (Mood::Good, "The job was cancelled."),
            _ => return html! {},
        };
        parts::notice(sentence.0, &html! { (sentence.1) })
    }
}

/// The field for the reason of a change.
pub fn reason_field(object: &str, typed: &str) -> Markup {
    let hint = format!("It stands in the history of the {object}.");
    let field = parts::Field { name: "reason", label: "Reason", hint: &hint, problem: None };
    field.around(&html! {
        textarea id="reason" name="reason" rows="2" maxlength=(TEXT_LEN_MAX)
            aria-describedby="reason-words" { (typed) }
    })
}

/// Leads to a page after a change, and notes the change in the audit log.
pub fn done(address: &str, verb: &'static str, object: String, details: Json) -> Response {
    let action = AuditAction::new(verb, object, details);
    (Extension(action), Redirect::to(address)).into_response()
}

/// A text as a part of an address.
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
