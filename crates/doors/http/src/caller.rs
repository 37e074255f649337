//! What the routes take from a request besides its path and its body, and what they answer.

use crate::Problem;
use axum::extract::rejection::ExtensionRejection;
use axum::extract::{Extension, FromRequestParts};
use axum::http::request::Parts;
use axum::response::Response;
use raingauge_app::App;
use raingauge_people::Principal;
use std::sync::Arc;

pub type Answer<T = Response> = Result<T, Problem>;

/// Who sent a request, and the services. The guard has admitted them.
pub struct Caller {
    pub app: Arc<App>,
    pub who: Principal,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(head: &mut Parts, app: &Arc<App>) -> Result<Self, Self::Rejection> {
        let Extension(who) = Extension::from_request_parts(head, app).await?;
        Ok(Self { app: Arc::clone(app), who })
    }
}
