//! The contract of uploaded tables.

use crate::campaigns::{TableError, TableLoad, TableLoads, TableRow, Tables};
use serde_json::{Value as Json, json};

const NOW_MS: i64 = 1_727_136_000_000;

/// Runs the whole suite. `fresh` returns a store without tables each time.
pub async fn suite<T: Tables + TableLoads>(fresh: impl AsyncFn() -> T) {
    a_table_that_was_never_loaded_has_no_rows(&fresh().await).await;
    a_load_answers_all_at_once(&fresh().await).await;
    a_load_replaces_the_whole_table(&fresh().await).await;
    rows_come_back_whole(&fresh().await).await;
    of_two_loads_the_first_to_finish_wins(&fresh().await).await;
    an_abandoned_load_leaves_nothing(&fresh().await).await;
    single_rows_change_together(&fresh().await).await;
    a_removed_table_is_gone(&fresh().await).await;
    tables_do_not_mix(&fresh().await).await;
}

/// A row with a tier.
pub fn row(tier: &str) -> TableRow {
    TableRow::from_iter([("tier".to_owned(), Json::from(tier))])
}

fn rows(keys: &[&str], tier: &str) -> Vec<(String, TableRow)> {
    keys.iter().map(|key| ((*key).to_owned(), row(tier))).collect()
}

/// The tiers of keys.
async fn tiers(tables: &impl Tables, table: &str, keys: &[&str]) -> Vec<Option<String>> {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let found = tables.get(table, &keys).await.unwrap();
    assert_eq!(found.len(), keys.len());
    found
        .into_iter()
        .map(|row| row.map(|row| row["tier"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

async fn load<T: TableLoads>(tables: &T, table: &str, keys: &[&str], tier: &str) -> u64 {
    let load = tables.begin(table).await.unwrap();
    tables.add(&load, rows(keys, tier)).await.unwrap();
    tables.finish(&load, NOW_MS).await.unwrap().version
}

fn some(tier: &str) -> Option<String> {
    Some(tier.to_owned())
}

async fn a_table_that_was_never_loaded_has_no_rows<T: Tables + TableLoads>(tables: &T) {
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [None, None]);
    assert_eq!(tiers(tables, "users", &[]).await, []);
    assert_eq!(tables.list().await.unwrap(), []);
}

async fn a_load_answers_all_at_once<T: Tables + TableLoads>(tables: &T) {
    let load = tables.begin("users").await.unwrap();
    tables.add(&load, rows(&["u-1", "u-2"], "gold")).await.unwrap();
    tables.add(&load, rows(&["u-2", "u-3"], "none")).await.unwrap();
    assert_eq!(tiers(tables, "users", &["u-1"]).await, [None]);
    assert_eq!(tables.list().await.unwrap(), []);

    let version = tables.finish(&load, NOW_MS).await.unwrap();
    assert_eq!((version.name.as_str(), version.loaded_ms), ("users", NOW_MS));
    let found = tiers(tables, "users", &["u-3", "u-9", "u-1", "u-2", "u-1"]).await;
    assert_eq!(found, [some("none"), None, some("gold"), some("none"), some("gold")]);
    assert_eq!(tables.list().await.unwrap(), [version]);
}

async fn a_load_replaces_the_whole_table<T: Tables + TableLoads>(tables: &T) {
    let first = load(tables, "users", &["u-1", "u-2"], "gold").await;
    let begun = tables.begin("users").await.unwrap();
    tables.add(&begun, rows(&["u-2"], "none")).await.unwrap();
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [some("gold"), some("gold")]);

    let second = tables.finish(&begun, NOW_MS + 1).await.unwrap();
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [None, some("none")]);
    assert!(second.version > first);
    assert_eq!(second.rows, 1);

    // So does one without rows.
    load(tables, "users", &[], "").await;
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [None, None]);
    assert_eq!(tables.list().await.unwrap()[0].rows, 0);
}

