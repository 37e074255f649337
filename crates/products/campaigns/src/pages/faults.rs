//! Errors of services, as pages show them.

use axum::http::StatusCode;
use raingauge_portal::Fault;
use raingauge_ports::campaigns::Error;

/// The ledger could not be read, or not be changed.
pub fn ledger(error: Error) -> Fault {
    let title = "The ledger of campaigns is out of reach";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, title, error.to_string())
}
