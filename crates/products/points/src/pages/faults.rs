//! Errors of services, as pages show them.

use axum::http::StatusCode;
use raingauge_awarding as awarding;
use raingauge_core::code::Refusal;
use raingauge_portal::Fault;
use raingauge_ports::points::QueueError;

/// The ledger could not be read, or not be changed.
pub fn ledger(error: awarding::Error) -> Fault {
    let advice = error.to_string();
    let (status, title) = match error {
        awarding::Error::Busy { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, "The ledger of points is busy")
        }
        awarding::Error::TooLarge(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "This is too much at once")
        }
        awarding::Error::Refused(refusal) => return refused(refusal),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "The ledger of points is out of reach"),
    };
    Fault::new(status, title, advice)
}

/// What the ledger refuses, with its own words.
pub fn refused(refusal: Refusal) -> Fault {
    Fault::new(StatusCode::UNPROCESSABLE_ENTITY, "The ledger refuses this", refusal.detail)
}

/// The journal could not be read.
pub fn books(error: impl std::fmt::Display) -> Fault {
    let title = "The ledger of points is out of reach";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, title, error.to_string())
}

pub fn queue(error: QueueError) -> Fault {
    let title = "The queues of points are out of reach";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, title, error.to_string())
}