async fn rows_come_back_whole<T: Tables + TableLoads>(tables: &T) {
    let whole = json!({ "näme": "☔ \"'", "age": 41, "sum": -1.5, "zone": null, "empty": "" });
    let whole = whole.as_object().unwrap().clone();
    let keys: Vec<String> = ["", "ü ☔", "a\u{0}b", &"k".repeat(256)].map(str::to_owned).to_vec();
    let load = tables.begin("a-Z_9").await.unwrap();
    let rows = keys.iter().map(|key| (key.clone(), whole.clone())).collect();
    tables.add(&load, rows).await.unwrap();
    tables.add(&load, vec![("member".to_owned(), TableRow::new())]).await.unwrap();
    tables.finish(&load, NOW_MS).await.unwrap();

    let found = tables.get("a-Z_9", &keys).await.unwrap();
    assert!(found.iter().all(|row| row.as_ref() == Some(&whole)), "{found:?}");
    let member = tables.get("a-Z_9", &["member".to_owned(), "a".to_owned()]).await.unwrap();
    assert_eq!(member, [Some(TableRow::new()), None]);
}

async fn of_two_loads_the_first_to_finish_wins<T: Tables + TableLoads>(tables: &T) {
    let one = tables.begin("users").await.unwrap();
    let other = tables.begin("users").await.unwrap();
    tables.add(&one, rows(&["u-1"], "one")).await.unwrap();
    tables.add(&other, rows(&["u-1"], "other")).await.unwrap();
    tables.finish(&other, NOW_MS).await.unwrap();

    let late = tables.finish(&one, NOW_MS).await;
    assert_eq!(late, Err(TableError::Replaced("users".to_owned())));
    assert_eq!(tiers(tables, "users", &["u-1"]).await, [some("other")]);
    assert!(load(tables, "users", &["u-1"], "next").await > other.version);
}

async fn an_abandoned_load_leaves_nothing<T: Tables + TableLoads>(tables: &T) {
    let begun = tables.begin("users").await.unwrap();
    tables.add(&begun, rows(&["u-1"], "gold")).await.unwrap();
    tables.abandon(&begun).await.unwrap();
    let gone = tables.finish(&begun, NOW_MS).await;
    assert_eq!(gone, Err(TableError::Replaced("users".to_owned())));
    assert_eq!(tables.list().await.unwrap(), []);

    let unknown = TableLoad { table: "users".to_owned(), version: 99 };
    assert!(tables.add(&unknown, rows(&["u-1"], "gold")).await.is_err());
    load(tables, "users", &["u-2"], "none").await;
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [None, some("none")]);
}

async fn single_rows_change_together<T: Tables + TableLoads>(tables: &T) {
    let change = |key: &str, tier: Option<&str>| (key.to_owned(), tier.map(row));
    tables.change("users", vec![change("u-1", Some("gold"))]).await.unwrap();
    assert_eq!(tiers(tables, "users", &["u-1"]).await, [some("gold")]);

    load(tables, "users", &["u-1", "u-2"], "none").await;
    let changes = vec![change("u-1", None), change("u-2", Some("gold")), change("u-3", None)];
    tables.change("users", changes).await.unwrap();
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [None, some("gold")]);

    // They belong to the version: the next load knows nothing of them.
    load(tables, "users", &["u-1"], "none").await;
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [some("none"), None]);
}

async fn a_removed_table_is_gone<T: Tables + TableLoads>(tables: &T) {
    let version = load(tables, "users", &["u-1"], "gold").await;
    tables.remove("users").await.unwrap();
    tables.remove("nobody").await.unwrap();
    assert_eq!(tiers(tables, "users", &["u-1"]).await, [None]);
    assert_eq!(tables.list().await.unwrap(), []);
    assert!(load(tables, "users", &["u-2"], "none").await > version);
    assert_eq!(tiers(tables, "users", &["u-1", "u-2"]).await, [None, some("none")]);
}

async fn tables_do_not_mix<T: Tables + TableLoads>(tables: &T) {
    load(tables, "a", &["b-c"], "one").await;
    load(tables, "a-b", &["c"], "two").await;
    tables.remove("a").await.unwrap();
    assert_eq!(tiers(tables, "a-b", &["c", "b-c"]).await, [some("two"), None]);
    let names: Vec<String> =
        tables.list().await.unwrap().into_iter().map(|version| version.name).collect();
    assert_eq!(names, ["a-b"]);
}
