//! The machine-readable contract, OpenAPI 3.1: built from the route table, from the operations that
//! each resource describes, and from the types of their bodies.
#![allow(dead_code, reason = "the types describe bodies that are read and written elsewhere")]

mod operation;
mod parameters;
mod refusals;
mod words;

pub mod counters;
pub mod counts;
pub mod drafts;
pub mod events;
pub mod rollouts;
pub mod system;

use super::Routes;
pub use operation::Operation;
pub use parameters::{Shared, header, query};
use raingauge_core::access::Scope;
pub use refusals::Refusal;
use serde::Serialize;
use serde_json::{Map, Value, json};

const DESCRIPTION: &str = "Times in answers are whole seconds since 1970; times in requests are \
                           that, RFC 3339 or, in counts, relative. Counts are 64-bit signed whole numbers. Errors are \
                           problem documents (RFC 9457) with a stable `code`. docs/api.md lists \
                           every code, docs/semantics.md says what a count is, docs/limits.md \
                           names every limit.";

/// The contract, its members in the order of the specification.
#[derive(Serialize)]
pub struct Contract {
    openapi: &'static str,
    info: Value,
    servers: Value,
    tags: Value,
    paths: Map<String, Value>,
    components: Value,
}

/// Returns the contract of these routes.
pub fn contract(routes: &Routes) -> Contract {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for route in routes.iter() {
        let operation = (route.describe)().of_scope(route.scope);
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_ascii_lowercase()] = operation.document.into();
        for (name, schema) in operation.schemas {
            let known = schemas.get(&name).unwrap_or(&schema);
            debug_assert_eq!(*known, schema, "two types have the name {name}");
            schemas.insert(name, schema);
        }
    }

    schemas.extend(refusals::schemas());

    Contract {
        openapi: "3.1.0",
        info: json!({
            "title": "raingauge",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Counts things as they happen, and answers how many of X between two times, \
                        exactly.",
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        }),
        servers: json!([{ "url": "/" }]),
        tags: json!([
            { "name": "events", "description": "What is counted" },
            { "name": "counts", "description": "Answers" },
            { "name": "counters", "description": "Configurations" },
            { "name": "drafts", "description": "Proposed changes, and their review" },
            { "name": "system", "description": "Operation" },
        ]),
        paths,
        components: json!({
            "securitySchemes": { "bearer": bearer() },
            "parameters": parameters::components(),
            "responses": refusals::components(),
            "schemas": schemas,
        }),
    }
}

fn bearer() -> Value {
    let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Admin);
    let names: Vec<String> = scopes.map(|scope| format!("`{}`", scope.name())).collect();
    let description = format!(
        "A token with the scope that the route names ({}), or with `admin`. While no token is \
         configured, which is possible on loopback only, none is asked for.",
        names.join(", ")
    );

    json!({
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "rg_ and 64 hexadecimal digits",
        "description": description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_core::limits::{
        BUCKETS_PER_REQUEST_MAX, COUNTS_PER_REQUEST_MAX, IDEMPOTENCY_KEY_LEN_MAX, KEY_LEN_MAX,
        REASON_LEN_MAX,
    };
    use std::collections::BTreeSet;

    fn contract() -> Value {
        json!(super::contract(&crate::routes()))
    }

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| match value {
                Value::String(reference) if name == "$ref" => {
                    found.insert(reference.clone());
                }
                value => references(value, found),
            }),
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn each_reference_leads_somewhere_and_each_component_is_used() {
        let contract = contract();
        let mut found = BTreeSet::new();
        references(&contract, &mut found);
        let mut components = BTreeSet::new();
        for kind in ["parameters", "responses", "schemas"] {
            for name in contract["components"][kind].as_object().unwrap().keys() {
                components.insert(format!("#/components/{kind}/{name}"));
            }
        }
        assert_eq!(found, components);
    }

    /// A description at an inlined member would make an object of its type, so it stands at the
    /// type instead.
    #[test]
    fn what_a_type_consists_of_are_objects() {
        fn check(value: &Value) {
            for part in value["allOf"].as_array().into_iter().flatten() {
                let kind = &part["type"];
                assert!(kind.is_null() || kind == "object", "{value}");
            }
            match value {
                Value::Object(members) => members.values().for_each(check),
                Value::Array(values) => values.iter().for_each(check),
                _ => {}
            }
        }
        check(&contract());
    }

    #[test]
    fn operations_have_ids_of_their_own() {
        let contract = contract();
        let mut ids = BTreeSet::new();
        for methods in contract["paths"].as_object().unwrap().values() {
            for operation in methods.as_object().unwrap().values() {
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{operation}");
            }
        }
        assert_eq!(ids.len(), crate::routes().iter().count());
    }

    #[test]
    fn limits_are_those_of_the_core() {
        let contract = contract();
        let number = |pointer: &str| {
            contract.pointer(&format!("/components/{pointer}")).and_then(Value::as_u64)
        };

        for (pointer, limit) in [
            ("schemas/CountBatch/properties/requests/maxItems", COUNTS_PER_REQUEST_MAX),
            ("schemas/CountRequest/properties/key/maxLength", KEY_LEN_MAX),
            ("schemas/Buckets/maxItems", BUCKETS_PER_REQUEST_MAX),
            ("parameters/IdempotencyKey/schema/maxLength", IDEMPOTENCY_KEY_LEN_MAX),
            ("parameters/Reason/schema/maxLength", REASON_LEN_MAX),
        ] {
            assert_eq!(number(pointer), Some(limit as u64), "{pointer}");
        }
    }
}
