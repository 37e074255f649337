//! Errors as gRPC tells them: the status says what kind it is, the metadata `raingauge-code` which
//! one.

use raingauge_app::Problem;
use raingauge_core::code::{Code, Refusal};
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
    match code {
        Code::TokenMissing | Code::TokenUnknown => tonic::Code::Unauthenticated,

        Code::ApprovalNeeded
        | Code::ForeignRequest
        | Code::ScopeMissing
        | Code::SecondPersonNeeded
        | Code::SourceForeign => tonic::Code::PermissionDenied,

        Code::ActionUnknown
        | Code::BackfillUnknown
        | Code::CounterUnknown
        | Code::DocumentUnknown
        | Code::DraftUnknown
        | Code::EntryUnknown
        | Code::HoldUnknown
        | Code::JobUnknown
        | Code::KeyUnknown
        | Code::MaintenanceAbsent
        | Code::PartnerUnknown
        | Code::ProgrammeUnknown
        | Code::QueueUnknown
        | Code::ReferenceUnknown
        | Code::RewardUnknown
        | Code::RoleAbsent
        | Code::RolloutUnknown
        | Code::RuleUnknown
        | Code::TierUnknown => tonic::Code::NotFound,

        Code::RouteUnknown => tonic::Code::Unimplemented,

        Code::BodiesInFlight
        | Code::ChangedTooOften
        | Code::LedgerBusy
        | Code::LogBusy
        | Code::ScansWaiting
        | Code::TooManyJobs => tonic::Code::ResourceExhausted,

        Code::ClockUnsound
        | Code::ConnectionsFull
        | Code::DiskFull
        | Code::LedgerClosed
        | Code::NotReady
        | Code::Overloaded
        | Code::TokensUnavailable
        | Code::Unavailable
        | Code::WriterLagging => tonic::Code::Unavailable,

        Code::DeadlineExceeded
        | Code::NotAppliedYet
        | Code::NotAwardedYet
        | Code::NotDecidedYet
        | Code::Timeout => tonic::Code::DeadlineExceeded,

        Code::Failed => tonic::Code::Internal,

        Code::ActionRefused
        | Code::ArrearsFloor
        | Code::AttributeMissing
        | Code::AttributeTooLong
        | Code::BatchUnsupported
        | Code::BodyTooLarge
        | Code::BodyTooSlow
        | Code::BucketMalformed
        | Code::BudgetSpent
        | Code::CampaignInvalid
        | Code::ChangeRefused
        | Code::CompactionIdle
        | Code::CompactionRunning
        | Code::ConfigurationInvalid
        | Code::ControlExpired
        | Code::ControlKindUnknown
        | Code::ControlMalformed
        | Code::ControlSignatureInvalid
        | Code::ControlUnsigned
        | Code::CountOutOfRange
        | Code::CounterInvalid
        | Code::CounterNotArchived
        | Code::DocumentInvalid
        | Code::DraftChanged
        | Code::DraftConflict
        | Code::DraftEnded
        | Code::EncodingUnknown
        | Code::EntryNotReversible
        | Code::EtagMalformed
        | Code::EventMalformed
        | Code::EventTooLarge
        | Code::ExceedsHold
        | Code::FactorMissing
        | Code::FieldInvalid
        | Code::GranularityUnknown
        | Code::GzipMalformed
        | Code::HeaderMalformed
        | Code::HoldResolved
        | Code::IdTaken
        | Code::IdempotencyKeyMalformed
        | Code::IdempotencyKeyReused
        | Code::InsufficientPoints
        | Code::JsonMalformed
        | Code::KeyMissing
        | Code::KeyReused
        | Code::KeyTooLong
        | Code::KindUnknown
        | Code::LimitOutOfRange
        | Code::MediaTypeUnknown
        | Code::MemberInvalid
        | Code::MethodNotAllowed
        | Code::Overflow
        | Code::ParameterUnknown
        | Code::PartitionWrong
        | Code::PartnerLimit
        | Code::PointsInvalid
        | Code::PolicyInvalid
        | Code::ProgrammeInvalid
        | Code::QuoteUnclosed
        | Code::RangeBackwards
        | Code::RangeExpired
        | Code::RangeTooLong
        | Code::ReasonMissing
        | Code::ReasonTooLong
        | Code::Refused
        | Code::RequestMalformed
        | Code::RevisionMissing
        | Code::RewardSoldOut
        | Code::RolloutInvalid
        | Code::RolloutRefused
        | Code::RowCells
        | Code::RowMalformed
        | Code::RowNotUtf8
        | Code::RowTooLong
        | Code::SeriesTooLong
        | Code::SpecversionUnsupported
        | Code::TableInvalid
        | Code::TimeInFuture
        | Code::TimeInvalid
        | Code::TimeMissing
        | Code::TimeNotAligned
        | Code::TimeOutOfRange
        | Code::TimezoneUnaligned
        | Code::TimezoneUnknown
        | Code::TlsRequired
        | Code::TooLate
        | Code::TooManyAwards
        | Code::TooManyBuckets
        | Code::TooManyDrafts
        | Code::TooManyEvents
        | Code::TooManyKeys
        | Code::TooManyRanges
        | Code::TooManyRejected
        | Code::TooManyVersions
        | Code::TooPrecise
        | Code::TransactionRefused
        | Code::VersionMismatch
        | Code::WaitUnknown
        | Code::WalletClosed
        | Code::WalletFull => tonic::Code::InvalidArgument,
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
