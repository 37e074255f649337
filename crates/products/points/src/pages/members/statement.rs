//! The statement of a member: everything that happened, newest first, with the balance behind it.

use crate::pages::kinds;
use crate::pages::view::ProgrammeView;
use crate::pages::visit::{Answer, Visit, programme};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_app::csv::cell;
use raingauge_awarding::StatementRow;
use raingauge_core::time::format_rfc3339;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use raingauge_portal::{Fault, download};
use std::fmt::Write as _;

/// Rows of a page.
const ROWS: usize = 50;
/// Rows that are read at a time for a file.
const READ: usize = 500;
/// Rows of a file.
const FILE_ROWS_MAX: usize = 50_000;

const COLUMNS: [Column<'_>; 6] = [
    Column::Text("When"),
    Column::Text("What"),
    Column::Number("Points"),
    Column::Number("Balance"),
    Column::Text("About"),
    Column::Silent("Why"),
];

pub async fn card(visit: &Visit, programme: &ProgrammeView, member: &str) -> Result<Markup, Fault> {
    let before = visit.query.given("before").and_then(|before| before.parse().ok());
    let rows = visit.desk.statement(&programme.name, member, before, ROWS).await?;
    let oldest = rows.iter().filter_map(|row| row.sequence).min();
    let has_more = rows.len() >= ROWS && oldest.is_some_and(|oldest| oldest > 1);
    let address = programme.member_address(member);

    Ok(html! {
        section.card aria-labelledby="statement-title" {
            div.card-head {
                h2 #statement-title { "Statement" }
                span.quiet { "times of " (words::zone(&programme.zone)) }
                @if !rows.is_empty() { div.actions { a href={ (address) "/statement.csv" } { "Download as CSV" } } }
            }
            @if rows.is_empty() {
                p { "Nothing has happened yet. The first points of this member will stand here." }
            } @else {
                (parts::table("statement-title", &COLUMNS, &html! {
                    @for one in &rows { (row(programme, one)) }
                }))
            }
        }
        @if before.is_some() || has_more {
            nav.actions aria-label="Pages" {
                @if before.is_some() { a.button href=(address) { "Newest" } }
                @if let Some(oldest) = oldest.filter(|_| has_more) {
                    a.button href={ (address) "?before=" (oldest) } { "Earlier" }
                }
            }
        }
    })
}

fn row(programme: &ProgrammeView, row: &StatementRow) -> Markup {
    html! {
        tr {
            td {
                (parts::moment(row.occurred_ms.div_euclid(1_000), &programme.zone))
                (late(row, &programme.zone))
            }
            td { (kinds::badge(row.kind)) @if row.sequence.is_none() { " " span.quiet { "not written yet" } } }
            td.number { strong { (programme.change(row.points.into())) } }
            td.number { (programme.amount(row.balance_after.into())) }
            td.wrap { (about(row)) }
            td {
                @if let Some((book, sequence)) = row.place {
                    a href=(programme.address(&format!("entries/{book}/{sequence}"))) { "Why?" }
                }
            }
        }
    }
}

/// When an entry was recorded, if that was on another day than what it is about.
fn late(row: &StatementRow, zone: &TimeZone) -> Markup {
    let date = |at_ms: i64| words::local(at_ms.div_euclid(1_000), zone).map(|local| local.date());
    if date(row.occurred_ms) == date(row.recorded_ms) {
        return html! {};
    }
    html! { br; span.quiet { "recorded " (parts::moment(row.recorded_ms.div_euclid(1_000), zone)) } }
}

fn about(row: &StatementRow) -> Markup {
    html! {
        @if let Some(reason) = &row.reason { (words::cut(reason, 120)) " " }
        @if let Some(reference) = &row.reference { code { (words::cut(reference, 60)) } }
        @if row.reason.is_none() && row.reference.is_none() { "–" }
    }
}

/// `GET /points/{programme}/members/{member}/statement.csv`
pub async fn download(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let member = visit.at("member").to_owned();
    let mut text =
        String::from("sequence,kind,points,balance,occurred,recorded,reason,reference,key\n");
    let mut before = None;
    let mut count = 0;
    let is_complete = loop {
        let rows = visit.desk.statement(&programme.name, &member, before, READ).await?;
        // Rows that are not written yet come with the first page alone.
        rows.iter().for_each(|row| text.push_str(&line(&programme, row)));
        count += rows.len();
        before = rows.iter().filter_map(|row| row.sequence).min();
        if rows.len() < READ || before.is_none_or(|oldest| oldest <= 1) {
            break true;
        }
        if count >= FILE_ROWS_MAX {
            break false;
        }
    };
    Ok(download::part(download::CSV, "statement.csv", text, is_complete))
}

fn line(programme: &ProgrammeView, row: &StatementRow) -> String {
    let mut line = String::new();
    let time = |at_ms: i64| format_rfc3339(at_ms.div_euclid(1_000));
    let texts = [&row.reason, &row.reference, &row.key];
    let texts = texts.map(|text| text.as_deref().map(cell).unwrap_or_default());
    let plain = |points: i64| programme.amount(points.into()).replace(',', "");
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        line,
        "{},{},{},{},{},{},{}",
        row.sequence.map(|sequence| sequence.to_string()).unwrap_or_default(),
        row.kind.name(),
        plain(row.points),
        plain(row.balance_after),
        time(row.occurred_ms),
        time(row.recorded_ms),
        texts.join(",")
    );
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::view::tests::programme as view;
    use raingauge_points::Kind;
    use serde_json::json;

    fn statement_row() -> StatementRow {
        StatementRow {
            sequence: Some(7),
            place: Some((0, 42)),
            kind: Kind::Earn,
            points: 180,
            balance_after: 1_180,
            occurred_ms: 1_767_000_000_000,
            recorded_ms: 1_767_000_000_000,
            reason: None,
            reference: Some("<o-1>".into()),
            key: Some("=1+1".into()),
        }
    }

    #[test]
    fn a_row_leads_to_its_reasons() {
        let shown = row(&view(json!({})), &statement_row()).into_string();
        for words in ["+180", "1,180", "/points/grab-sg/entries/0/42", "&lt;o-1&gt;", "earned"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("recorded"), "{shown}");
        let settled = StatementRow { sequence: None, place: None, ..statement_row() };
        let shown = row(&view(json!({})), &settled).into_string();
        assert!(shown.contains("not written yet") && !shown.contains("Why?"), "{shown}");
    }

    #[test]
    fn a_late_row_says_when_it_was_recorded() {
        let late = StatementRow { recorded_ms: 1_767_000_000_000 + 86_400_000, ..statement_row() };
        assert!(row(&view(json!({})), &late).into_string().contains("recorded"));
    }

    #[test]
    fn a_file_has_plain_numbers_and_no_formulas() {
        let written = line(&view(json!({})), &statement_row());
        assert!(written.starts_with("7,earn,180,1180,2025-12-29T"), "{written}");
        assert!(written.ends_with(",,<o-1>,\"'=1+1\"\n"), "{written}");
    }
}
