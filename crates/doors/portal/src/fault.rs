//! The error page: what happened, and what to do.

use crate::html::layout;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use raingauge_core::code::Refusal;
use raingauge_core::counter::Problem;
use raingauge_counters as counters;
use raingauge_counters::{documents, drafts, recent};
use raingauge_documents as product_documents;
use raingauge_people::Principal;
use raingauge_ports::{catalog, people};
use raingauge_replay as replay;

/// Titles of errors that several services report.
const OVERTAKEN: &str = "Someone else changed it first";
const CATALOG_AWAY: &str = "The catalog is unavailable";
const NOT_YET: &str = "The change has not taken effect yet";

/// An error as a page shows it. Handlers return `Result<_, Fault>`.
#[derive(Clone, Debug)]
pub struct Fault {
    pub status: StatusCode,
    /// What happened, in a few words.
    pub title: String,
    /// What to do.
    pub advice: String,
}

impl Fault {
    pub fn new(status: StatusCode, title: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status, title: title.into(), advice: advice.into() }
    }

    pub fn bad_request(title: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, title, advice)
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("There is no {what}"),
            "Its address may have changed.",
        )
    }

    /// The problems of a configuration.
    fn invalid(problems: &[Problem]) -> Self {
        let details: Vec<String> = problems.iter().map(Problem::to_string).collect();
        Self::bad_request("The configuration cannot be saved", details.join("; "))
    }

    /// Renders the page for this person; without the navigation if they have not signed in. It
    /// leads back to the page of the navigation that is nearest.
    pub fn page(
        &self,
        links: &[layout::Link],
        address: &str,
        person: Option<&Principal>,
    ) -> Response {
        let around = links.iter().filter(|link| address.starts_with(link.path));
        let nearest = around.max_by_key(|link| link.path.len());
        let (home, label) = nearest.map_or(("/", "Counters"), |link| (link.path, link.label));
        let body = html! {
            div.page-head { h1 { (self.title) } }
            p.notice.bad role="alert" { (self.advice) }
            p { a href=(home) { "Back to " (label) } }
        };
        (self.status, layout::page(links, person, layout::Place::Nowhere, &self.title, &body))
            .into_response()
    }
}

/// Attaches the fault to the response. The guard, which knows the person, renders the page.
impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<catalog::Error> for Fault {
    fn from(error: catalog::Error) -> Self {
        use catalog::Error;

        let advice = error.to_string();
        let (status, title) = match error {
            Error::NotFound(_) => return Self::not_found("such counter"),
            Error::VersionMismatch { .. } | Error::PolicyMismatch { .. } => {
                (StatusCode::CONFLICT, OVERTAKEN)
            }
            Error::IdTaken(_) => (StatusCode::CONFLICT, "The id is taken"),
            Error::Invalid(problems) => return Self::invalid(&problems),
            Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, CATALOG_AWAY),
        };
        Self::new(status, title, advice)
    }
}

impl From<product_documents::Error> for Fault {
    fn from(error: product_documents::Error) -> Self {
        use product_documents::Error;

        let advice = error.to_string();
        let (status, title) = match error {
            Error::NotFound { kind, .. } => return Self::not_found(&format!("such {kind}")),
            Error::VersionUnknown { .. } => return Self::not_found("such version"),
            Error::Conflict { .. } => (StatusCode::CONFLICT, OVERTAKEN),
            Error::Taken { .. } => (StatusCode::CONFLICT, "The id is taken"),
            Error::Invalid { problems, .. } => return Self::invalid(&problems),
            Error::Refused(_) => (StatusCode::CONFLICT, "The change was not made"),
            Error::ApprovalNeeded(_) => (StatusCode::FORBIDDEN, "This has to be approved"),
            Error::Log(_) | Error::NotInEffect { .. } => (StatusCode::SERVICE_UNAVAILABLE, NOT_YET),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "The documents are unavailable"),
        };
        Self::new(status, title, advice)
    }
}

