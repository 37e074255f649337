//! Why something was refused: a stable code, which programs read, and a sentence, which people
//! read.
//!
//! Every door answers the [`Kind`] of a [`Code`] with a status of its own. `docs/api.md` and
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

/// What a caller can make of a refusal. Each door answers each kind with a status of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request was carried out, and its effect is still to come.
    Pending,
    /// The request cannot be read.
    Malformed,
    Unauthenticated,
    Forbidden,
    NotFound,
    /// The address takes requests of other methods.
    NotAllowed,
    /// The request did not arrive in time.
    TooSlow,
    /// The state of what the request is about rules it out.
    Conflict,
    /// The request is about a version that is no longer the newest.
    Outdated,
    /// The request must name the version that it is about.
    Unconditional,
    TooLarge,
    /// The encoding or the media type of the body is not taken.
    Unsupported,
    /// What the request holds can be read, but is not acceptable: an event, a range, a row.
    Unacceptable,
    /// The caller sends more than fits at the moment.
    Busy,
    /// A defect of the server.
    Failed,
    Unavailable,
    /// The answer did not come in time.
    Late,
}

/// Declares [`Code`]: for each kind its variants, with the names that users see.
macro_rules! codes {
    ($($kind:ident: $($variant:ident = $name:literal),+;)+) => {
        /// Every code that a user can see. Names never change; new ones may come.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($($variant,)+)+
        }

        impl Code {
            pub const ALL: &[Self] = &[$($(Self::$variant,)+)+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(Self::$variant => $name,)+)+
                }
            }

            pub const fn kind(self) -> Kind {
                match self {
                    $($(Self::$variant)|+ => Kind::$kind,)+
                }
            }

            /// Parses a name. `None` when this build does not know it, as a newer server's may be.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($($name => Some(Self::$variant),)+)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    Pending:
        NotAppliedYet = "not_applied_yet", NotDecidedYet = "not_decided_yet",
        NotAwardedYet = "not_awarded_yet";
    Malformed:
        IdempotencyKeyMalformed = "idempotency_key_malformed",
        GranularityUnknown = "granularity_unknown", EtagMalformed = "etag_malformed",
        ParameterUnknown = "parameter_unknown", LimitOutOfRange = "limit_out_of_range",
        ReasonMissing = "reason_missing", RequestMalformed = "request_malformed",
        JsonMalformed = "json_malformed", TlsRequired = "tls_required",
        ReasonTooLong = "reason_too_long", GzipMalformed = "gzip_malformed",
        WaitUnknown = "wait_unknown";
    Unauthenticated: TokenMissing = "token_missing", TokenUnknown = "token_unknown";
    Forbidden:
        ApprovalNeeded = "approval_needed", SecondPersonNeeded = "second_person_needed",
        SourceForeign = "source_foreign", ScopeMissing = "scope_missing",
        ForeignRequest = "foreign_request";
    NotFound:
        KeyUnknown = "key_unknown", CounterUnknown = "counter_unknown",
        BackfillUnknown = "backfill_unknown", DraftUnknown = "draft_unknown",
        DocumentUnknown = "document_unknown", RolloutUnknown = "rollout_unknown",
        ActionUnknown = "action_unknown", JobUnknown = "job_unknown",
        ProgrammeUnknown = "programme_unknown", RuleUnknown = "rule_unknown",
        TierUnknown = "tier_unknown", PartnerUnknown = "partner_unknown",
        HoldUnknown = "hold_unknown", ReferenceUnknown = "reference_unknown",
        EntryUnknown = "entry_unknown", RewardUnknown = "reward_unknown",
        QueueUnknown = "queue_unknown", MaintenanceAbsent = "maintenance_absent",
        RoleAbsent = "role_absent", RouteUnknown = "route_unknown";
    NotAllowed: MethodNotAllowed = "method_not_allowed";
    TooSlow: BodyTooSlow = "body_too_slow";
    Conflict:
        IdTaken = "id_taken", TooManyVersions = "too_many_versions",
        CounterNotArchived = "counter_not_archived", DraftChanged = "draft_changed",
        DraftEnded = "draft_ended", DraftConflict = "draft_conflict",
        TooManyDrafts = "too_many_drafts", ChangeRefused = "change_refused",
        RolloutRefused = "rollout_refused", ActionRefused = "action_refused",
        InsufficientPoints = "insufficient_points", BudgetSpent = "budget_spent",
        PartnerLimit = "partner_limit", KeyReused = "key_reused", HoldResolved = "hold_resolved",
        ExceedsHold = "exceeds_hold", EntryNotReversible = "entry_not_reversible",
        WalletClosed = "wallet_closed", WalletFull = "wallet_full", ArrearsFloor = "arrears_floor",
        TransactionRefused = "transaction_refused", RewardSoldOut = "reward_sold_out",
        CompactionRunning = "compaction_running", CompactionIdle = "compaction_idle";
    Outdated: VersionMismatch = "version_mismatch";
    Unconditional: RevisionMissing = "revision_missing";
    TooLarge:
        TooManyAwards = "too_many_awards", BodyTooLarge = "body_too_large",
        TooManyEvents = "too_many_events", TooManyBuckets = "too_many_buckets",
        TooManyRanges = "too_many_ranges";
    Unsupported: EncodingUnknown = "encoding_unknown", MediaTypeUnknown = "media_type_unknown";
    Unacceptable:
        EventMalformed = "event_malformed", EventTooLarge = "event_too_large",
        SpecversionUnsupported = "specversion_unsupported", AttributeMissing = "attribute_missing",
        AttributeTooLong = "attribute_too_long", TimeInvalid = "time_invalid",
        TimeInFuture = "time_in_future", TooLate = "too_late", BucketMalformed = "bucket_malformed",
        KeyTooLong = "key_too_long", TimeNotAligned = "time_not_aligned",
        TooManyKeys = "too_many_keys", CountOutOfRange = "count_out_of_range",
        IdempotencyKeyReused = "idempotency_key_reused", TooManyRejected = "too_many_rejected",
        KeyMissing = "key_missing", TimeOutOfRange = "time_out_of_range",
        RangeBackwards = "range_backwards", RangeTooLong = "range_too_long",
        RangeExpired = "range_expired", Overflow = "overflow", TimezoneUnknown = "timezone_unknown",
        TimezoneUnaligned = "timezone_unaligned", SeriesTooLong = "series_too_long",
        CounterInvalid = "counter_invalid", KindUnknown = "kind_unknown",
        ConfigurationInvalid = "configuration_invalid", PolicyInvalid = "policy_invalid",
        RolloutInvalid = "rollout_invalid", CampaignInvalid = "campaign_invalid",
        DocumentInvalid = "document_invalid", TableInvalid = "table_invalid",
        ProgrammeInvalid = "programme_invalid", MemberInvalid = "member_invalid",
        PointsInvalid = "points_invalid", FactorMissing = "factor_missing",
        TooPrecise = "too_precise", RowCells = "row_cells", RowMalformed = "row_malformed",
        RowNotUtf8 = "row_not_utf8", RowTooLong = "row_too_long", QuoteUnclosed = "quote_unclosed",
        TimeMissing = "time_missing", FieldInvalid = "field_invalid", Refused = "refused",
        HeaderMalformed = "header_malformed", BatchUnsupported = "batch_unsupported",
        PartitionWrong = "partition_wrong", ControlUnsigned = "control_unsigned",
        ControlKindUnknown = "control_kind_unknown", ControlMalformed = "control_malformed",
        ControlSignatureInvalid = "control_signature_invalid", ControlExpired = "control_expired";
    Busy:
        ChangedTooOften = "changed_too_often", TooManyJobs = "too_many_jobs",
        LedgerBusy = "ledger_busy", BodiesInFlight = "bodies_in_flight",
        ScansWaiting = "scans_waiting", LogBusy = "log_busy";
    Failed: Failed = "failed";
    Unavailable:
        Unavailable = "unavailable", Overloaded = "overloaded", LedgerClosed = "ledger_closed",
        TokensUnavailable = "tokens_unavailable", ConnectionsFull = "connections_full",
        WriterLagging = "writer_lagging", DiskFull = "disk_full", ClockUnsound = "clock_unsound",
        NotReady = "not_ready";
    Late: DeadlineExceeded = "deadline_exceeded", Timeout = "timeout";
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
