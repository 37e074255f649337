//! What the routes of campaigns answer to a request that is refused, or that failed.

use axum::response::{IntoResponse, Response};
use raingauge_app as app;
use raingauge_core::code::Code;
use raingauge_core::counter;
use raingauge_deliveries as deliveries;
use raingauge_documents as documents;
use raingauge_http::Problem;
use raingauge_ports::campaigns::{self, MalformedActionId, TableError};
use raingauge_replay as replay;

/// A refusal, as the HTTP door writes it.
#[derive(Debug)]
pub struct Refused(pub Problem);

pub type Answer<T = Response> = Result<T, Refused>;

impl Refused {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Problem::new(code, detail))
    }

    /// A document or a request with these problems.
    pub fn invalid(code: Code, problems: &[counter::Problem]) -> Self {
        Self(app::Problem::invalid(code, problems).into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<campaigns::Error> for Refused {
    fn from(error: campaigns::Error) -> Self {
        Self(error.into())
    }
}

impl From<MalformedActionId> for Refused {
    fn from(error: MalformedActionId) -> Self {
        Self::new(Code::RequestMalformed, error.to_string())
    }
}

impl From<TableError> for Refused {
    fn from(error: TableError) -> Self {
        Self(error.into())
    }
}

impl From<documents::Error> for Refused {
    fn from(error: documents::Error) -> Self {
        Self(error.into())
    }
}

impl From<replay::Error> for Refused {
    fn from(error: replay::Error) -> Self {
        Self(error.into())
    }
}

impl From<deliveries::Error> for Refused {
    fn from(error: deliveries::Error) -> Self {
        let detail = error.to_string();
        match error {
            deliveries::Error::DestinationUnknown(_) => Self::new(Code::DocumentUnknown, detail),
            deliveries::Error::NotHttp(_) => Self::new(Code::ChangeRefused, detail),
            deliveries::Error::Ledger(error) => error.into(),
        }
    }
}
