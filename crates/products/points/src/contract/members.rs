//! Members, statements, entries and liabilities.

use super::{Points, of_programme, operation, path_name, text};
use raingauge_awarding::limits::{BALANCES_LEN_MAX, STATEMENT_LEN_MAX};
use raingauge_core::code::Code;
use raingauge_http::{Operation, query};
use serde_json::{Value, json};
use utoipa::ToSchema;

const AT: &str = "As of this time: RFC 3339, epoch seconds, or an age such as -7d.";

fn of_member(id: &str, summary: &str) -> Operation {
    of_programme(id, summary).parameter(path_name("member", "bob"))
}

pub fn member() -> Operation {
    of_member("readMember", "What a member has")
        .text("A member that was never seen has zeros.")
        .parameter(query("at", AT, text()))
        .answers::<Member>(200, "The balance, with every lot.", Value::Null)
        .refusal(&[Code::TimeInvalid, Code::MemberInvalid], "The time or the member is wrong.")
}

pub fn balances() -> Operation {
    operation("readBalances", "What many members have")
        .body::<BalancesBody>(json!({ "members": [{ "programme": "grab-sg", "member": "bob" }] }))
        .answers::<Balances>(200, "The balance of each, in order.", Value::Null)
        .refusal(&[Code::TimeInvalid], "The time cannot be read.")
}

pub fn statement() -> Operation {
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": STATEMENT_LEN_MAX, "default": 100,
    });
    let before = json!({ "type": "integer", "minimum": 0 });
    of_member("readStatement", "What happened to the points of a member, newest first")
        .text(
            "Rows that are settled and not yet written have no sequence. With `Accept: text/csv`, \
             the same as CSV.",
        )
        .parameter(query("before", "The sequence of the last row of the page before.", before))
        .parameter(query("limit", "Most rows.", limit))
        .answers::<Statement>(200, "The rows, each with the balance after it.", Value::Null)
        .refusal(&[Code::MemberInvalid], "The member is wrong.")
}

pub fn explain() -> Operation {
    of_member("explainBalance", "Where the points of a member come from")
        .answers::<PointsExplanation>(
            200,
            "What is left of each award, and what took the rest.",
            Value::Null,
        )
        .refusal(&[Code::MemberInvalid], "The member is wrong.")
}

pub fn entries() -> Operation {
    let key = json!({
        "name": "key", "in": "query", "required": true, "schema": { "type": "string" },
        "description": "The key of the command.",
    });
    let programme = json!({
        "name": "programme", "in": "query", "required": true, "schema": { "type": "string" },
    });
    operation("listEntries", "The entry of a key")
        .parameter(programme)
        .parameter(key)
        .parameter(query("source", "Whose key it is; a partner's name.", text()))
        .answers::<Entries>(200, "None, or one.", Value::Null)
        .refusal(&[Code::ProgrammeUnknown], "There is no such programme.")
}

pub fn entry() -> Operation {
    let number = |name: &str| {
        json!({
            "name": name, "in": "path", "required": true,
            "schema": { "type": "integer", "minimum": 0 }, "example": 1,
        })
    };
    operation("readEntry", "An entry with the factors that it follows from")
        .parameter(path_name("programme", "grab-sg"))
        .parameter(number("book"))
        .parameter(number("sequence"))
        .answers::<Entry>(200, "The entry.", Value::Null)
        .refusal(&[Code::EntryUnknown, Code::ProgrammeUnknown], "There is no such entry.")
}

pub fn liability() -> Operation {
    of_programme("readLiability", "What a programme owes, by the month in which it expires")
        .answers::<Liability>(200, "Exact sums, as of the last entry.", Value::Null)
}

pub fn budgets() -> Operation {
    of_programme("readBudgets", "What the budgets of a programme have left")
        .answers::<PointsBudgets>(200, "The budgets that the programme names.", Value::Null)
}

pub fn settlement() -> Operation {
    operation("readSettlement", "What a programme and a partner owe each other")
        .parameter(path_name("programme", "grab-sg"))
        .parameter(path_name("name", "skyair"))
        .answers::<Settlement>(200, "The balance.", Value::Null)
        .refusal(&[Code::PartnerUnknown, Code::ProgrammeUnknown], "There is no such partner.")
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub programme: String,
    pub member: String,
    /// Never negative.
    pub available: Points,
    pub pending: Points,
    pub held: Points,
    /// What is owed; 0 or more.
    pub arrears: Points,
    pub tier: Option<String>,
    /// The first date on which points expire.
    pub expires_on: Option<String>,
    pub lots: Vec<Lot>,
    /// Whether the wallet was closed. Absent if it is open.
    #[schema(required = false)]
    pub closed: bool,
}

/// Points that expire on one date.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lot {
    pub points: Points,
    pub expires_on: Option<String>,
}

#[derive(ToSchema)]
pub struct BalancesBody {
    #[schema(max_items = 1_000)]
    pub members: Vec<MemberName>,
    #[schema(required = false)]
    pub at: Option<super::PointsTime>,
}

const _: () = assert!(BALANCES_LEN_MAX == 1_000);

#[derive(ToSchema)]
pub struct MemberName {
    pub programme: String,
    pub member: String,
}

#[derive(ToSchema)]
pub struct Balances {
    pub results: Vec<BalanceItem>,
}

#[derive(ToSchema)]
#[serde(untagged)]
pub enum BalanceItem {
    Found(Member),
    Refused(super::RefusedItem),
}

#[derive(ToSchema)]
pub struct Statement {
    pub rows: Vec<Row>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Of the member; null for one that is settled and not yet written.
    #[schema(value_type = Option<i128>)]
    pub sequence: Option<u64>,
    pub entry: Option<String>,
    pub kind: String,
    /// The change, signed.
    pub points: Points,
    pub balance_after: Points,
    pub occurred_at: String,
    pub recorded_at: String,
    pub reason: Option<String>,
    pub reference: Option<String>,
    pub key: Option<String>,
}

#[derive(ToSchema)]
pub struct Entries {
    pub entries: Vec<Entry>,
}

/// An entry: its postings, what it follows from, and the same in a sentence.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct Entry(pub Value);

/// The lots of a member, with the awards that are left in them.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct PointsExplanation(pub Value);

/// The sums of a programme.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct Liability(pub Value);

#[derive(ToSchema)]
pub struct PointsBudgets {
    pub programme: String,
    pub unit: String,
    pub budgets: Vec<PointsBudget>,
}

#[derive(ToSchema)]
pub struct PointsBudget {
    pub name: String,
    /// What may be issued under its name.
    pub limit: Points,
    pub used: Points,
    /// Never negative.
    pub left: Points,
}

/// The balance of a partner, and what it comes from by day.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct Settlement(pub Value);
