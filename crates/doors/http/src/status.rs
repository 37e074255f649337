//! The HTTP status of each code.

use axum::http::StatusCode;
use raingauge_core::code::{Code, Kind};

/// Returns the status of a request that was refused with a code.
pub fn status(code: Code) -> StatusCode {
    match code.kind() {
        Kind::Pending => StatusCode::ACCEPTED,
        Kind::Malformed => StatusCode::BAD_REQUEST,
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::NotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Kind::TooSlow => StatusCode::REQUEST_TIMEOUT,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::Outdated => StatusCode::PRECONDITION_FAILED,
        Kind::Unconditional => StatusCode::PRECONDITION_REQUIRED,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Kind::Unacceptable => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::Busy => StatusCode::TOO_MANY_REQUESTS,
        Kind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Late => StatusCode::GATEWAY_TIMEOUT,
    }
}
