//! Points through the real doors: what is awarded, spent, corrected, refused and recovered.

mod campaign;
mod commands;
mod crash;
mod example;
mod ledger;
mod month_ends;
mod retail;
pub mod rights;

use crate::client::Client;
use crate::server::Home;
use serde_json::{Value, json};

/// A programme that gives one point for a whole pound of an invoice.
pub fn pound() -> Value {
    json!({
        "programme": "pound", "unit": "points", "rounding": "down", "timezone": "Europe/London",
        "expiry": {"kind": "never"}, "arrearsFloor": -100_000_000,
        "rules": [
            {"id": 1, "name": "invoice", "eventType": "retail.sale", "member": "data.customer",
             "amount": "data.amount", "reference": "data.invoice"},
            {"id": 2, "name": "refund", "eventType": "retail.refund", "member": "data.customer",
             "amount": "data.amount", "reverses": "data.invoice"},
        ],
    })
}

/// Creates a programme, which is in force when this returns.
pub fn create(server: &Client, programme: &Value) {
    server.post("/v1/points/programmes", programme).expect(201);
}

/// The result of each item of a batch.
pub fn results(server: &Client, path: &str, list: &str, items: &[Value]) -> Vec<Value> {
    let answer = server.post(path, &json!({ list: items })).expect(200);
    answer["results"].as_array().expect("results").clone()
}

/// Awards one item.
pub fn award(server: &Client, item: &Value) -> Value {
    results(server, "/v1/points/awards", "awards", std::slice::from_ref(item)).remove(0)
}

/// Sends one transaction.
pub fn transact(server: &Client, item: &Value) -> Value {
    results(server, "/v1/points/transactions", "transactions", std::slice::from_ref(item)).remove(0)
}

/// Sends one correction.
pub fn correct(server: &Client, item: &Value) -> Value {
    results(server, "/v1/points/corrections", "corrections", std::slice::from_ref(item)).remove(0)
}

/// What a member has.
pub fn member(server: &Client, programme: &str, member: &str) -> Value {
    server.get(&format!("/v1/points/{programme}/members/{member}")).expect(200)
}

/// The code of a refused item.
pub fn code(result: &Value) -> &str {
    result["error"]["code"].as_str().unwrap_or_else(|| panic!("it is not refused: {result}"))
}

/// Checks the books of a folder that no server has open.
pub fn verify(home: &Home) -> Value {
    let data = home.data().display().to_string();
    home.run(&["points", "verify", "--data-dir", &data, "--json"]).json()
}
