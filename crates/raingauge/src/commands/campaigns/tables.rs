//! The answers about campaigns as tables.

use super::text;
use crate::commands::table::{Align, grouped, render};
use crate::commands::{print, table};
use serde_json::Value;

/// What a campaign did on each local day.
pub fn usage(answer: &Value) -> anyhow::Result<()> {
    let columns = [
        ("day", Align::Left),
        ("step", Align::Left),
        ("granted", Align::Right),
        ("subjects", Align::Right),
        ("spent", Align::Right),
        ("refused", Align::Left),
    ];
    let row = |found: &Value| {
        vec![
            text(&found["day"]),
            text(&found["step"]),
            number(&found["granted"]),
            number(&found["subjects"]),
            pairs(&found["spent"]),
            pairs(&found["refused"]),
        ]
    };
    print_rows(&columns, rows_of(&answer["days"], row))
}

/// What each step of a replay triggered.
pub fn steps(answer: &Value) -> anyhow::Result<()> {
    let columns = [
        ("campaign", Align::Right),
        ("step", Align::Left),
        ("triggers", Align::Right),
        ("subjects", Align::Right),
        ("spend", Align::Left),
        ("exhausted", Align::Left),
        ("refused", Align::Left),
    ];
    let row = |found: &Value| {
        vec![
            text(&found["campaign"]),
            text(&found["step"]),
            number(&found["triggers"]),
            number(&found["subjects"]),
            pairs(&found["spend"]),
            text(&found["exhausted"]),
            pairs(&found["refused"]),
        ]
    };
    print_rows(&columns, rows_of(&answer["steps"], row))
}

pub fn decisions(decisions: &Value) -> anyhow::Result<()> {
    let columns = [
        ("event", Align::Left),
        ("subject", Align::Left),
        ("campaign", Align::Right),
        ("step", Align::Left),
        ("action", Align::Left),
        ("outcome", Align::Left),
        ("id", Align::Left),
    ];
    let row = |found: &Value| {
        let event = format!("{}/{}", text(&found["source"]), text(&found["event"]));
        let cells = ["subject", "campaign", "step", "name", "outcome", "action"];
        std::iter::once(event).chain(cells.map(|name| text(&found[name]))).collect()
    };
    print_rows(&columns, rows_of(decisions, row))
}

/// The conditions of an explanation, in the order in which they were tested.
pub fn explanation(answer: &Value) -> anyhow::Result<()> {
    let code = text(&answer["code"]);
    let how = text(&answer["how"]);
    let how = if how.is_empty() { String::new() } else { format!(" ({how})") };
    print(&format!("{code}{how}"))?;

    for line in answer["trace"].as_array().into_iter().flatten() {
        let mark = if line["holds"] == true { "holds" } else { "does not hold" };
        let is = match (&line["before"], &line["after"]) {
            (Value::Null, Value::Null) => format!("is {}", line["is"]),
            (before, after) => format!("went from {before} to {after}"),
        };
        print(&format!("  {}: {is}: {mark}", text(&line["leaf"])))?;
    }

    for step in answer["nearest"].as_array().into_iter().flatten() {
        for change in step["change"].as_array().into_iter().flatten() {
            let [step, lhs, wants] = [&step["step"], &change["lhs"], &change["wants"]].map(text);
            print(&format!("  {step} lacks: {lhs} is {}, and wants {wants}", change["is"]))?;
        }
    }
    Ok(())
}

pub fn print_rows(columns: &[(&str, Align)], rows: Vec<Vec<String>>) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(print("nothing")?);
    }
    Ok(print(&render(columns, &rows))?)
}

/// Prints a list whose columns are members of its items.
pub fn print_list(listed: &Value, columns: &[(&str, Align, &str)]) -> anyhow::Result<()> {
    let titles: Vec<_> = columns.iter().map(|(title, align, _)| (*title, *align)).collect();
    let row = |item: &Value| columns.iter().map(|(.., name)| text(&item[*name])).collect();
    print_rows(&titles, rows_of(listed, row))
}

pub fn rows_of(listed: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    listed.as_array().into_iter().flatten().map(row).collect()
}

pub fn number(value: &Value) -> String {
    value.as_i64().map_or_else(|| text(value), table::grouped)
}

/// The members of an object that are not 0.
fn pairs(value: &Value) -> String {
    let members = value.as_object().into_iter().flatten();
    let some = members.filter(|(_, number)| **number != 0);
    let texts = some.map(|(name, value)| match value.as_i64() {
        Some(number) => format!("{name} {}", grouped(number)),
        None => format!("{name} {}", text(value)),
    });
    texts.collect::<Vec<_>>().join(", ")
}
