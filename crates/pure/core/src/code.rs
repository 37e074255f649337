//! Why something was refused: a stable code, which programs read, and a sentence, which people
//! read.
//!
//! Every door maps a [`Code`] to its own status, with a `match` that names each. `docs/api.md` and
//! `docs/import.md` say when each is answered.

use serde::{Serialize, Serializer};

/// Why something was refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub code: Code,
    pub detail: String,
}

impl Refusal {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Declares [`Code`]: each variant with the name that users see.
macro_rules! codes {
    ($($variant:ident = $name:literal,)+) => {
        /// Every code that a user can see. Names never change; new ones may come.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($variant,)+
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Parses a name. `None` when this build does not know it, as a newer server's may be.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    EventMalformed = "event_malformed",
    EventTooLarge = "event_too_large",
    SpecversionUnsupported = "specversion_unsupported",
    AttributeMissing = "attribute_missing",
    AttributeTooLong = "attribute_too_long",
    TimeInvalid = "time_invalid",
    TimeInFuture = "time_in_future",
    TooLate = "too_late",

    BucketMalformed = "bucket_malformed",
    KeyUnknown = "key_unknown",
    KeyTooLong = "key_too_long",
    TimeNotAligned = "time_not_aligned",
    TooManyKeys = "too_many_keys",
    CountOutOfRange = "count_out_of_range",

    IdempotencyKeyMalformed = "idempotency_key_malformed",
    IdempotencyKeyReused = "idempotency_key_reused",
    TooManyRejected = "too_many_rejected",

    KeyMissing = "key_missing",
    TimeOutOfRange = "time_out_of_range",
    RangeBackwards = "range_backwards",
    RangeTooLong = "range_too_long",
    RangeExpired = "range_expired",
    Overflow = "overflow",
    Unavailable = "unavailable",
    Overloaded = "overloaded",
    DeadlineExceeded = "deadline_exceeded",

    GranularityUnknown = "granularity_unknown",
    TimezoneUnknown = "timezone_unknown",
    TimezoneUnaligned = "timezone_unaligned",
    SeriesTooLong = "series_too_long",

    CounterInvalid = "counter_invalid",
    CounterUnknown = "counter_unknown",
    IdTaken = "id_taken",
    VersionMismatch = "version_mismatch",
    ChangedTooOften = "changed_too_often",
    TooManyVersions = "too_many_versions",
    EtagMalformed = "etag_malformed",
    ParameterUnknown = "parameter_unknown",

    LimitOutOfRange = "limit_out_of_range",

    CounterNotArchived = "counter_not_archived",

    Failed = "failed",

    BackfillUnknown = "backfill_unknown",

    DraftUnknown = "draft_unknown",
    DocumentUnknown = "document_unknown",
    DraftChanged = "draft_changed",
    DraftEnded = "draft_ended",
    DraftConflict = "draft_conflict",
    TooManyDrafts = "too_many_drafts",
    ChangeRefused = "change_refused",
    KindUnknown = "kind_unknown",
    ConfigurationInvalid = "configuration_invalid",
    ReasonMissing = "reason_missing",
    RevisionMissing = "revision_missing",
    ApprovalNeeded = "approval_needed",
    SecondPersonNeeded = "second_person_needed",

    PolicyInvalid = "policy_invalid",

    RolloutInvalid = "rollout_invalid",
    RolloutRefused = "rollout_refused",
    RolloutUnknown = "rollout_unknown",

    CampaignInvalid = "campaign_invalid",
    DocumentInvalid = "document_invalid",
    TableInvalid = "table_invalid",
    ActionUnknown = "action_unknown",
    ActionRefused = "action_refused",
    JobUnknown = "job_unknown",
    TooManyJobs = "too_many_jobs",

    ProgrammeUnknown = "programme_unknown",
    ProgrammeInvalid = "programme_invalid",
    MemberInvalid = "member_invalid",
    PointsInvalid = "points_invalid",
    RuleUnknown = "rule_unknown",
    TierUnknown = "tier_unknown",
    FactorMissing = "factor_missing",
    TooPrecise = "too_precise",
    InsufficientPoints = "insufficient_points",
    BudgetSpent = "budget_spent",
    PartnerUnknown = "partner_unknown",
    PartnerLimit = "partner_limit",
    SourceForeign = "source_foreign",
    KeyReused = "key_reused",
    HoldUnknown = "hold_unknown",
    HoldResolved = "hold_resolved",
    ExceedsHold = "exceeds_hold",
    ReferenceUnknown = "reference_unknown",
    EntryNotReversible = "entry_not_reversible",
    EntryUnknown = "entry_unknown",
    WalletClosed = "wallet_closed",
    WalletFull = "wallet_full",
    ArrearsFloor = "arrears_floor",
    TransactionRefused = "transaction_refused",
    RewardUnknown = "reward_unknown",
    RewardSoldOut = "reward_sold_out",
    QueueUnknown = "queue_unknown",
    TooManyAwards = "too_many_awards",
    LedgerBusy = "ledger_busy",
    LedgerClosed = "ledger_closed",

    CompactionRunning = "compaction_running",
    CompactionIdle = "compaction_idle",
    MaintenanceAbsent = "maintenance_absent",

    TokenMissing = "token_missing",
    TokenUnknown = "token_unknown",
    TokensUnavailable = "tokens_unavailable",
    ScopeMissing = "scope_missing",
    ForeignRequest = "foreign_request",
    NotAppliedYet = "not_applied_yet",
    NotDecidedYet = "not_decided_yet",
    NotAwardedYet = "not_awarded_yet",
    RoleAbsent = "role_absent",
    RouteUnknown = "route_unknown",
    MethodNotAllowed = "method_not_allowed",
    Timeout = "timeout",
    RequestMalformed = "request_malformed",
    JsonMalformed = "json_malformed",
    TlsRequired = "tls_required",
    ConnectionsFull = "connections_full",
    ReasonTooLong = "reason_too_long",
    BodyTooLarge = "body_too_large",
    BodyTooSlow = "body_too_slow",
    BodiesInFlight = "bodies_in_flight",
    ScansWaiting = "scans_waiting",
    LogBusy = "log_busy",
    WriterLagging = "writer_lagging",
    DiskFull = "disk_full",
    ClockUnsound = "clock_unsound",
    NotReady = "not_ready",
    GzipMalformed = "gzip_malformed",
    EncodingUnknown = "encoding_unknown",
    MediaTypeUnknown = "media_type_unknown",
    WaitUnknown = "wait_unknown",
    TooManyEvents = "too_many_events",
    TooManyBuckets = "too_many_buckets",
    TooManyRanges = "too_many_ranges",

    RowCells = "row_cells",
    RowMalformed = "row_malformed",
    RowNotUtf8 = "row_not_utf8",
    RowTooLong = "row_too_long",
    QuoteUnclosed = "quote_unclosed",
    TimeMissing = "time_missing",
    FieldInvalid = "field_invalid",
    Refused = "refused",

    HeaderMalformed = "header_malformed",
    BatchUnsupported = "batch_unsupported",
    PartitionWrong = "partition_wrong",
    ControlUnsigned = "control_unsigned",
    ControlKindUnknown = "control_kind_unknown",
    ControlMalformed = "control_malformed",
    ControlSignatureInvalid = "control_signature_invalid",
    ControlExpired = "control_expired",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_name_and_is_parsed_from_it() {
        let mut names = std::collections::HashSet::new();
        for code in Code::ALL {
            let name = code.as_str();
            assert!(names.insert(name), "{name} stands for two codes");
            assert_eq!(Code::parse(name), Some(*code));
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{name}\""));
        }
        assert_eq!(Code::parse("no_such_code"), None);
    }

    #[test]
    fn a_refusal_stays_small() {
        // Results of range counts carry one in their error.
        assert!(size_of::<Refusal>() <= 4 * size_of::<usize>());
    }
}