impl From<replay::Error> for Fault {
    fn from(error: replay::Error) -> Self {
        use replay::Error;

        let advice = error.to_string();
        let (status, title) = match error {
            Error::UnknownCampaign(_) => return Self::not_found("such campaign"),
            Error::UnknownJob(_) => {
                let advice = "Results are kept for an hour. Begin it again.";
                return Self::new(StatusCode::NOT_FOUND, "There is no such job any more", advice);
            }
            Error::TooManyJobs | Error::Busy(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "Others are reading the log")
            }
            Error::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "This cannot be replayed"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "This could not be found out"),
        };
        Self::new(status, title, advice)
    }
}

impl From<drafts::Error> for Fault {
    fn from(error: drafts::Error) -> Self {
        use drafts::Error;

        let advice = error.to_string();
        let (status, title) = match error {
            Error::NotFound(_) => return Self::not_found("such draft"),
            Error::Document(error) => return error.into(),
            Error::People(error) => return error.into(),
            Error::Changed(_) | Error::Conflict { .. } => (StatusCode::CONFLICT, OVERTAKEN),
            Error::Ended(_) => (StatusCode::CONFLICT, "This draft has ended"),
            Error::TooMany => (StatusCode::CONFLICT, "There are too many drafts"),
            Error::KindUnknown(_) | Error::ReasonMissing | Error::ReasonTooLong => {
                (StatusCode::UNPROCESSABLE_ENTITY, "This cannot be done")
            }
            Error::ApprovalNeeded => (StatusCode::FORBIDDEN, "This has to be approved"),
            Error::NotSecond(_) => (StatusCode::FORBIDDEN, "A second person has to approve this"),
            Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, CATALOG_AWAY),
        };
        Self::new(status, title, advice)
    }
}

impl From<recent::Error> for Fault {
    fn from(error: recent::Error) -> Self {
        let advice = format!("{error}. Try again.");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "The event log cannot be read", advice)
    }
}

impl From<documents::Error> for Fault {
    fn from(error: documents::Error) -> Self {
        let advice = error.to_string();
        let (status, title) = match error {
            documents::Error::Invalid(problems) => return Self::invalid(&problems),
            documents::Error::NotFound(_) => (StatusCode::NOT_FOUND, "It no longer exists"),
            documents::Error::Conflict { .. } => (StatusCode::CONFLICT, OVERTAKEN),
            documents::Error::IdTaken { kind, id } => {
                let advice = format!(
                    "There is a {kind} {id} already. Edit the draft and choose another id, or \
                     leave it empty for the next free one."
                );
                return Self::new(StatusCode::CONFLICT, "The id is taken", advice);
            }
            documents::Error::Refused(_) => (StatusCode::CONFLICT, "The change was not made"),
            documents::Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, NOT_YET),
        };
        Self::new(status, title, advice)
    }
}

impl From<counters::Error> for Fault {
    fn from(error: counters::Error) -> Self {
        use counters::Error;

        match error {
            Error::Catalog(error) => error.into(),
            Error::VersionUnknown { .. } => Self::not_found("such version of the counter"),
            Error::KeyOfAnother { .. }
            | Error::NotArchived(_)
            | Error::ReasonTooLong
            | Error::ChangedTooOften(_)
            | Error::TooManyVersions(_) => {
                Self::new(StatusCode::CONFLICT, "The change was not made", error.to_string())
            }
            error => {
                let advice = format!("{error}. Try again; saved changes are kept.");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, NOT_YET, advice)
            }
        }
    }
}

impl From<people::Error> for Fault {
    fn from(error: people::Error) -> Self {
        use people::Error;

        let advice = error.to_string();
        let (status, title) = match error {
            Error::NotFound(what) => return Self::not_found(&format!("such {what}")),
            Error::LinkSpent => (StatusCode::GONE, "This link is no longer valid"),
            Error::Unavailable(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "The database of people is unavailable")
            }
            _ => (StatusCode::CONFLICT, "This cannot be done"),
        };
        Self::new(status, title, advice)
    }
}

impl From<Refusal> for Fault {
    fn from(failure: Refusal) -> Self {
        Self::bad_request("This cannot be counted", failure.detail)
    }
}
