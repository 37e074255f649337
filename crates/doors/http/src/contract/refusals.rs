//! Refusals that several routes share: their status, when they occur, and their codes.

use crate::status::status;
use raingauge_core::code::Code;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

/// A problem document (RFC 9457).
#[derive(ToSchema)]
pub struct Problem {
    #[schema(rename = "type", format = "uri", examples("urn:raingauge:problem:key_unknown"))]
    pub kind: String,
    pub title: String,
    pub status: i128,
    /// Stable; docs/api.md lists them.
    pub code: String,
    /// What is wrong and what to do.
    pub detail: String,
}

macro_rules! refusals {
    ($($name:ident [$($code:ident),+] $description:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Refusal { $($name),+ }

        impl Refusal {
            const ALL: &[Self] = &[$(Self::$name),+];

            const fn description(self) -> &'static str {
                match self { $(Self::$name => $description),+ }
            }

            const fn codes(self) -> &'static [Code] {
                match self { $(Self::$name => &[$(Code::$code),+]),+ }
            }
        }
    };
}

refusals! {
    BadRequest [RequestMalformed, JsonMalformed, GzipMalformed, WaitUnknown,
        ParameterUnknown, EtagMalformed, GranularityUnknown, LimitOutOfRange,
        IdempotencyKeyMalformed, ReasonMissing, ReasonTooLong]
        "The request cannot be understood.";
    Unauthorized [TokenMissing, TokenUnknown]
        "Tokens are configured, and the request carries none, or an unknown one.";
    Forbidden [ScopeMissing, ForeignRequest, ApprovalNeeded, SecondPersonNeeded, SourceForeign]
        "The token lacks the scope of this route; or no token is asked for, and the request is \
         not one of this machine; or a draft needs a second person; or what is asked for is not \
         the partner's whose token it is.";
    KeyUnknown [KeyUnknown]
        "No counter that answers has a template that renders the key.";
    CounterUnknown [CounterUnknown] "There is no such counter, or it does not answer.";
    KeyNotErased [CounterUnknown, KeyUnknown]
        "There is no such counter, or its template renders other keys.";
    BackfillUnknown [BackfillUnknown] "The counter has had no backfill.";
    MaintenanceAbsent [MaintenanceAbsent, RoleAbsent]
        "This instance compacts nothing, or lacks the role.";
    RolloutUnknown [RolloutUnknown] "There is no such rollout.";
    BodyTooSlow [BodyTooSlow] "The body came too slowly, or stopped coming.";
    DraftUnknown [DraftUnknown, DocumentUnknown]
        "There is no such draft, or no such version of its document.";
    DraftRefused [DraftChanged, DraftEnded, DraftConflict, IdTaken, TooManyDrafts, ChangeRefused]
        "The draft has changed since it was read or has ended, its document has a newer version, \
         or a limit is reached.";
    DraftInvalid [KindUnknown, ConfigurationInvalid]
        "The kind is unknown, or the configuration is wrong.";
    RevisionMissing [RevisionMissing] "`If-Match` does not name the revision that was read.";
    IdTaken [IdTaken] "The id is in use.";
    TooManyVersions [TooManyVersions] "The counter has as many versions as there may be.";
    NotArchived [CounterNotArchived] "The counter is not archived.";
    CompactionRunning [CompactionRunning] "A compaction is running already.";
    CompactionIdle [CompactionIdle] "No compaction is running.";
    RolloutRefused [RolloutRefused]
        "Another rollout is running, or this one cannot do that now; the detail says why.";
    VersionMismatch [VersionMismatch] "Another change was made in the meantime.";
    TooLarge [BodyTooLarge, TooManyEvents, TooManyBuckets, TooManyRanges, TooManyAwards]
        "The body, or what is in it, exceeds a limit.";
    UnsupportedMediaType [MediaTypeUnknown, EncodingUnknown]
        "The content type or encoding is none of those that are taken.";
    RangeRefused [KeyMissing, KeyTooLong, TimeInvalid, TimeOutOfRange,
        RangeBackwards, RangeTooLong, RangeExpired, Overflow, SeriesTooLong,
        TimezoneUnknown, TimezoneUnaligned]
        "The range cannot be answered.";
    NotRepeatable [IdempotencyKeyReused, TooManyRejected]
        "The key was used for another request, or the answer is too long to be remembered with \
         it; nothing was set.";
    CounterInvalid [CounterInvalid]
        "The configuration is wrong; `problems` has everything that is.";
    PolicyInvalid [PolicyInvalid] "The policy is wrong; `problems` has everything that is.";
    RolloutInvalid [RolloutInvalid] "The plan is wrong; `problems` has everything that is.";
    TooManyRequests [LogBusy, BodiesInFlight, ScansWaiting, ChangedTooOften]
        "There is no room, or no turn, at the moment; nothing was taken.";
    Failed [Failed] "An error inside the server.";
    Unavailable [Unavailable, WriterLagging, DiskFull, ClockUnsound, Overloaded,
        ConnectionsFull, TokensUnavailable, LedgerClosed]
        "Counting has stopped, is too far behind to take more, or the disk is nearly full; or the \
         ledger of points is closed.";
    NotReady [NotReady]
        "The server is starting or stopping, or counting has stopped; the detail says what it \
         waits for, or why.";
    Timeout [Timeout, DeadlineExceeded]
        "The request took too long. Events of it may have been taken: sending them again is \
         safe.";
}

