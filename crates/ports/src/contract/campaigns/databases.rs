//! The contract of databases that lookups read.

use crate::campaigns::{DatabaseError, DatabaseLookup};
use serde_json::json;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(5);

/// The statements that make the table of the suite, in the words of all databases.
pub const SETUP: [&str; 2] = [
    "CREATE TABLE members (id VARCHAR(64) PRIMARY KEY, tier VARCHAR(64), points BIGINT, score DOUBLE)",
    "INSERT INTO members VALUES ('u-7', 'gold', 41, 1.5), ('u-8', NULL, NULL, NULL), ('it''s ☔', 'none', 0, 0)",
];

/// Runs the whole suite over a database with [`SETUP`], which is the connection `crm`.
pub async fn suite(databases: &dyn DatabaseLookup) {
    assert_eq!(databases.connections(), ["crm"]);
    answers_with_columns(databases).await;
    only_reads(databases).await;
    refuses_what_it_does_not_know(databases).await;
}

async fn answers_with_columns(databases: &dyn DatabaseLookup) {
    let sql = "SELECT tier, points, score FROM members WHERE id = ?";
    let row = async |key: &str| databases.row("crm", sql, key, SECOND).await.unwrap();
    let gold = json!({ "tier": "gold", "points": 41, "score": 1.5 });
    assert_eq!(row("u-7").await.map(serde_json::Value::Object), Some(gold));
    let empty = json!({ "tier": null, "points": null, "score": null });
    assert_eq!(row("u-8").await.map(serde_json::Value::Object), Some(empty));
    assert_eq!(row("it's ☔").await.map(|row| row["tier"].clone()), Some(json!("none")));
    for key in ["", "u-9", "' OR '1'='1"] {
        assert_eq!(row(key).await, None, "{key}");
    }

    // Of many rows the first one answers.
    let many = "SELECT id FROM members WHERE id <> ? ORDER BY id DESC";
    let first = databases.row("crm", many, "u-8", SECOND).await.unwrap();
    assert_eq!(first.map(|row| row["id"].clone()), Some(json!("u-7")));
}

async fn only_reads(databases: &dyn DatabaseLookup) {
    for sql in [
        "DELETE FROM members WHERE id = ?",
        "UPDATE members SET tier = 'x' WHERE id = ?",
        "INSERT INTO members (id) VALUES (?)",
    ] {
        let answer = databases.row("crm", sql, "u-7", SECOND).await;
        assert!(answer.is_err(), "{sql}: {answer:?}");
    }
    let row = databases.row("crm", "SELECT tier FROM members WHERE id = ?", "u-7", SECOND).await;
    assert_eq!(row.unwrap().map(|row| row["tier"].clone()), Some(json!("gold")));
}

async fn refuses_what_it_does_not_know(databases: &dyn DatabaseLookup) {
    let sql = "SELECT tier FROM members WHERE id = ?";
    let unknown = databases.row("other", sql, "u-7", SECOND).await;
    assert!(matches!(unknown, Err(DatabaseError::Refused(_))), "{unknown:?}");
    for sql in ["SELECT tier FROM nobody WHERE id = ?", "SELECT FROM ?"] {
        let answer = databases.row("crm", sql, "u-7", SECOND).await;
        assert!(answer.is_err(), "{sql}: {answer:?}");
    }
}
