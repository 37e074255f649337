//! The audit log: filtered, paged, and exported as CSV or NDJSON.

use crate::caller::{Caller, Page};
use crate::download;
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::parts::Column::Text;
use crate::html::parts::{self, Field};
use crate::html::{layout, words};
use crate::times::{bucket_start, moment_of, next_bucket};
use crate::{Answer, Portal};
use axum::extract::State;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::bucket::Granularity;
use raingauge_core::limits::AUDIT_ENTRIES_MAX;
use raingauge_people::audit::{to_csv, to_ndjson};
use raingauge_ports::people::{Entry, Filter};

/// The relative days that the fields suggest.
const DAYS: [&str; 4] = ["today", "yesterday", "-7d", "-30d"];
/// Entries per page.
const PAGE_ENTRIES: usize = 50;
/// Largest number of entries in one export; narrower dates give the rest.
const EXPORT_ENTRIES_MAX: usize = 100_000;

/// `GET /audit`
pub async fn list(caller: Caller, Query(fields): Query) -> Page {
    // One entry more than is shown tells whether there is another page.
    let now_s = caller.portal.clock.now_s();
    let filter = Filter { limit: PAGE_ENTRIES + 1, ..filter_of(&fields, now_s)? };
    let mut entries = caller.portal.accounts.audit.entries(filter).await?;
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
            (parts::empty("No entries", &html! {
                "Every change by a page or by the API is recorded here. "
                a href="/audit" { "Show all entries" } "."
            }))
        } @else {
            (table(&entries, &fields.zone()))
            nav.actions aria-label="Pages" {
                @if fields.given("before").is_some() {
                    a.button href={ "/audit?" (query(&fields, None)) } { "Newest" }
                }
                @if has_more && let Some(last) = entries.last() {
                    a.button href={ "/audit?" (query(&fields, Some(last.id))) } { "Older" }
                }
            }
        }
    };
    Ok(caller.page(layout::Place::Audit, "Audit log", &body))
}

/// `GET /audit.csv`
pub async fn csv(State(portal): State<Portal>, Query(fields): Query) -> Answer {
    export(&portal, &fields, download::CSV, "audit.csv", to_csv).await
}

/// `GET /audit.ndjson`
pub async fn ndjson(State(portal): State<Portal>, Query(fields): Query) -> Answer {
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
) -> Answer {
    let mut filter = filter_of(fields, portal.clock.now_s())?;
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

    Ok(download::part(content_type, file, text, written < EXPORT_ENTRIES_MAX))
}

/// The filter that the address specifies.
fn filter_of(fields: &Fields, now_s: i64) -> Result<Filter, Fault> {
    let text = |name: &str| fields.text(name).to_owned();
    let before = match fields.given("before") {
        Some(before) => before.parse().map_err(|_| {
            Fault::bad_request("There is no such page", "Go back to the newest entries.")
        })?,
        None => i64::MAX,
    };

    let zone = fields.zone();
    let from_s = day(fields, "from", now_s)?
        .map_or(i64::MIN, |at_s| bucket_start(at_s, Granularity::Day, &zone));

    // The range includes the whole last day.
    let to_s = day(fields, "to", now_s)?
        .map_or(i64::MAX, |at_s| next_bucket(at_s, Granularity::Day, &zone));
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

/// A moment within a day, in the requested time zone.
fn day(fields: &Fields, name: &str, now_s: i64) -> Result<Option<i64>, Fault> {
    let Some(text) = fields.given(name) else {
        return Ok(None);
    };
    let refused = || {
        let advice = "Write a day such as 2024-09-24, today, yesterday or -7d.";
        Fault::bad_request(format!("“{text}” is not a day"), advice)
    };
    moment_of(text, &fields.zone(), now_s).map(Some).ok_or_else(refused)
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
    let field = |name, label| Field { name, label, hint: "", problem: None };
    let text = |name, label| field(name, label).text(fields.text(name));
    let day = |name, label| {
        field(name, label).around(&html! {
            input type="text" id=(name) name=(name) value=(fields.text(name)) list="days"
                placeholder="2024-09-24 or -7d" autocomplete="off" spellcheck="false";
        })
    };
    html! {
        form.card method="get" action="/audit" {
            div.row.filters {
                (text("who", "Principal"))
                (text("what", "Action"))
                (text("object", "Object"))
                (day("from", "From day"))
                (day("to", "To day"))
                datalist #days { @for day in DAYS { option value=(day) {} } }
                (parts::zone_field(&fields.zone()))
                button.button.primary { "Filter" }
            }
        }
    }
}

fn table(entries: &[Entry], zone: &TimeZone) -> Markup {
    let when = format!("Time, {}", words::zone(zone));
    let columns = [
        Text(&when),
        Text("Principal"),
        Text("Action"),
        Text("Object"),
        Text("Outcome"),
        Text("Details"),
    ];

    let rows = html! {
        @for entry in entries {
            tr {
                td.moment { (parts::moment(entry.at_s, zone)) }
                td {
                    (entry.who)
                    @if !entry.address.is_empty() { br; span.quiet { (entry.address) } }
                }
                td { code.verb { (entry.verb) } }
                td { (entry.object) }
                td { (outcome(&entry.outcome)) }
                td { @if entry.details != "{}" { code.details { (entry.details) } } }
            }
        }
    };
    html! {
        div.card.table-card {
            (parts::named_table("Entries of the audit log", "list audit", &columns, &rows))
        }
    }
}

fn outcome(outcome: &str) -> Markup {
    let mood = if outcome == "done" { "good" } else { "bad" };
    html! { span.state data-state=(mood) { (outcome) } }
}
