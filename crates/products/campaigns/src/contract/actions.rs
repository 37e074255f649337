//! Actions on their way, and the destinations that they go to.

use super::documents::Destination;
use super::usage::Cost;
use super::{number, operation, path_name, text};
use raingauge_core::code::Code;
use raingauge_http::{Operation, Refusal, Shared, query};
use raingauge_ports::campaigns::Status;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub fn list() -> Operation {
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": LEDGER_PAGE_LEN_MAX, "default": 100,
    });
    let statuses =
        json!({ "type": "string", "enum": Status::ALL.map(Status::name), "default": "pending" });
    operation("listActions", "Actions of one status, by destination and time")
        .parameter(query("status", "Their status.", statuses))
        .parameter(query("destination", "Those to this destination.", text()))
        .parameter(query("campaign", "Those of this campaign.", number()))
        .parameter(query("after", "The `next` of the page before.", text()))
        .parameter(query("limit", "Most actions of a page.", limit))
        .answers::<Actions>(200, "A page.", Value::Null)
}

/// An operation on the action in the path.
fn of_action(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("action", "act_3607a20a5c6e936874c9ec850d9ffaac"))
        .answers::<Action>(200, "The action.", Value::Null)
        .refusal(&[Code::ActionUnknown], "There is no such action.")
}

pub fn read() -> Operation {
    of_action("readAction", "One action, with the body that is sent")
}

pub fn redrive() -> Operation {
    of_action("redriveAction", "Send a dead action again, under the same id")
        .takes(&[Shared::Reason])
        .refusal(&[Code::ActionRefused], "The action is not dead.")
}

pub fn cancel() -> Operation {
    of_action("cancelAction", "Cancel an action, and return what it reserved")
        .takes(&[Shared::Reason])
        .refusal(&[Code::ActionRefused], "The action has ended, or is being sent.")
}

pub fn redrive_all() -> Operation {
    bulk("redriveActions", "Send all dead actions of a destination or a campaign again").text(
        "With `outcome: budget_exhausted`, decides again what the budgets of a campaign, or of \
         all, refused: the oldest first, by the documents of now and under the same ids.",
    )
}

pub fn cancel_all() -> Operation {
    bulk("cancelActions", "Cancel all actions of a destination or a campaign")
}

fn bulk(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .takes(&[Shared::Reason])
        .body::<Selected>(json!({ "destination": "rewards" }))
        .answers::<Changed>(200, "How many were changed.", json!({ "changed": 12 }))
}

pub fn status() -> Operation {
    operation("readDestinationStatus", "How a destination is sent to at the moment")
        .parameter(path_name("name", "rewards"))
        .answers::<DestinationStatus>(200, "Its status.", Value::Null)
        .refusal(&[Code::DocumentUnknown], "There is no such destination.")
}

pub fn probe() -> Operation {
    operation("probeDestination", "Send a request that means nothing, and show the answer")
        .text("It is signed like a delivery, and its `type` is `raingauge.probe`.")
        .parameter(path_name("name", "rewards"))
        .answers::<Probe>(200, "What came back.", Value::Null)
        .refusal(&[Code::DocumentUnknown], "There is no such destination.")
        .refusal(&[Code::ChangeRefused], "The destination is the event log.")
}

pub fn disable() -> Operation {
    switch("disableDestination", "Send nothing to a destination until it is enabled")
        .text("Its document gets the reason as `disabled`. Requests that are under way end.")
}

pub fn enable() -> Operation {
    switch("enableDestination", "Send what waits for a destination that was disabled")
}

/// A change of the destination in the path.
fn switch(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .takes(&[Shared::IfMatch, Shared::Reason])
        .parameter(path_name("name", "rewards"))
        .answers::<Destination>(200, "The destination at its new version.", Value::Null)
        .etag(200, "destination", 2)
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::DocumentUnknown], "There is no such destination.")
}

#[derive(ToSchema)]
pub struct Actions {
    pub actions: Vec<Action>,
    /// The parameter `after` of the next page; null at the end.
    pub next: Option<String>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Its id, and that of its webhook.
    pub action: String,
    pub campaign: u32,
    pub subject: String,
    pub destination: String,
    pub due_at: String,
    pub status: String,
    /// Attempts so far, since it was last redriven.
    pub tries: u32,
    /// When a pending one is due, and when any other got its status.
    pub at: String,
    /// The result of the last attempt.
    pub note: String,
    pub cost: Option<Cost>,
    /// What is sent, where one action is read.
    #[schema(value_type = Object, required = false)]
    pub body: Value,
}

#[derive(ToSchema)]
pub struct Selected {
    #[schema(required = false)]
    pub destination: Option<String>,
    #[schema(required = false)]
    pub campaign: Option<u32>,
    /// Of decisions that are made again, instead of actions: `budget_exhausted`. Cancelling takes
    /// none.
    #[schema(required = false)]
    pub outcome: Option<String>,
}

#[derive(ToSchema)]
pub struct Changed {
    #[schema(value_type = i128, minimum = 0)]
    pub changed: u64,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationStatus {
    /// The version of its document.
    pub version: u32,
    /// Why nothing is sent.
    pub obstacle: Option<String>,
    /// Requests per second, as they are sent now; null where they are not bounded.
    pub per_second: Option<u32>,
    /// Requests per second, as the schedule says.
    pub scheduled_per_second: Option<u32>,
    /// `closed`, `open` or `halfopen`.
    pub breaker: String,
    pub concurrency: u32,
    #[schema(value_type = i128, minimum = 0)]
    pub in_flight: u64,
    pub last_failure: Option<LastFailure>,
    #[schema(value_type = i128, minimum = 0)]
    pub pending: u64,
    /// When the first pending one was due.
    pub oldest: Option<String>,
}

#[derive(ToSchema)]
pub struct LastFailure {
    pub at: String,
    pub note: String,
}

#[derive(ToSchema)]
pub struct Probe {
    /// The `webhook-id` of the request.
    pub id: String,
    /// The status of the response, if there was one.
    pub status: Option<u32>,
    /// Whether a delivery would have been accepted.
    pub accepted: bool,
    pub detail: String,
    #[schema(value_type = i128, minimum = 0)]
    pub milliseconds: u64,
}
