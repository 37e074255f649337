//! Programmes and rewards.

use super::ledger::{ItemResult, Results};
use super::{Number, operation, path_name, text};
use raingauge_core::code::Code;
use raingauge_http::{Operation, Refusal, Shared, query};
use serde_json::{Value, json};
use utoipa::ToSchema;

const INVALID: &str = "The document is wrong; `problems` has everything that is.";

fn of_one(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("name", "grab-sg"))
        .refusal(&[Code::ProgrammeUnknown], "There is no such programme.")
}

fn example() -> Value {
    json!({
        "programme": "grab-sg", "unit": "GRP", "timezone": "Asia/Singapore",
        "expiry": { "kind": "activity", "months": 6 },
        "tables": { "vertical": { "by": ["data.vertical"], "rows": { "food": 2 } } },
        "rules": [{
            "id": 1, "name": "food", "eventType": "order.completed", "member": "data.consumer_id",
            "amount": "data.amount", "factors": ["vertical"],
        }],
    })
}

pub fn list() -> Operation {
    operation("listProgrammes", "All programmes, by name").answers::<Programmes>(
        200,
        "Each at its newest version.",
        Value::Null,
    )
}

pub fn create() -> Operation {
    let only = json!({ "type": "string", "enum": ["only"] });
    let location = json!({ "description": "Its path.", "schema": { "type": "string" } });
    operation("createProgramme", "Create a programme")
        .text("Answers when it is in effect. With `validate=only` it is checked, and not stored.")
        .parameter(query("validate", "Check it, and store nothing.", only))
        .takes(&[Shared::Reason])
        .body::<Programme>(example())
        .answers::<Programme>(
            200,
            "With `validate=only`: the document, as it would be stored.",
            Value::Null,
        )
        .answers::<Programme>(201, "The programme.", Value::Null)
        .etag(201, "programme", 1)
        .header(201, "Location", location)
        .refusal(
            &[Code::IdTaken, Code::ChangeRefused],
            "Its name is in use, or a limit is reached.",
        )
        .refusal(&[Code::ProgrammeInvalid], INVALID)
}

pub fn read() -> Operation {
    of_one("readProgramme", "Read a programme")
        .answers::<Programme>(200, "The programme.", Value::Null)
        .etag(200, "programme", 1)
}

pub fn replace() -> Operation {
    of_one("replaceProgramme", "Replace a programme")
        .text("Answers when the new version is in effect.")
        .takes(&[Shared::IfMatch, Shared::Reason])
        .body::<Programme>(example())
        .answers::<Programme>(200, "The new version.", Value::Null)
        .etag(200, "programme", 2)
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::ChangeRefused], "The programme cannot be changed so.")
        .refusal(&[Code::ProgrammeInvalid], INVALID)
}

pub fn versions() -> Operation {
    of_one("listProgrammeVersions", "All versions of a programme, newest first")
        .answers::<ProgrammeVersions>(200, "The versions.", Value::Null)
}

pub fn rewards() -> Operation {
    operation("listRewards", "What members can redeem points for")
        .parameter(query("programme", "Those of this programme.", text()))
        .text(
            "Those with a stock say how many are `left` of it, once their programme is in effect.",
        )
        .answers::<Rewards>(200, "The rewards, by programme and name.", Value::Null)
        .refusal(&[Code::ProgrammeUnknown], "There is no such programme.")
}

pub fn put_reward() -> Operation {
    operation("saveReward", "Create or replace a reward")
        .text("A reward is a part of its programme, which gets a new version.")
        .takes(&[Shared::Reason])
        .body::<Reward>(
            json!({ "programme": "grab-sg", "name": "coffee", "points": 100, "stock": 50 }),
        )
        .answers::<Reward>(200, "The reward.", Value::Null)
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::ProgrammeUnknown], "There is no such programme.")
        .refusal(&[Code::ProgrammeInvalid], INVALID)
}

pub fn redeem() -> Operation {
    let example = json!({ "redemptions": [{
        "programme": "grab-sg", "member": "bob", "reward": "coffee", "key": "redeem-1",
    }] });
    operation("redeemPoints", "Redeem points for rewards")
        .text(
            "Holds the price, and takes one from the stock. The fulfiller captures or releases the \
             hold by its key. A single redemption may be sent without the list.",
        )
        .body::<RedemptionsBody>(example)
        .answers::<RedemptionResults>(200, "The result of each redemption.", Value::Null)
        .refusal(&[Code::RewardUnknown, Code::ProgrammeUnknown], "There is no such reward.")
        .refusal(
            &[
                Code::RewardSoldOut,
                Code::InsufficientPoints,
                Code::KeyReused,
                Code::WalletClosed,
                Code::WalletFull,
            ],
            "A single redemption is refused.",
        )
        .refusal(&[Code::MemberInvalid, Code::PointsInvalid], "A name is wrong.")
        .refusal(&[Code::LedgerBusy], "Too many commands wait; nothing was taken.")
}

/// A programme, as docs/points.md describes it, with its `version`, `changedBy`, `changedByKind`,
/// `reason` and `changedAt`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct Programme(pub Value);

#[derive(ToSchema)]
pub struct Programmes {
    pub programmes: Vec<Programme>,
}

#[derive(ToSchema)]
pub struct ProgrammeVersions {
    /// Newest first.
    pub versions: Vec<Programme>,
}

/// Something that points can be exchanged for.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reward {
    pub programme: String,
    pub name: String,
    #[schema(required = false)]
    pub description: Option<String>,
    /// The price.
    pub points: Number,
    /// How many there are in all.
    #[schema(required = false)]
    pub stock: Option<u32>,
    /// How many of the stock are left.
    #[schema(required = false, read_only)]
    pub left: Option<u32>,
    #[schema(required = false)]
    pub per_member: Option<u32>,
    #[schema(required = false)]
    pub from: Option<String>,
    #[schema(required = false)]
    pub until: Option<String>,
}

#[derive(ToSchema)]
pub struct Rewards {
    pub rewards: Vec<Reward>,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum RedemptionsBody {
    Several(Redemptions),
    One(Redemption),
}

#[derive(ToSchema)]
pub struct Redemptions {
    #[schema(max_items = 1_000)]
    pub redemptions: Vec<Redemption>,
}

#[derive(ToSchema)]
pub struct Redemption {
    pub programme: String,
    pub member: String,
    pub reward: String,
    pub key: String,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum RedemptionResults {
    Several(Results),
    One(ItemResult),
}
