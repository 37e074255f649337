//! What the contract says of the routes of campaigns.

#![allow(dead_code, reason = "the types describe bodies that are read and written elsewhere")]

pub mod actions;
pub mod documents;
pub mod replays;
pub mod subjects;
pub mod tables;
pub mod usage;

use raingauge_core::code::Code;
use raingauge_http::Operation;
use serde_json::{Value, json};

fn operation(id: &str, summary: &str) -> Operation {
    Operation::new("campaigns", id, summary)
}

/// A parameter in the path that is a name.
fn path_name(name: &str, example: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true,
        "schema": { "type": "string" }, "example": example,
    })
}

/// The number of the campaign in the path.
fn campaign_id() -> Value {
    json!({
        "name": "id", "in": "path", "required": true,
        "schema": { "type": "integer", "minimum": 1, "maximum": u32::MAX }, "example": 7,
    })
}

/// An operation on the campaign in the path.
fn of_campaign(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(campaign_id())
        .refusal(&[Code::DocumentUnknown], "There is no such campaign.")
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn text() -> Value {
    json!({ "type": "string" })
}
