//! What the contract says of the routes of points.

#![allow(dead_code, reason = "the types describe bodies that are read and written elsewhere")]

pub mod appraisals;
pub mod ledger;
pub mod members;
pub mod operations;
pub mod programmes;

use raingauge_core::code::Code;
use raingauge_http::Operation;
use serde_json::{Value, json};
use utoipa::ToSchema;

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("points", id, summary)
}

/// A parameter in the path that is a name.
fn path_name(name: &str, example: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true,
        "schema": { "type": "string" }, "example": example,
    })
}

/// An operation on the programme in the path.
fn of_programme(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("programme", "grab-sg"))
        .refusal(&[Code::ProgrammeUnknown], "There is no such programme.")
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// A number of points in the programme's unit: whole, or a decimal text where the programme has
/// decimals.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum Points {
    Whole(i64),
    Decimal(String),
}

/// A decimal number; exact as a text.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum Number {
    Number(f64),
    Text(String),
}

/// RFC 3339, or seconds since 1970.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum PointsTime {
    Text(String),
    Seconds(f64),
}

/// Why an item of a batch was refused. A business refusal is an entry, and stays the answer for
/// its key.
#[derive(ToSchema)]
pub struct PointsItemError {
    pub code: String,
    pub detail: String,
    /// The entry of the refusal.
    #[schema(required = false)]
    pub entry: Option<String>,
    #[schema(required = false)]
    pub replayed: bool,
}

#[derive(ToSchema)]
pub struct RefusedItem {
    pub error: PointsItemError,
}