impl Refusal {
    /// Refusals by the guard of every route with a scope.
    pub const OF_SCOPES: &[Self] =
        &[Self::BadRequest, Self::Unauthorized, Self::Forbidden, Self::Unavailable, Self::Timeout];
    /// Refusals while a body is read.
    pub const OF_BODIES: &[Self] =
        &[Self::BodyTooSlow, Self::TooLarge, Self::UnsupportedMediaType, Self::TooManyRequests];

    /// Returns the status that all its codes share.
    pub fn status(self) -> u16 {
        status(self.codes()[0]).as_u16()
    }

    pub fn reference(self) -> Value {
        json!({ "$ref": format!("#/components/responses/{self:?}") })
    }

    fn document(self) -> Value {
        let mut members = json!({ "code": { "enum": self.codes() } });
        match self {
            Self::VersionMismatch => members["currentVersion"] = json!({ "type": "integer" }),
            Self::DraftRefused => members["currentVersion"] = json!({ "type": "integer" }),
            Self::CounterInvalid
            | Self::DraftInvalid
            | Self::PolicyInvalid
            | Self::RolloutInvalid => {
                let item = json!({ "$ref": "#/components/schemas/CounterProblem" });
                members["problems"] = json!({ "type": "array", "items": item });
            }
            _ => {}
        }

        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        let schema = json!({ "allOf": [problem, { "properties": members }] });
        let mut document = json!({
            "description": self.description(),
            "content": { "application/problem+json": { "schema": schema } },
        });

        if matches!(self, Self::TooManyRequests | Self::Unavailable) {
            document["headers"]["Retry-After"] = json!({
                "description": "Seconds to wait, where waiting helps.",
                "schema": { "type": "integer", "minimum": 1 },
            });
        }

        document
    }
}

/// Returns all of them, by name.
pub fn components() -> Map<String, Value> {
    Refusal::ALL.iter().map(|refusal| (format!("{refusal:?}"), refusal.document())).collect()
}

/// Returns the schemas that they use.
pub fn schemas() -> [(String, Value); 2] {
    [
        ("Problem".to_owned(), json!(Problem::schema())),
        ("CounterProblem".to_owned(), json!(CounterProblem::schema())),
    ]
}

#[derive(ToSchema)]
pub struct CounterProblem {
    /// The member that is wrong.
    pub field: String,
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_a_refusal_have_one_status() {
        for refusal in Refusal::ALL {
            for code in refusal.codes() {
                assert_eq!(status(*code).as_u16(), refusal.status(), "{refusal:?} {code:?}");
            }
        }
    }
}
