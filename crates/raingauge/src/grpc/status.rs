//! Errors as gRPC tells them: the status says what kind it is, the metadata `raingauge-code` which one.

use crate::http::problem::Problem;
use axum::http::StatusCode;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// The metadata that carries the code of an error.
pub const CODE: &str = "raingauge-code";
/// The metadata that clients with a retry policy follow (gRFC A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// What the HTTP door would answer as a problem document.
impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        metrics::counter!("raingauge_errors_total", "code" => problem.code).increment(1);
        let mut metadata = MetadataMap::new();
        metadata.insert(CODE, MetadataValue::from_static(problem.code));
        if let Some(after) = problem.retry_after {
            metadata.insert(PUSHBACK, MetadataValue::from(after.as_millis() as u64));
        }
        Self::with_metadata(code_of(problem.status), problem.detail, metadata)
    }
}

impl From<Box<Problem>> for Status {
    fn from(problem: Box<Problem>) -> Self {
        Self::from(*problem)
    }
}

/// The kind of a problem, of those that methods here can have.
fn code_of(status: StatusCode) -> Code {
    match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::NOT_IMPLEMENTED => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        StatusCode::GATEWAY_TIMEOUT => Code::DeadlineExceeded,
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Internal,
    }
}

/// The answer to a method that is not there.
pub fn method_unknown() -> Status {
    let detail = "there is no such method; reflection and proto/raingauge/v1 list what there is";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "route_unknown", detail).into()
}

/// The name of a code, as the specification of gRPC writes it.
pub fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
