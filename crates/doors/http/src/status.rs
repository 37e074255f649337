//! The HTTP status of each code.

use axum::http::StatusCode;
use raingauge_core::code::Code;

/// Returns the status of a request that was refused with a code.
pub fn status(code: Code) -> StatusCode {
    match code {
        Code::NotAppliedYet | Code::NotAwardedYet | Code::NotDecidedYet => StatusCode::ACCEPTED,

        Code::EtagMalformed
        | Code::GranularityUnknown
        | Code::GzipMalformed
        | Code::IdempotencyKeyMalformed
        | Code::JsonMalformed
        | Code::LimitOutOfRange
        | Code::ParameterUnknown
        | Code::ReasonMissing
        | Code::ReasonTooLong
        | Code::RequestMalformed
        | Code::TlsRequired
        | Code::WaitUnknown => StatusCode::BAD_REQUEST,

        Code::TokenMissing | Code::TokenUnknown => StatusCode::UNAUTHORIZED,

        Code::ApprovalNeeded
        | Code::ForeignRequest
        | Code::ScopeMissing
        | Code::SecondPersonNeeded
        | Code::SourceForeign => StatusCode::FORBIDDEN,

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
        | Code::RouteUnknown
        | Code::RuleUnknown
        | Code::TierUnknown => StatusCode::NOT_FOUND,

        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,

        Code::ActionRefused
        | Code::ArrearsFloor
        | Code::BudgetSpent
        | Code::ChangeRefused
        | Code::CompactionIdle
        | Code::CompactionRunning
        | Code::CounterNotArchived
        | Code::DraftChanged
        | Code::DraftConflict
        | Code::DraftEnded
        | Code::EntryNotReversible
        | Code::ExceedsHold
        | Code::HoldResolved
        | Code::IdTaken
        | Code::InsufficientPoints
        | Code::KeyReused
        | Code::PartnerLimit
        | Code::RewardSoldOut
        | Code::RolloutRefused
        | Code::TooManyDrafts
        | Code::TooManyVersions
        | Code::TransactionRefused
        | Code::WalletClosed
        | Code::WalletFull => StatusCode::CONFLICT,

        Code::VersionMismatch => StatusCode::PRECONDITION_FAILED,
        Code::RevisionMissing => StatusCode::PRECONDITION_REQUIRED,

        Code::BodyTooLarge
        | Code::TooManyAwards
        | Code::TooManyBuckets
        | Code::TooManyEvents
        | Code::TooManyRanges => StatusCode::PAYLOAD_TOO_LARGE,

        Code::EncodingUnknown | Code::MediaTypeUnknown => StatusCode::UNSUPPORTED_MEDIA_TYPE,

        Code::BodiesInFlight
        | Code::ChangedTooOften
        | Code::LedgerBusy
        | Code::LogBusy
        | Code::ScansWaiting
        | Code::TooManyJobs => StatusCode::TOO_MANY_REQUESTS,

        Code::Failed => StatusCode::INTERNAL_SERVER_ERROR,

        Code::ClockUnsound
        | Code::ConnectionsFull
        | Code::DiskFull
        | Code::LedgerClosed
        | Code::NotReady
        | Code::Overloaded
        | Code::TokensUnavailable
        | Code::Unavailable
        | Code::WriterLagging => StatusCode::SERVICE_UNAVAILABLE,

        Code::DeadlineExceeded | Code::Timeout => StatusCode::GATEWAY_TIMEOUT,

        // An event, a bucket, a range or a row that was readable but is not acceptable.
        Code::AttributeMissing
        | Code::AttributeTooLong
        | Code::BatchUnsupported
        | Code::BucketMalformed
        | Code::CampaignInvalid
        | Code::ConfigurationInvalid
        | Code::ControlExpired
        | Code::ControlKindUnknown
        | Code::ControlMalformed
        | Code::ControlSignatureInvalid
        | Code::ControlUnsigned
        | Code::CountOutOfRange
        | Code::CounterInvalid
        | Code::DocumentInvalid
        | Code::EventMalformed
        | Code::EventTooLarge
        | Code::FactorMissing
        | Code::FieldInvalid
        | Code::HeaderMalformed
        | Code::IdempotencyKeyReused
        | Code::KeyMissing
        | Code::KeyTooLong
        | Code::KindUnknown
        | Code::MemberInvalid
        | Code::Overflow
        | Code::PartitionWrong
        | Code::PointsInvalid
        | Code::PolicyInvalid
        | Code::ProgrammeInvalid
        | Code::QuoteUnclosed
        | Code::RangeBackwards
        | Code::RangeExpired
        | Code::RangeTooLong
        | Code::Refused
        | Code::RolloutInvalid
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
        | Code::TooLate
        | Code::TooManyKeys
        | Code::TooManyRejected
        | Code::TooPrecise => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
