//! The contract's description of one route.

use super::{Refusal, Shared};
use crate::status::status;
use axum::http::StatusCode;
use raingauge_core::access::Scope;
use raingauge_core::code::Code;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// An OpenAPI operation. It omits what follows from its line of the table: the scope, and the
/// refusals that come with a scope or with a body.
pub struct Operation {
    pub document: Map<String, Value>,
    /// The types of its bodies, by name.
    pub schemas: Map<String, Value>,
}

impl Operation {
    pub fn new(tag: &str, id: &str, summary: &str) -> Self {
        let mut document = Map::new();
        document.insert("tags".to_owned(), json!([tag]));
        document.insert("operationId".to_owned(), json!(id));
        document.insert("summary".to_owned(), json!(summary));
        document.insert("responses".to_owned(), json!({}));
        Self { document, schemas: Map::new() }
    }

    pub fn text(mut self, description: &str) -> Self {
        self.document.insert("description".to_owned(), json!(description));
        self
    }

    /// Adds parameters that several routes share.
    pub fn takes(self, parameters: &[Shared]) -> Self {
        parameters.iter().fold(self, |operation, shared| operation.parameter(shared.reference()))
    }

    /// Adds a parameter of this route alone.
    pub fn parameter(mut self, parameter: Value) -> Self {
        let parameters = self.document.entry("parameters").or_insert_with(|| json!([]));
        if let Some(list) = parameters.as_array_mut() {
            list.push(parameter);
        }
        self
    }

    /// Names of the query parameters.
    pub(crate) fn query_parameters(&self) -> Vec<String> {
        let listed = self.document.get("parameters").and_then(Value::as_array);
        let named = listed.into_iter().flatten().filter_map(|parameter| {
            let shared = parameter["$ref"].as_str().map(Shared::of);
            let parameter = shared.as_ref().unwrap_or(parameter);
            let name = parameter["name"].as_str().filter(|_| parameter["in"] == "query")?;
            Some(name.to_owned())
        });
        named.collect()
    }

    /// Takes a JSON body.
    pub fn body<T: ToSchema>(self, example: Value) -> Self {
        self.body_as::<T>("application/json", example)
    }

    /// Takes a body of this media type, besides those already added.
    pub fn body_as<T: ToSchema>(mut self, media_type: &str, example: Value) -> Self {
        let content = self.content::<T>(example);
        let body = self
            .document
            .entry("requestBody")
            .or_insert_with(|| json!({ "required": true, "content": {} }));
        body["content"][media_type] = content;
        self
    }

    /// Makes the body optional.
    pub fn optional_body(mut self) -> Self {
        self.document["requestBody"]["required"] = json!(false);
        self
    }

    /// Adds a JSON response with this status.
    pub fn answers<T: ToSchema>(self, status: u16, description: &str, example: Value) -> Self {
        self.answers_as::<T>(status, "application/json", description, example)
    }

    pub fn answers_as<T: ToSchema>(
        mut self,
        status: u16,
        media_type: &str,
        description: &str,
        example: Value,
    ) -> Self {
        let content = self.content::<T>(example);
        self.document["responses"][status.to_string()] =
            json!({ "description": description, "content": { media_type: content } });
        self
    }

    /// Adds a header to the response with this status.
    pub fn header(mut self, status: u16, name: &str, header: Value) -> Self {
        self.document["responses"][status.to_string()]["headers"][name] = header;
        self
    }

    /// Adds the path of what was created to the response 201.
    pub fn location(self, of: &str) -> Self {
        let description = format!("Path of the {of}.");
        let header = json!({ "description": description, "schema": { "type": "string" } });
        self.header(201, "Location", header)
    }

    /// Adds the version for `If-Match` to the response with this status.
    pub fn etag(self, status: u16, of: &str, example: u32) -> Self {
        let header = json!({
            "description": format!("The version of the {of} in quotes, for `If-Match`."),
            "schema": { "type": "string" },
            "example": format!("\"{example}\""),
        });
        self.header(status, "ETag", header)
    }

    pub fn refuses(mut self, refusals: &[Refusal]) -> Self {
        for refusal in refusals {
            self.document["responses"][refusal.status().to_string()] = refusal.reference();
        }
        self
    }

    /// Adds refusals of this route alone, whose codes have the same status.
    pub fn refusal(mut self, codes: &[Code], description: &str) -> Self {
        let Some(first) = codes.first() else { return self };
        let status = status(*first);
        let mut members = json!({ "code": { "enum": codes } });
        if status == StatusCode::UNPROCESSABLE_ENTITY {
            let item = json!({ "$ref": "#/components/schemas/CounterProblem" });
            members["problems"] = json!({ "type": "array", "items": item });
        }

        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        let schema = json!({ "allOf": [problem, { "properties": members }] });
        self.document["responses"][status.as_str()] = json!({
            "description": description,
            "content": { "application/problem+json": { "schema": schema } },
        });
        self
    }

    /// Adds what follows from the scope that callers need; `None` for a public route.
    pub fn of_scope(mut self, scope: Option<Scope>) -> Self {
        let Some(scope) = scope else {
            self.document.insert("security".to_owned(), json!([]));
            return self;
        };
        self.document.insert("security".to_owned(), json!([{ "bearer": [scope.name()] }]));
        let body = self.document.contains_key("requestBody").then_some(Refusal::OF_BODIES);
        self.also_refuses(Refusal::OF_SCOPES).also_refuses(body.unwrap_or_default())
    }

    /// Adds refusals, except for statuses that the route has a refusal of its own for.
    fn also_refuses(mut self, refusals: &[Refusal]) -> Self {
        for refusal in refusals {
            let responses = &mut self.document["responses"];
            let status = refusal.status().to_string();
            if responses.get(&status).is_none() {
                responses[status] = refusal.reference();
            }
        }
        self
    }

    /// Returns a body of this type; without an example if that is `null`.
    fn content<T: ToSchema>(&mut self, example: Value) -> Value {
        let mut content = json!({ "schema": self.schema::<T>() });
        if !example.is_null() {
            content["example"] = example;
        }
        content
    }

    /// Returns a reference to the schema of a type, which becomes a component together with all the
    /// types it refers to; for a primitive type, returns the schema itself.
    fn schema<T: ToSchema>(&mut self) -> Value {
        let schema = with_any_of(json!(T::schema()));
        let mut referred = Vec::new();
        T::schemas(&mut referred);
        self.schemas
            .extend(referred.into_iter().map(|(name, schema)| (name, with_any_of(json!(schema)))));
        if schema.get("type") == Some(&json!("string")) && schema.get("enum").is_none() {
            return schema;
        }
        let name = T::name();
        self.schemas.insert(name.to_string(), schema);
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }
}

/// Turns `oneOf` into `anyOf`: the alternatives of a type need not exclude each other, since a
/// value is read as the first that it fits.
fn with_any_of(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let renamed = members.into_iter().map(|(name, value)| match name.as_str() {
                "oneOf" => ("anyOf".to_owned(), with_any_of(value)),
                _ => (name, with_any_of(value)),
            });
            Value::Object(renamed.collect())
        }
        Value::Array(values) => values.into_iter().map(with_any_of).collect(),
        value => value,
    }
}
