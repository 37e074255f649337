//! Awards, transactions and corrections.

use super::{Number, Points, PointsTime, RefusedItem, operation};
use raingauge_awarding::limits::REQUEST_COMMANDS_MAX;
use raingauge_core::code::Code;
use raingauge_http::{Operation, Shared, header, query};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

pub fn awards() -> Operation {
    let dry = json!({ "type": "boolean" });
    let text = "Each item is answered by itself, in order, once it is durable. The same key with \
                the same content has the same answer for ever.";
    let example = json!({ "awards": [{
        "programme": "grab-sg", "member": "bob", "key": "order-7", "rule": 1, "amount": "15",
        "facts": { "country": "SG", "vertical": "food", "currency": "SGD", "payment": "grabpay" },
    }] });
    operation("awardPoints", "Award points")
        .text(text)
        .parameter(query("dryRun", "Answer what would happen, and write nothing.", dry))
        .parameter(header(
            "prefer",
            "`respond-async`: answer 202 when the awards are in a durable queue.",
            json!({ "type": "string" }),
        ))
        .body::<Awards>(example)
        .answers::<Results>(200, "The result of each award.", Value::Null)
        .answers::<AcceptedResults>(202, "They are kept, and awarded soon.", Value::Null)
        .refusal(&[Code::LedgerBusy], "Too many commands wait; nothing was taken.")
}

pub fn transactions() -> Operation {
    operation("transactPoints", "Burn, hold, capture, release, transfer or exchange points")
        .text("With `atomic`, at most 16 happen together or not at all.")
        .body::<Transactions>(json!({ "transactions": [{
            "kind": "burn", "programme": "grab-sg", "member": "bob", "key": "voucher-3",
            "points": 100, "reason": "voucher",
        }] }))
        .answers::<Results>(200, "The result of each transaction.", Value::Null)
        .refusal(&[Code::LedgerBusy], "Too many commands wait; nothing was taken.")
}

pub fn corrections() -> Operation {
    operation("correctPoints", "Reverse or adjust points, set a tier, close a wallet")
        .text(
            "Each gives a reason. An adjustment above `points.adjust_review` is proposed as a \
             draft of the kind `adjustment`, and a second person approves it.",
        )
        .takes(&[Shared::Reason])
        .body::<Corrections>(json!({ "corrections": [{
            "kind": "reverse", "programme": "grab-sg", "member": "bob", "key": "refund-7",
            "reference": "order-7", "amount": "5", "reason": "the soup was cold",
        }] }))
        .answers::<Results>(200, "The result of each correction.", Value::Null)
        .refusal(&[Code::LedgerBusy], "Too many commands wait; nothing was taken.")
}

#[derive(ToSchema)]
pub struct Awards {
    #[schema(max_items = 1_000)]
    pub awards: Vec<Award>,
}

const _: () = assert!(REQUEST_COMMANDS_MAX == 1_000);

/// Points, or an amount with what they follow from.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Award {
    pub programme: String,
    pub member: String,
    /// What makes it happen once.
    pub key: String,
    #[schema(required = false)]
    pub points: Option<Number>,
    #[schema(required = false)]
    pub amount: Option<Number>,
    /// The number of a rule of the programme, whose filter is not asked.
    #[schema(required = false)]
    pub rule: Option<u32>,
    #[schema(required = false)]
    pub event_type: Option<String>,
    /// Fields of `data`, from which rule and factors are found.
    #[schema(value_type = Object, required = false)]
    pub facts: Value,
    /// A partner's own factors, instead of those of tables.
    #[schema(required = false)]
    pub factors: Option<Factors>,
    #[schema(required = false)]
    pub occurred_at: Option<PointsTime>,
    #[schema(required = false)]
    pub reason: Option<String>,
    /// What a refund names later.
    #[schema(required = false)]
    pub reference: Option<String>,
    /// The account that pays.
    #[schema(required = false)]
    pub budget: Option<String>,
    #[schema(required = false)]
    pub pending_days: Option<u16>,
    /// Such as `2026-12-31`.
    #[schema(required = false)]
    pub expires_on: Option<String>,
    /// Whether it counts as activity.
    #[schema(required = false)]
    pub extends: Option<bool>,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum Factors {
    Named(BTreeMap<String, Number>),
    Listed(Vec<Number>),
}

#[derive(ToSchema)]
pub struct Transactions {
    #[schema(max_items = 1_000)]
    pub transactions: Vec<Transaction>,
    #[schema(required = false)]
    pub atomic: bool,
}

#[derive(ToSchema)]
pub struct Corrections {
    #[schema(max_items = 1_000)]
    pub corrections: Vec<Transaction>,
    #[schema(required = false)]
    pub atomic: bool,
}

/// A transaction: `burn`, `hold`, `capture`, `release`, `transfer`, `exchangeOut`, `exchangeIn`; or
/// a correction: `reverse`, `adjust`, `tier`, `close`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transaction {
    pub kind: String,
    pub programme: String,
    pub member: String,
    pub key: String,
    #[schema(required = false)]
    pub points: Option<Number>,
    /// The member that a transfer goes to.
    #[schema(required = false)]
    pub to: Option<String>,
    /// The partner of an exchange.
    #[schema(required = false)]
    pub partner: Option<String>,
    /// The key of the hold that is captured or released.
    #[schema(required = false)]
    pub hold: Option<String>,
    /// When a hold ends by itself; or the last day of a tier, such as `2026-12-31`.
    #[schema(required = false)]
    pub until: Option<PointsTime>,
    /// The reward that a hold is for.
    #[schema(required = false)]
    pub reward: Option<String>,
    /// The reference of the award that is reversed.
    #[schema(required = false)]
    pub reference: Option<String>,
    /// The key of the award that is reversed; of one without a reference, `reference` may be it.
    #[schema(required = false)]
    pub award: Option<String>,
    /// Whose key that is: a partner, or `events`; the caller's own, without it.
    #[schema(required = false)]
    pub source: Option<String>,
    /// The part of the award's amount that is reversed; the whole without one.
    #[schema(required = false)]
    pub amount: Option<Number>,
    #[schema(required = false)]
    pub reason: Option<String>,
    #[schema(required = false)]
    pub tier: Option<String>,
    #[schema(required = false)]
    pub expires_on: Option<String>,
    #[schema(required = false)]
    pub occurred_at: Option<PointsTime>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    pub results: Vec<ItemResult>,
    /// Whether nothing was written.
    #[schema(required = false)]
    pub dry_run: bool,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum ItemResult {
    Done(DoneItem),
    Refused(RefusedItem),
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoneItem {
    /// `programme:book:sequence`; null in a trial.
    pub entry: Option<String>,
    pub kind: String,
    pub programme: String,
    pub member: Option<String>,
    pub key: String,
    /// The change of the balance, signed.
    pub points: Points,
    /// What the member has after it, arrears subtracted.
    pub balance: Points,
    pub tier: Option<String>,
    pub expires_on: Option<String>,
    /// Whether this was answered before.
    pub replayed: bool,
}

#[derive(ToSchema)]
pub struct AcceptedResults {
    pub results: Vec<AcceptedResult>,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum AcceptedResult {
    Accepted(AcceptedItem),
    Refused(RefusedItem),
}

#[derive(ToSchema)]
pub struct AcceptedItem {
    pub programme: String,
    pub member: String,
    pub key: String,
    pub source: String,
    pub accepted: bool,
}
