//! What pages take from a request besides its path and its query string.

use crate::html::layout::Place;
use crate::{Fault, Fields, Portal};
use axum::extract::rejection::ExtensionRejection;
use axum::extract::{Extension, FromRequestParts};
use axum::http::request::Parts;
use axum::response::Html;
use maud::Markup;
use raingauge_people::Principal;

/// What a page answers; `Answer` is for those that also redirect.
pub type Page = Result<Html<String>, Fault>;

/// The person who sent a request, and the portal that it reached. The guard has admitted them.
pub struct Caller {
    pub portal: Portal,
    pub person: Principal,
}

impl Caller {
    /// Renders a whole page for this person.
    pub fn page(&self, place: Place, title: &str, body: &Markup) -> Html<String> {
        self.portal.page(Some(&self.person), place, title, body)
    }
}

impl FromRequestParts<Portal> for Caller {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(
        head: &mut Parts,
        portal: &Portal,
    ) -> Result<Self, Self::Rejection> {
        let Extension(person) = Extension::from_request_parts(head, portal).await?;
        Ok(Self { portal: portal.clone(), person })
    }
}

/// The fields of a submitted form, which the guard has read.
pub struct Submitted(pub Fields);

impl FromRequestParts<Portal> for Submitted {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(
        head: &mut Parts,
        portal: &Portal,
    ) -> Result<Self, Self::Rejection> {
        let Extension(fields) = Extension::from_request_parts(head, portal).await?;
        Ok(Self(fields))
    }
}
