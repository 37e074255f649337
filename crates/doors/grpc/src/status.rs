//! Errors as gRPC tells them: the status says what kind it is, the metadata `raingauge-code` which
//! one.

use raingauge_app::Problem;
use raingauge_core::code::{Code, Kind, Refusal};
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};

/// The metadata that carries the code of an error.
pub const CODE: &str = "raingauge-code";
/// The metadata that clients with a retry policy follow (gRFC A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// The status of a call that was refused.
pub fn refused(problem: impl Into<Problem>) -> Status {
    let Problem { refusal: Refusal { code, detail }, retry_after, .. } = problem.into();
    metrics::counter!("raingauge_errors_total", "code" => code.as_str()).increment(1);

    let mut metadata = MetadataMap::new();
    metadata.insert(CODE, MetadataValue::from_static(code.as_str()));
    if let Some(after) = retry_after {
        metadata.insert(PUSHBACK, MetadataValue::from(after.as_millis() as u64));
    }
    Status::with_metadata(grpc_status(code), detail, metadata)
}

/// The status that stands for a code.
fn grpc_status(code: Code) -> tonic::Code {
    match code.kind() {
        _ if code == Code::RouteUnknown => tonic::Code::Unimplemented,
        Kind::Unauthenticated => tonic::Code::Unauthenticated,
        Kind::Forbidden => tonic::Code::PermissionDenied,
        Kind::NotFound => tonic::Code::NotFound,
        Kind::Busy => tonic::Code::ResourceExhausted,
        Kind::Unavailable => tonic::Code::Unavailable,
        Kind::Pending | Kind::Late => tonic::Code::DeadlineExceeded,
        Kind::Failed => tonic::Code::Internal,
        Kind::Malformed
        | Kind::NotAllowed
        | Kind::TooSlow
        | Kind::Conflict
        | Kind::Outdated
        | Kind::Unconditional
        | Kind::TooLarge
        | Kind::Unsupported
        | Kind::Unacceptable => tonic::Code::InvalidArgument,
    }
}

/// The answer to a method that is not there.
pub fn method_unknown() -> Status {
    let detail = "there is no such method; reflection and proto/raingauge/v1 list what there is";
    refused(Refusal::new(Code::RouteUnknown, detail))
}

/// The name of a status, as the specification of gRPC writes it.
pub fn name(code: tonic::Code) -> &'static str {
    match code {
        tonic::Code::Ok => "OK",
        tonic::Code::Cancelled => "CANCELLED",
        tonic::Code::Unknown => "UNKNOWN",
        tonic::Code::InvalidArgument => "INVALID_ARGUMENT",
        tonic::Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        tonic::Code::NotFound => "NOT_FOUND",
        tonic::Code::AlreadyExists => "ALREADY_EXISTS",
        tonic::Code::PermissionDenied => "PERMISSION_DENIED",
        tonic::Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        tonic::Code::FailedPrecondition => "FAILED_PRECONDITION",
        tonic::Code::Aborted => "ABORTED",
        tonic::Code::OutOfRange => "OUT_OF_RANGE",
        tonic::Code::Unimplemented => "UNIMPLEMENTED",
        tonic::Code::Internal => "INTERNAL",
        tonic::Code::Unavailable => "UNAVAILABLE",
        tonic::Code::DataLoss => "DATA_LOSS",
        tonic::Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
