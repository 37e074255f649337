//! Queues, sweeps, seals and audits.

use super::{operation, path_name};
use raingauge_core::code::Code;
use raingauge_http::{Operation, query};
use raingauge_ports::points::QUEUE_CALL_LEN_MAX;
use serde_json::{Value, json};
use utoipa::ToSchema;

fn of_queue(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("queue", "retry.dead"))
        .refusal(&[Code::QueueUnknown], "There is no such queue.")
}

pub fn queues() -> Operation {
    operation("listPointsQueues", "What waits in the queues of points").answers::<Queues>(
        200,
        "The queues.",
        Value::Null,
    )
}

pub fn messages() -> Operation {
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": QUEUE_CALL_LEN_MAX, "default": 100,
    });
    of_queue("listPointsMessages", "The first messages of a queue, or of its dead letters")
        .text("`retry` is what waits, and `retry.dead` what was given up. Nothing is received.")
        .parameter(query("limit", "Most messages.", limit))
        .answers::<Messages>(200, "The messages.", Value::Null)
}

pub fn redrive() -> Operation {
    of_queue("redrivePoints", "Send dead letters to their queue again")
        .body::<Selection>(json!({ "ids": ["order-7"] }))
        .optional_body()
        .answers::<PointsChanged>(200, "How many.", Value::Null)
}

pub fn discard() -> Operation {
    of_queue("discardPoints", "Forget dead letters")
        .body::<Selection>(json!({ "ids": ["order-7"] }))
        .optional_body()
        .answers::<PointsChanged>(200, "How many.", Value::Null)
}

pub fn sweeps() -> Operation {
    operation("listSweeps", "The last sweeps of wallets that were due").answers::<Sweeps>(
        200,
        "Newest first.",
        Value::Null,
    )
}

pub fn sweep() -> Operation {
    operation("startSweep", "Settle wallets that are due")
        .text("Balances are right before it: a sweep writes down what is true already. It is carried out beside the request; the list shows how far it is.")
        .body::<SweepBody>(json!({}))
        .optional_body()
        .answers::<Sweep>(202, "It begins, or the one that goes as far has begun.", Value::Null)
        .refusal(
            &[Code::TimeInvalid, Code::TimeInFuture],
            "The time cannot be read, or lies in the future.",
        )
        .refusal(&[Code::LedgerBusy], "Too many sweeps wait; try again.")
}

pub fn seals() -> Operation {
    operation("listSeals", "The newest hash of each book, which proves all before it")
        .answers::<Seals>(200, "The heads.", Value::Null)
}

#[derive(ToSchema)]
pub struct Queues {
    pub queues: Vec<Queue>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub name: String,
    #[schema(value_type = i128, minimum = 0)]
    pub waiting: u64,
    #[schema(value_type = i128, minimum = 0)]
    pub in_flight: u64,
    #[schema(value_type = i128, minimum = 0)]
    pub dead: u64,
    /// When the oldest was sent.
    pub oldest: Option<String>,
}

#[derive(ToSchema)]
pub struct Messages {
    pub messages: Vec<Message>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: String,
    #[schema(value_type = Object)]
    pub body: Value,
    pub first_error: Option<String>,
    pub attempts: u32,
    pub sent_at: String,
    pub visible_at: Option<String>,
    pub death: Option<Death>,
}

/// Why a letter was given up.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Death {
    pub reason: String,
    pub last_error: String,
    pub attempts: u32,
    pub at: String,
}

#[derive(ToSchema)]
pub struct Selection {
    /// All, without it.
    #[schema(required = false)]
    pub ids: Option<Vec<String>>,
}

#[derive(ToSchema)]
pub struct PointsChanged {
    #[schema(value_type = i128, minimum = 0)]
    pub changed: usize,
}

#[derive(ToSchema)]
pub struct SweepBody {
    /// Those that are due by then, which is not in the future; by now, without it.
    #[schema(required = false)]
    pub until: Option<String>,
}

#[derive(ToSchema)]
pub struct Sweeps {
    pub sweeps: Vec<Sweep>,
}

/// A sweep: what was due, and how much of it is settled.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sweep {
    pub id: String,
    pub state: SweepState,
    pub started_at: String,
    /// Wallets that were due by then.
    pub until: String,
    /// Ranges of wallets that were queued, and those that this process has settled.
    pub ranges: usize,
    pub ranges_done: usize,
    /// Wallets that this process has settled, and the entries that took.
    #[schema(value_type = i128, minimum = 0)]
    pub wallets: u64,
    #[schema(value_type = i128, minimum = 0)]
    pub entries: u64,
    pub finished_at: Option<String>,
    /// Why it waits, or ended early.
    pub error: Option<String>,
}

/// `waiting` stands before its turn, or before another try.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SweepState {
    Waiting,
    Running,
    Finished,
}

#[derive(ToSchema)]
pub struct Seals {
    pub seals: Vec<Seal>,
}

/// The head of a book: no entry before it can change without changing the hash.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Seal {
    pub book: u16,
    #[schema(value_type = i128, minimum = 0)]
    pub sequence: u64,
    pub recorded_at: String,
    /// SHA-256, in hexadecimal.
    pub hash: String,
}
