//! What the routes of points answer to a request that is refused, or that failed.

use axum::response::{IntoResponse, Response};
use raingauge_app as app;
use raingauge_awarding as awarding;
use raingauge_core::code::{Code, Refusal};
use raingauge_documents as documents;
use raingauge_http::Problem;
use raingauge_ports::points::{self as ports, QueueError};
use raingauge_replay as replay;
use serde_json::{Value, json};

/// A refusal, as the HTTP door writes it.
#[derive(Debug)]
pub struct Refused(pub Problem);

pub type Answer<T = Response> = Result<T, Refused>;

impl Refused {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Problem::new(code, detail))
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

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(app::Problem::from(refusal).into())
    }
}

impl From<documents::Error> for Refused {
    fn from(error: documents::Error) -> Self {
        Self(app::Problem::from(error).into())
    }
}

impl From<awarding::Error> for Refused {
    fn from(error: awarding::Error) -> Self {
        let problem = app::Problem::new(code_of(&error), error.to_string());
        Self(match error {
            awarding::Error::Busy { retry_after } => problem.retry_after(retry_after).into(),
            _ => problem.into(),
        })
    }
}

impl From<replay::Error> for Refused {
    fn from(error: replay::Error) -> Self {
        match error {
            replay::Error::Invalid(problems) => {
                Self(app::Problem::invalid(Code::ProgrammeInvalid, &problems).into())
            }
            error => Self(app::Problem::from(error).into()),
        }
    }
}

impl From<QueueError> for Refused {
    fn from(error: QueueError) -> Self {
        Self::new(code_of_queue(&error), error.to_string())
    }
}

/// The code of an error of the ledger.
fn code_of(error: &awarding::Error) -> Code {
    use awarding::Error;

    match error {
        Error::Busy { .. } => Code::LedgerBusy,
        Error::Closed(_) => Code::LedgerClosed,
        Error::TooLarge(_) => Code::TooManyAwards,
        Error::Refused(refusal) => refusal.code,
        Error::Queue(error) => code_of_queue(error),
        Error::Books(ports::Error::Full { .. }) => Code::DiskFull,
        _ => Code::Unavailable,
    }
}

fn code_of_queue(error: &QueueError) -> Code {
    match error {
        QueueError::TooLarge(_) => Code::BodyTooLarge,
        QueueError::Full { .. } => Code::DiskFull,
        _ => Code::Unavailable,
    }
}

/// The result of an item of a batch that was refused.
pub fn item(refusal: &Refusal) -> Value {
    json!({ "error": { "code": refusal.code, "detail": refusal.detail } })
}

/// The result of an item of a batch that failed. Sending it again is safe.
pub fn failed_item(error: &awarding::Error) -> Value {
    item(&Refusal::new(code_of(error), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_whether_the_ledger_or_a_queue_finds_it() {
        let full = ports::Error::Full { free_bytes: 1, reserve_bytes: 2 };
        assert_eq!(code_of(&full.into()), Code::DiskFull);
        let full = QueueError::Full { free_bytes: 1, reserve_bytes: 2 };
        assert_eq!(code_of(&full.into()), Code::DiskFull);
        let failed = ports::Error::NotTaken("the sync failed".to_owned());
        assert_eq!(code_of(&failed.into()), Code::Unavailable);
    }
}
