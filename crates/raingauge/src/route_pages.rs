//! The pages of docs/ that name every route: docs/rights.md is generated from the route tables,
//! docs/api.md, docs/api-campaigns.md and docs/api-points.md describe each route.

use crate::products::{PRODUCTS, tests::additions};
use axum::http::Method;
use raingauge_http as http;
use raingauge_portal::Needs;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
/// Set to write docs/rights.md instead of comparing it.
const WRITE: &str = "RAINGAUGE_WRITE_DOCS";

/// Rows of a table, by their sort key.
type Rows = BTreeMap<(&'static str, String), String>;

#[test]
fn the_page_of_rights_has_every_route() {
    let path = format!("{DOCS}/rights.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let expected = with_tables(&page, &[table_of_api(), table_of_portal()]);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/rights.md is not up to date; {WRITE}=1 makes this test write it"
    );
}

#[test]
fn the_page_of_the_api_has_every_route() {
    let read = |name: &str| std::fs::read_to_string(format!("{DOCS}/{name}.md")).unwrap();
    let pages = read("api") + &read("api-campaigns") + &read("api-points");
    for route in http::routes().join(additions(PRODUCTS).routes).iter() {
        assert!(pages.contains(&format!("`{route:?}`")), "docs/api.md lacks `{route:?}`");
    }
}

fn table_of_api() -> String {
    let mut rows = Rows::new();
    for route in http::routes().join(additions(PRODUCTS).routes).iter() {
        let scope = quoted(route.scope.map(|scope| scope.name()), "nothing");
        let role = quoted(route.role.map(|role| role.name()), "all");
        let verb = quoted(route.verb, "");
        add(&mut rows, &route.method, route.path, &format!("{scope} | {role} | {verb}"));
    }
    table("| route | needs the scope | answered by | in the audit log |\n|---|---|---|---|", &rows)
}

fn table_of_portal() -> String {
    let mut rows = Rows::new();
    for route in raingauge_portal::routes().iter().chain(additions(PRODUCTS).pages.iter()) {
        let needs = match route.needs {
            Needs::Nothing => "nothing".to_owned(),
            Needs::Role(role) => role.to_string(),
            Needs::FreshRole(role) => format!("{role}, signed in within 15 minutes"),
        };
        let verb = quoted(route.verb, "");
        add(&mut rows, &route.method, route.path, &format!("{needs} | {verb}"));
    }
    table("| route | needs the role | in the audit log |\n|---|---|---|", &rows)
}

fn quoted(name: Option<&str>, otherwise: &str) -> String {
    name.map_or_else(|| otherwise.to_owned(), |name| format!("`{name}`"))
}

fn add(rows: &mut Rows, method: &Method, path: &'static str, cells: &str) {
    let earlier = rows.insert((path, method.to_string()), cells.to_owned());
    assert!(earlier.is_none(), "{method} {path} stands in the table twice");
}

fn table(head: &str, rows: &Rows) -> String {
    let mut table = format!("{head}\n");
    for ((path, method), cells) in rows {
        let _ = writeln!(table, "| `{method} {path}` | {cells} |");
    }
    table
}

/// Returns the page with these tables in place of those that begin with a column of routes.
fn with_tables(page: &str, tables: &[String]) -> String {
    let mut tables = tables.iter();
    let mut written = String::new();
    let mut is_in_table = false;

    for line in page.lines() {
        if line.starts_with("| route |") {
            written.push_str(tables.next().expect("a table for each of the page"));
            is_in_table = true;
        }

        is_in_table &= line.starts_with('|');

        if !is_in_table {
            written.push_str(line);
            written.push('\n');
        }
    }

    assert!(tables.next().is_none(), "docs/rights.md has fewer tables than there are");
    written
}
