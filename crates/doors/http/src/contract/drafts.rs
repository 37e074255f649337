//! Drafts: proposed changes and their review.

use super::parameters::{path_id, query};
use super::{Operation, Refusal, Shared};
use raingauge_ports::drafts::Draft as StoredDraft;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("drafts", id, summary)
}

/// An operation on the draft in the path.
fn of_draft(id: &str, summary: &str) -> Operation {
    operation(id, summary).parameter(path_id(7)).refuses(&[Refusal::DraftUnknown])
}

/// A change of the draft in the path, at the revision that was read.
fn changing(id: &str, summary: &str) -> Operation {
    let revision = json!({
        "name": "if-match", "in": "header", "required": true,
        "description": "The ETag of the draft that was read: what is decided is what was seen.",
        "schema": { "type": "string" }, "example": "\"1\"",
    });
    of_draft(id, summary)
        .parameter(revision)
        .answers::<Draft>(200, "The draft.", Value::Null)
        .etag(200, "draft", 1)
        .refuses(&[
            Refusal::DraftRefused,
            Refusal::DraftInvalid,
            Refusal::RevisionMissing,
            Refusal::TooManyRequests,
        ])
}

fn deciding(id: &str, summary: &str) -> Operation {
    changing(id, summary).takes(&[Shared::Reason])
}

pub fn list() -> Operation {
    let states = json!({ "type": "string", "enum": ["open", "ended"], "default": "open" });
    operation("listDrafts", "Proposed changes, the last changed first")
        .parameter(query("state", "The open ones, or the newest of the others.", states))
        .text("Without those of kinds that the token may not read.")
        .answers::<Drafts>(200, "The drafts.", Value::Null)
}

pub fn create() -> Operation {
    let text = "A new document has the base version 0, and an `id` in its configuration only where \
                it asks for one. A change names the `id` of its document, and the version that it \
                starts from.";
    let example = json!({
        "kind": "counter",
        "configuration": {
            "name": "count_rain_drops",
            "template": "rain_drops:city:{city_id}",
            "eventType": "rain_drop",
        },
    });

    operation("createDraft", "Propose a change")
        .text(text)
        .body::<NewDraft>(example)
        .answers::<Draft>(201, "The draft.", Value::Null)
        .etag(201, "draft", 1)
        .location("draft")
        .refuses(&[Refusal::DraftUnknown, Refusal::DraftRefused, Refusal::DraftInvalid])
}

pub fn read() -> Operation {
    of_draft("readDraft", "Read a draft")
        .answers::<Draft>(200, "The draft.", Value::Null)
        .etag(200, "draft", 1)
}

pub fn edit() -> Operation {
    changing("editDraft", "Change what a draft proposes")
        .text("It stays a draft of the same document, and has to be submitted again.")
        .body::<DraftEdit>(
            json!({ "configuration": { "name": "n", "template": "t", "eventType": "e" } }),
        )
}

pub fn submit() -> Operation {
    deciding("submitDraft", "Send a draft for review").text("`x-reason` says why it is wanted.")
}

pub fn approve() -> Operation {
    deciding("approveDraft", "Approve a draft, which takes effect at once")
        .text("`x-reason` is a comment. With `portal.approval`, only a second person may.")
}

pub fn reject() -> Operation {
    deciding("rejectDraft", "Send a draft back").text("`x-reason` says why.")
}

pub fn withdraw() -> Operation {
    deciding("withdrawDraft", "End a draft without any effect")
}

pub fn apply() -> Operation {
    deciding("applyDraft", "Let a draft take effect without a review")
        .text("`x-reason` says why. Refused with `portal.approval`.")
}

#[derive(Serialize, ToSchema)]
pub struct Drafts {
    pub drafts: Vec<Draft>,
}

/// A proposed configuration of a document. Names of tokens begin with `token:`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    #[schema(value_type = i128)]
    pub id: u64,
    /// Grows by one with each change; also the header `ETag`.
    #[schema(value_type = i128)]
    pub revision: u32,
    /// `draft`, `review`, `rejected`, `applied` or `withdrawn`.
    #[schema(value_type = String)]
    pub state: &'static str,
    /// The kind of the document, such as `counter`.
    pub kind: String,
    #[schema(value_type = Object)]
    pub configuration: Value,
    /// The version of the document that the draft starts from; 0 for a new document.
    #[schema(value_type = i128)]
    pub base_version: u32,
    /// The version that the draft became; 0 before.
    #[schema(value_type = i128)]
    pub applied_version: u32,
    pub author: String,
    /// Everybody who wrote a part of it; none of them may approve it.
    pub contributors: Vec<String>,
    pub reason: String,
    pub reviewer: String,
    pub comment: String,
    /// Seconds since 1970.
    pub created_at: i64,
    pub changed_at: i64,
    pub changed_by: String,
}

impl From<StoredDraft> for Draft {
    fn from(draft: StoredDraft) -> Self {
        let contributors = draft.writers().into_iter().map(str::to_owned).collect();
        Self {
            id: draft.id,
            revision: draft.revision,
            state: draft.state.name(),
            kind: draft.kind,
            configuration: draft.configuration,
            base_version: draft.base_version,
            applied_version: draft.applied_version,
            author: draft.author,
            contributors,
            reason: draft.reason,
            reviewer: draft.reviewer,
            comment: draft.comment,
            created_at: draft.created_at,
            changed_at: draft.changed_at,
            changed_by: draft.changed_by,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewDraft {
    pub kind: String,
    /// As the kind defines it; of a counter, the members of `CounterDraft`.
    #[schema(value_type = Object)]
    pub configuration: Value,
    #[serde(default)]
    #[schema(value_type = i128, required = false, minimum = 0)]
    pub base_version: u32,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftEdit {
    #[schema(value_type = Object)]
    pub configuration: Value,
    /// The version to start from; without it, the draft keeps its own.
    #[schema(value_type = i128, required = false, minimum = 0)]
    pub base_version: Option<u32>,
}
