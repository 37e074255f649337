//! What the routes of campaigns answer to a request that is refused, or that failed.

use axum::response::{IntoResponse, Response};
use raingauge_app as app;
use raingauge_campaigns::documents::Kind;
use raingauge_core::code::Code;
use raingauge_core::counter;
use raingauge_deliveries as deliveries;
use raingauge_documents as documents;
use raingauge_http::Problem;
use raingauge_ports::campaigns::{self, MalformedActionId, TableError};
use raingauge_replay as replay;
use serde_json::json;
use std::time::Duration;

/// Advised wait while too many jobs wait.
const JOBS_RETRY_AFTER: Duration = Duration::from_secs(5);

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
        let code = match error {
            campaigns::Error::Full { .. } => Code::DiskFull,
            campaigns::Error::Invalid(_) => Code::Failed,
            _ => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<MalformedActionId> for Refused {
    fn from(error: MalformedActionId) -> Self {
        Self::new(Code::RequestMalformed, error.to_string())
    }
}

impl From<TableError> for Refused {
    fn from(error: TableError) -> Self {
        let code = match error {
            TableError::Replaced(_) => Code::ChangeRefused,
            TableError::TooLarge(_) => Code::BodyTooLarge,
            TableError::Full { .. } => Code::DiskFull,
            _ => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<documents::Error> for Refused {
    fn from(error: documents::Error) -> Self {
        use documents::Error;

        let detail = error.to_string();
        match error {
            Error::NotFound { .. } | Error::VersionUnknown { .. } | Error::KindUnknown(_) => {
                Self::new(Code::DocumentUnknown, detail)
            }
            Error::Taken { .. } => Self::new(Code::IdTaken, detail),
            Error::Conflict { current, .. } => {
                let problem = Problem::new(Code::VersionMismatch, detail);
                Self(problem.with("currentVersion", json!(current)))
            }
            Error::Invalid { kind, problems } => Self::invalid(code_of(&kind), &problems),
            Error::Refused(_) => Self::new(Code::ChangeRefused, detail),
            Error::ApprovalNeeded(_) => Self::new(Code::ApprovalNeeded, detail),
            Error::Row { .. } | Error::Upload(_) => Self::new(Code::TableInvalid, detail),
            Error::Table(error) => error.into(),
            Error::Log(error) => Self(app::Problem::from(error).into()),
            Error::Store(_) | Error::NotInEffect { .. } => Self::new(Code::Unavailable, detail),
        }
    }
}

/// The code of a document that is wrong. Campaigns have one of their own.
pub fn code_of(kind: &str) -> Code {
    if kind == Kind::Campaign.name() { Code::CampaignInvalid } else { Code::DocumentInvalid }
}

impl From<replay::Error> for Refused {
    fn from(error: replay::Error) -> Self {
        use replay::Error;

        let detail = error.to_string();
        match error {
            Error::Invalid(problems) => Self::invalid(Code::CampaignInvalid, &problems),
            Error::UnknownCampaign(_) => Self::new(Code::DocumentUnknown, detail),
            Error::UnknownJob(_) => Self::new(Code::JobUnknown, detail),
            Error::TooManyJobs => {
                let problem = app::Problem::new(Code::TooManyJobs, detail);
                Self(problem.retry_after(JOBS_RETRY_AFTER).into())
            }
            Error::TooLarge(_) => Self::new(Code::BodyTooLarge, detail),
            Error::Event { .. } => Self::new(Code::EventMalformed, detail),
            Error::Busy(full) => Self(app::Problem::from(full).into()),
            Error::Log(error) => Self(app::Problem::from(error).into()),
            Error::Ledger(error) => error.into(),
            Error::Documents(_) => Self::new(Code::Unavailable, detail),
            Error::Cancelled | Error::Failed(_) => Self::new(Code::Failed, detail),
        }
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
