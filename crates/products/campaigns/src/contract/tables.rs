//! Rows of tables and segments.

use super::documents::Table;
use super::{operation, path_name};
use raingauge_core::code::Code;
use raingauge_http::{Operation, Refusal, Shared};
use serde_json::{Value, json};
use utoipa::ToSchema;

fn of_table(id: &str, summary: &str) -> Operation {
    operation(id, summary)
        .parameter(path_name("name", "users"))
        .refusal(&[Code::DocumentUnknown], "There is no such table or segment.")
}

pub fn put() -> Operation {
    of_table("loadTable", "Replace all rows of a table, or its definition")
        .text(
            "Rows are CSV with a header, or lines of JSON, plain or packed with gzip. The answer \
             comes when all of them are live; until then, the rows before answer. A body of JSON \
             replaces the definition.",
        )
        .takes(&[Shared::IfMatch, Shared::Reason])
        .body_as::<Rows>("text/csv", json!("subject,tier\nu-1,gold\n"))
        .body_as::<Rows>("application/x-ndjson", json!("{\"subject\":\"u-1\",\"tier\":\"gold\"}\n"))
        .body_as::<Table>("application/json", Value::Null)
        .answers::<LoadedTable>(
            200,
            "The version that is live, or the new definition.",
            Value::Null,
        )
        .refuses(&[Refusal::VersionMismatch])
        .refusal(&[Code::TableInvalid, Code::DocumentInvalid], "A row or the definition is wrong.")
        .refusal(&[Code::ChangeRefused], "Another load has taken the place of this one.")
}

pub fn patch() -> Operation {
    of_table("changeTable", "Set and remove single rows")
        .text("Lines of JSON, each a row; one with `\"deleted\": true` removes its row.")
        .body_as::<Rows>("application/x-ndjson", json!("{\"subject\":\"u-1\",\"tier\":\"gold\"}\n"))
        .answers::<ChangedRows>(200, "How many rows that were.", json!({ "changed": 1 }))
        .refusal(&[Code::TableInvalid], "A row is wrong, or there are too many.")
}

/// Rows, a line each.
#[derive(ToSchema)]
pub struct Rows(pub String);

/// What is live after a load: `name`, `rows`, `loadedVersion` and `loadedAt`.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub struct LoadedTable(pub Value);

#[derive(ToSchema)]
pub struct ChangedRows {
    #[schema(value_type = i128, minimum = 0)]
    pub changed: u64,
}
