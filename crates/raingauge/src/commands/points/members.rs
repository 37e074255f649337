//! What members have, and what there is for them.

use super::Member;
use crate::commands::campaigns::tables::print_list;
use crate::commands::campaigns::text;
use crate::commands::session::Session;
use crate::commands::table::Align;
use crate::commands::{print, print_json};
use raingauge_console::encoded;

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

    for name in ["available", "pending", "held", "arrears", "tier", "expiresOn", "closed"] {
        let value = text(&found[name]);
        if !value.is_empty() {
            print(&format!("{name:<10} {value}"))?;
        }
    }
    let columns = [("points", Align::Right, "points"), ("expires on", Align::Left, "expiresOn")];
    print_list(&found["lots"], &columns)
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
        ("sequence", Align::Right, "sequence"),
        ("kind", Align::Left, "kind"),
        ("points", Align::Right, "points"),
        ("balance", Align::Right, "balanceAfter"),
        ("occurred at", Align::Left, "occurredAt"),
        ("reason", Align::Left, "reason"),
        ("reference", Align::Left, "reference"),
        ("key", Align::Left, "key"),
    ];
    print_list(&found["rows"], &columns)
}

pub fn explain(session: &Session, member: &Member, is_json: bool) -> anyhow::Result<()> {
    let found = session.client.get(&member.path("/explain"), &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }
    let columns = [
        ("points left", Align::Right, "left"),
        ("of", Align::Right, "awarded"),
        ("expires on", Align::Left, "expiresOn"),
        ("awarded at", Align::Left, "occurredAt"),
        ("why", Align::Left, "why"),
    ];
    print_list(&found["awards"], &columns)
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
    let columns = [("expires in", Align::Left, "month"), ("points", Align::Right, "points")];
    print_list(&found["months"], &columns)?;

    let mut gone = found["breakage"].as_array().cloned().unwrap_or_default();
    if gone.is_empty() {
        return Ok(());
    }
    for month in &mut gone {
        let ppm = month["breakagePpm"].as_f64();
        month["share"] = ppm.map(|ppm| format!("{:.1} %", ppm / 10_000.0)).into();
    }
    print("")?;
    let columns = [
        ("due in", Align::Left, "month"),
        ("spent before", Align::Right, "burned"),
        ("expired", Align::Right, "expired"),
        ("breakage", Align::Right, "share"),
    ];
    print_list(&gone.into(), &columns)
}

pub fn budgets(session: &Session, programme: &str, is_json: bool) -> anyhow::Result<()> {
    let path = format!("/v1/points/{}/budgets", encoded(programme));
    let found = session.client.get(&path, &[])?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    let columns = [
        ("budget", Align::Left, "name"),
        ("limit", Align::Right, "limit"),
        ("used", Align::Right, "used"),
        ("left", Align::Right, "left"),
    ];
    print_list(&found["budgets"], &columns)
}

pub fn rewards(session: &Session, programme: Option<&str>, is_json: bool) -> anyhow::Result<()> {
    let parameters: Vec<(&str, &str)> =
        programme.into_iter().map(|programme| ("programme", programme)).collect();
    let found = session.client.get("/v1/points/rewards", &parameters)?;
    if is_json {
        return Ok(print_json(&found)?);
    }

    let columns = [
        ("programme", Align::Left, "programme"),
        ("reward", Align::Left, "name"),
        ("points", Align::Right, "points"),
        ("stock", Align::Right, "stock"),
        ("left", Align::Right, "left"),
    ];
    print_list(&found["rewards"], &columns)
}
