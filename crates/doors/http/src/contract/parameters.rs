//! Parameters that several routes take.

use raingauge_core::limits::{IDEMPOTENCY_KEY_LEN_MAX, KEY_LEN_MAX, REASON_LEN_MAX};
use serde_json::{Map, Value, json};

#[derive(Clone, Copy, Debug)]
pub enum Shared {
    Key,
    FromTime,
    ToTime,
    Fresh,
    CounterId,
    IfMatch,
    IdempotencyKey,
    Reason,
}

impl Shared {
    const ALL: [Self; 8] = [
        Self::Key,
        Self::FromTime,
        Self::ToTime,
        Self::Fresh,
        Self::CounterId,
        Self::IfMatch,
        Self::IdempotencyKey,
        Self::Reason,
    ];

    pub fn reference(self) -> Value {
        json!({ "$ref": format!("#/components/parameters/{self:?}") })
    }

    /// The parameter that a reference names.
    pub(super) fn of(reference: &str) -> Value {
        let is_named = |shared: &Self| reference.ends_with(&format!("/{shared:?}"));
        Self::ALL.into_iter().find(is_named).map_or(Value::Null, Self::document)
    }

    fn document(self) -> Value {
        let time = json!({ "$ref": "#/components/schemas/Moment" });
        match self {
            Self::Key => json!({
                "name": "key", "in": "query", "required": true,
                "schema": { "type": "string", "maxLength": KEY_LEN_MAX },
                "example": "rain_drops:city:111222",
            }),
            Self::FromTime => json!({
                "name": "fromTime", "in": "query", "required": true,
                "description": "First moment; floored to its quarter hour.",
                "schema": time, "example": 1_727_215_430,
            }),
            Self::ToTime => json!({
                "name": "toTime", "in": "query", "required": true,
                "description": "Moment behind the last; floored to its quarter hour.",
                "schema": time, "example": 1_727_400_000,
            }),
            Self::Fresh => json!({
                "name": "fresh", "in": "query",
                "description": "`true` takes in the open quarter hour.",
                "schema": { "type": "string", "enum": ["true", "1", "false", "0"] },
            }),
            Self::CounterId => json!({
                "name": "id", "in": "path", "required": true,
                "schema": { "type": "integer", "minimum": 1, "maximum": 999_999 }, "example": 34,
            }),
            Self::IfMatch => json!({
                "name": "if-match", "in": "header",
                "description": "The ETag of the version that is to be replaced. Without it, or \
                                with `*`, any version is.",
                "schema": { "type": "string" }, "example": "\"1\"",
            }),
            Self::IdempotencyKey => json!({
                "name": "idempotency-key", "in": "header",
                "description": "A key that the caller chooses for this request, in quotes or \
                                without. A repetition of the request with the same key sets \
                                nothing, and is answered as the request was.",
                "schema": {
                    "type": "string",
                    "maxLength": IDEMPOTENCY_KEY_LEN_MAX,
                    "pattern": "^[!#-~]([ -~]*[!-~])?$",
                },
                "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
            }),
            Self::Reason => json!({
                "name": "x-reason", "in": "header", "description": "Why; the version keeps it.",
                "schema": { "type": "string", "maxLength": REASON_LEN_MAX },
            }),
        }
    }
}

/// Returns all of them, by name.
pub fn components() -> Map<String, Value> {
    Shared::ALL.into_iter().map(|shared| (format!("{shared:?}"), shared.document())).collect()
}

/// An optional query parameter.
pub fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

/// An optional header.
pub fn header(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

/// The number in a path that identifies something other than a counter.
pub fn path_id(example: u64) -> Value {
    let schema = json!({ "type": "integer", "minimum": 1 });
    json!({ "name": "id", "in": "path", "required": true, "schema": schema, "example": example })
}
