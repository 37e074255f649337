//! What members have, and what there is for them.

use super::Member;
use crate::commands::campaigns::tables::{print_rows, rows_of};
use crate::commands::campaigns::text;
use crate::commands::session::Session;
use crate::commands::table::Align;
use crate::commands::{print, print_json};
use raingauge_console::encoded;
use serde_json::Value;

pub fn balance(
    session: &Session,
    member: &Member,
    at: Option<&str>,
    is_json: bool,
) -> anyhow::Result<()> {
    let parameters: Vec<(&str, &str)> = at.into_iter().map(|at| ("at", at)).collect();
    let found = session.client.get(&member.path(""), &parameters)?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    for name in ["available", "pending", "held", "arrears", "tier", "expiresOn"] {
        let value = text(&found[name]);
        if !value.is_empty() {
            print(&format!("{name:<10} {value}"))?;
        }
    }
    let columns = [("points", Align::Right), ("expires on", Align::Left)];
    let row = |lot: &Value| vec![text(&lot["points"]), text(&lot["expiresOn"])];
    print_rows(&columns, rows_of(&found["lots"], row))
}

pub fn statement(
    session: &Session,
    member: &Member,
    before: Option<u64>,
    limit: u32,
    is_json: bool,
) -> anyhow::Result<()> {
    let limit = limit.to_string();
    let before = before.map(|before| before.to_string());
    let mut parameters = vec![("limit", limit.as_str())];
    parameters.extend(before.as_deref().map(|before| ("before", before)));
    let found = session.client.get(&member.path("/statement"), &parameters)?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    let columns = [
        ("sequence", Align::Right),
        ("kind", Align::Left),
        ("points", Align::Right),
        ("balance", Align::Right),
        ("occurred at", Align::Left),
        ("reason", Align::Left),
        ("reference", Align::Left),
        ("key", Align::Left),
    ];
    let names =
        ["sequence", "kind", "points", "balanceAfter", "occurredAt", "reason", "reference", "key"];
    let row = |row: &Value| names.map(|name| text(&row[name])).to_vec();
    print_rows(&columns, rows_of(&found["rows"], row))
}

pub fn explain(session: &Session, member: &Member, is_json: bool) -> anyhow::Result<()> {
    let found = session.client.get(&member.path("/explain"), &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }
    let columns = [
        ("points left", Align::Right),
        ("of", Align::Right),
        ("expires on", Align::Left),
        ("awarded at", Align::Left),
        ("why", Align::Left),
    ];
    let names = ["left", "awarded", "expiresOn", "occurredAt", "why"];
    let row = |award: &Value| names.map(|name| text(&award[name])).to_vec();
    print_rows(&columns, rows_of(&found["awards"], row))
}

pub fn liability(session: &Session, programme: &str, is_json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/points/{}/liability", encoded(programme));
    let found = session.client.get(&path, &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    for name in ["outstanding", "pending", "held", "arrears"] {
        print(&format!("{name:<11} {}", text(&found[name])))?;
    }
    let columns = [("expires in", Align::Left), ("points", Align::Right)];
    let row = |month: &Value| vec![text(&month["month"]), text(&month["points"])];
    print_rows(&columns, rows_of(&found["months"], row))
}

pub fn budgets(session: &Session, programme: &str, is_json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/points/{}/budgets", encoded(programme));
    let found = session.client.get(&path, &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    let columns = [
        ("budget", Align::Left),
        ("limit", Align::Right),
        ("used", Align::Right),
        ("left", Align::Right),
    ];
    let row =
        |budget: &Value| ["name", "limit", "used", "left"].map(|name| text(&budget[name])).to_vec();
    print_rows(&columns, rows_of(&found["budgets"], row))
}

pub fn rewards(session: &Session, programme: Option<&str>, is_json: bool) -> anyhow::Result<()> {
    let parameters: Vec<(&str, &str)> =
        programme.into_iter().map(|programme| ("programme", programme)).collect();
    let found = session.client.get("/v1/points/rewards", &parameters)?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    let columns = [
        ("programme", Align::Left),
        ("reward", Align::Left),
        ("points", Align::Right),
        ("stock", Align::Right),
        ("left", Align::Right),
    ];
    let names = ["programme", "name", "points", "stock", "left"];
    let row = |reward: &Value| names.map(|name| text(&reward[name])).to_vec();
    print_rows(&columns, rows_of(&found["rewards"], row))
}
