//! The audit log: filtered, paged, and exported as CSV or NDJSON.

use crate::Portal;
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::parts::{self, Field};
use crate::html::{layout, words};
use crate::times::{moment_of, next_bucket};
use axum::extract::{Extension, State};
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse, Response};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::bucket::Granularity;
use raingauge_core::limits::AUDIT_ENTRIES_MAX;
use raingauge_people::Principal;
use raingauge_people::audit::{to_csv, to_ndjson};
use raingauge_ports::people::{Entry, Filter};

/// Entries per page.
const PAGE_ENTRIES: usize = 50;
/// Largest number of entries in one export; narrower dates give the rest.
const EXPORT_ENTRIES_MAX: usize = 100_000;

/// `GET /audit`
pub async fn list(
    State(portal): State<Portal>,
    Extension(person): Extension<Principal>,
    Query(fields): Query,
) -> Result<Html<String>, Fault> {
    // One entry more than is shown tells whether there is another page.
    let filter = Filter { limit: PAGE_ENTRIES + 1, ..filter_of(&fields)? };
    let mut entries = portal.accounts.audit.entries(filter).await?;
    let has_more = entries.len() > PAGE_ENTRIES;
    entries.truncate(PAGE_ENTRIES);

    let body = html! {
        div.page-head {
            h1 { "Audit log" }
            div.actions {
                a.button href={ "/audit.csv?" (query(&fields, None)) } { "CSV" }
                a.button href={ "/audit.ndjson?" (query(&fields, None)) } { "NDJSON" }
            }
        }
        (filters(&fields))
        @if entries.is_empty() {
            (parts::empty("Nothing is written down here", &html! {
                "Every change by a page and by the API leaves a line. " a href="/audit" { "Without a filter" } " you see them all."
            }))
        } @else {
            (table(&entries, &fields.zone()))
            nav.actions aria-label="Pages" {
                @if fields.given("before").is_some() { a.button href={ "/audit?" (query(&fields, None)) } { "Newest" } }
                @if has_more && let Some(last) = entries.last() {
                    a.button href={ "/audit?" (query(&fields, Some(last.id))) } { "Older" }
                }
            }
        }
    };
    Ok(portal.page(Some(&person), layout::Place::Audit, "Audit log", &body))
}

/// `GET /audit.csv`
pub async fn csv(State(portal): State<Portal>, Query(fields): Query) -> Result<Response, Fault> {
    export(&portal, &fields, "text/csv; charset=utf-8", "audit.csv", to_csv).await
}

/// `GET /audit.ndjson`
pub async fn ndjson(State(portal): State<Portal>, Query(fields): Query) -> Result<Response, Fault> {
    export(&portal, &fields, "application/x-ndjson", "audit.ndjson", |entries, _| {
        to_ndjson(entries)
    })
    .await
}

async fn export(
    portal: &Portal,
    fields: &Fields,
    content_type: &'static str,
    file: &str,
    write: fn(&[Entry], bool) -> String,
) -> Result<Response, Fault> {
    let mut filter = filter_of(fields)?;
    filter.limit = AUDIT_ENTRIES_MAX;

    let mut text = write(&[], true);
    let mut written = 0;
    loop {
        let entries = portal.accounts.audit.entries(filter.clone()).await?;
        text.push_str(&write(&entries, false));
        written += entries.len();

        match entries.last() {
            Some(last) if entries.len() == AUDIT_ENTRIES_MAX && written < EXPORT_ENTRIES_MAX => {
                filter.before = last.id
            }
            _ => break,
        }
    }

    let disposition = (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\""));
    let about = [(header::CONTENT_TYPE, content_type.to_owned()), disposition];
    let is_whole = (
        HeaderName::from_static("x-complete"),
        if written < EXPORT_ENTRIES_MAX { "true" } else { "false" },
    );

    Ok((about, [is_whole], text).into_response())
}

/// The filter that the address specifies.
fn filter_of(fields: &Fields) -> Result<Filter, Fault> {
    let text = |name: &str| fields.text(name).to_owned();
    let before = match fields.given("before") {
        Some(before) => before.parse().map_err(|_| {
            Fault::bad_request("There is no such page", "Go back to the newest entries.")
        })?,
        None => i64::MAX,
    };

    let from_s = day(fields, "from")?.unwrap_or(i64::MIN);

    // The range includes the whole last day.
    let to_s = day(fields, "to")?
        .map_or(i64::MAX, |day_s| next_bucket(day_s, Granularity::Day, &fields.zone()));
    Ok(Filter {
        who: text("who"),
        verb: text("what"),
        object: text("object"),
        from_s,
        to_s,
        before,
        ..Filter::default()
    })
}

/// The start of a day in the requested time zone.
fn day(fields: &Fields, name: &str) -> Result<Option<i64>, Fault> {
    let Some(day) = fields.given(name) else {
        return Ok(None);
    };
    let begins = moment_of(&format!("{day}T00:00"), &fields.zone());
    let refused = || Fault::bad_request("This is no day", "Write a day as 2024-09-24.");
    begins.map(Some).ok_or_else(refused)
}

/// The filters as a query string.
fn query(fields: &Fields, before: Option<i64>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in ["who", "what", "object", "from", "to", "zone"] {
        if let Some(value) = fields.given(name) {
            query.append_pair(name, value);
        }
    }
    if let Some(before) = before {
        query.append_pair("before", &before.to_string());
    }
    query.finish()
}

fn filters(fields: &Fields) -> Markup {
    let text =
        |name, label, hint| Field { name, label, hint, problem: None }.text(fields.text(name));
    let day = |name, label| {
        let field = Field { name, label, hint: "", problem: None };
        field.around(&html! { input type="date" id=(name) name=(name) value=(fields.text(name)); })
    };
    html! {
        form.card method="get" action="/audit" {
            div.row.filters {
                (text("who", "Principal", ""))
                (text("what", "What", ""))
                (text("object", "Of what", ""))
                (day("from", "From day"))
                (day("to", "To day"))
                (parts::zone_field(&fields.zone()))
                button.button.primary { "Filter" }
            }
        }
    }
}

fn table(entries: &[Entry], zone: &TimeZone) -> Markup {
    html! {
        div.card.scroll tabindex="0" role="region" aria-label="Entries of the audit log" {
            table.list.audit {
                thead { tr { th scope="col" { "When (" (words::zone(zone)) ")" } th scope="col" { "Principal" } th scope="col" { "What" } th scope="col" { "Of what" } th scope="col" { "Outcome" } th scope="col" { "Details" } } }
                tbody {
                    @for entry in entries {
                        tr {
                            td.moment { (parts::moment(entry.at_s, zone)) }
                            td { (entry.who) @if !entry.address.is_empty() { br; span.quiet { (entry.address) } } }
                            td { code.verb { (entry.verb) } }
                            td { (entry.object) }
                            td { span.state data-state=(if entry.outcome == "done" { "good" } else { "bad" }) { (entry.outcome) } }
                            td { @if entry.details != "{}" { code.details { (entry.details) } } }
                        }
                    }
                }
            }
        }
    }
}
