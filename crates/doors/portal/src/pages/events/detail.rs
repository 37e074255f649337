//! One event type: freshness, completeness, counters, sources, fields with examples, and the newest
//! events.

use super::{arrival, completeness, create_address, freshness, listeners};
use crate::Portal;
use crate::caller::{Caller, Page};
use crate::fault::Fault;
use crate::fields::Query;
use crate::html::parts::Column::{self, Number, Text};
use crate::html::{layout, parts, words};
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_counters::observed::{EventType, Field, Sample};
use raingauge_people::Origin;
use raingauge_people::audit::AuditAction;
use raingauge_ports::catalog::Versioned;
use serde_json::json;

/// Numbers of sources, of examples for each field, and of events shown.
const SOURCES_SHOWN: usize = 10;
const EXAMPLES_SHOWN: usize = 6;
const SAMPLES_SHOWN: usize = 5;
/// Longest data of an event, and longest value, in characters.
const DATA_CHARS: usize = 1_500;
const VALUE_CHARS: usize = 40;

/// `GET /events/{type}`
pub async fn page(
    caller: Caller,
    Extension(origin): Extension<Origin>,
    Path(name): Path<String>,
    Query(fields): Query,
) -> Page {
    let portal = &caller.portal;
    let zone = fields.zone();
    let observed = portal.observed().await?;
    let counters = portal.counters.list().await?;
    let own: Vec<&Versioned> = listeners(&counters, &name).collect();
    let found = observed.of_type(&name);
    if found.is_none() && own.is_empty() {
        return Err(Fault::new(
            StatusCode::NOT_FOUND,
            "There are no events of this type",
            "None of the newest events has it, and no counter counts it. The page /events lists \
             the types that arrive.",
        ));
    }

    let shows_values = caller.person.may(Role::Editor) && portal.limits.samples.are_shown;
    if shows_values && found.is_some() {
        note_view(&caller, &origin, &name).await;
    }

    let body = html! {
        div.page-head {
            h1 { code { (name) } }
            p.quiet { a href="/events" { "Events" } }
            @if caller.person.may(Role::Editor) {
                div.actions { a.button href=(create_address(&name)) { "New counter" } }
            }
        }
        @match found {
            None => div.notice.wait {
                "None of the newest " (words::number(observed.events.into()))
                " events has this type. Check that its producer runs."
            },
            Some(found) => {
                div.columns {
                    div.stack {
                        (arrived(found, portal.clock.now_s(), &zone))
                        (sources(found))
                        (arrival(portal))
                    }
                    (counted(portal, &own))
                }
                (fields_of(found, shows_values))
                @if shows_values { (samples(found, &zone)) } @else { (without_values(portal)) }
            }
        }
        @if found.is_none() { (counted(portal, &own)) }
    };
    Ok(caller.page(layout::Place::Events, &words::cut(&name, 60), &body))
}

/// Records who views events in the audit log, because events may contain personal data.
async fn note_view(caller: &Caller, origin: &Origin, name: &str) {
    let portal = &caller.portal;
    if portal.views.begins(&caller.person.name, name, portal.clock.now_s()) {
        let action = AuditAction::new("events.view", format!("event type {name}"), json!({}));
        portal.accounts.audit.note(&caller.person.name, origin, action, "done").await;
    }
}

fn without_values(portal: &Portal) -> Markup {
    html! {
        p.quiet {
            @if portal.limits.samples.are_shown {
                "Only editors and administrators see the values of events."
            } @else {
                "Nobody sees the values of events here: " code { "portal.show_samples" } " is off."
            }
        }
    }
}

fn arrived(found: &EventType, now_s: i64, zone: &TimeZone) -> Markup {
    let late = found.lateness;
    let seconds = |seconds: i64| words::duration(seconds as f64);
    html! {
        section.card aria-labelledby="arrived-title" {
            h2 #arrived-title { "Freshness and completeness" }
            dl.facts {
                dt { "Events" }
                dd { (words::count_of(found.events.into(), "event", "events")) " among the newest of the log" }
                dt { "Newest event" }
                dd {
                    (freshness(found, now_s)) " " (parts::moment(found.newest_s, zone)) ", "
                    (parts::ago(now_s - found.newest_s))
                }
                dt { "Last arrival" }
                dd { (parts::ago(now_s - found.appended_s)) }
                dt { "Delay" }
                dd {
                    "half within " (seconds(late.median_s)) ", 99 of 100 within "
                    (seconds(late.p99_s)) ", the longest " (seconds(late.max_s))
                }
                dt { "After 15 min" }
                dd { (completeness(found)) " had arrived" }
                dt { "After an hour" }
                dd { (words::share(found.events - late.over_hour, found.events)) " had arrived" }
            }
            p.quiet {
                "How complete a bucket is that long after its events happened. Later events still \
                 count, in the bucket that they happened in, as long as it is kept."
            }
        }
    }
}

fn counted(portal: &Portal, own: &[&Versioned]) -> Markup {
    html! {
        section.card aria-labelledby="counted-title" {
            h2 #counted-title { "Counters" }
            @if own.is_empty() {
                p { "No counter counts this type." }
            } @else {
                (parts::table("counted-title", &COUNTERS, &html! {
                    @for found in own { (counter_row(portal, found)) }
                }))
                p.quiet {
                    "Too late: the buckets of these events had expired. Skipped: a field was \
                     missing or not a number. Both since the writers started."
                }
            }
        }
    }
}

const COUNTERS: [Column<'_>; 4] =
    [Text("Counter"), Text("State"), Number("Too late"), Number("Skipped")];

fn counter_row(portal: &Portal, found: &Versioned) -> Markup {
    let id = found.counter.id;
    let late: u64 = portal.operations.measures.late_refused(id).values().sum();
    let skipped: u64 = portal.operations.measures.skipped(id).values().sum();
    html! {
        tr {
            th.wrap scope="row" { a href={ "/counters/" (id) } { (found.counter.name) } }
            td { (parts::state(found.counter.state)) }
            td.number { (words::number(late.into())) }
            td.number { (words::number(skipped.into())) }
        }
    }
}

fn fields_of(found: &EventType, shows_values: bool) -> Markup {
    let has_data = found.fields.iter().any(|field| field.path.starts_with("data."));
    let columns = &FIELDS[..FIELDS.len() - usize::from(!shows_values)];
    html! {
        section.card aria-labelledby="fields-title" {
            h2 #fields-title { "Fields" }
            @if !has_data { p.quiet { "Its events carry no data." } }
            @if !found.fields.is_empty() {
                (parts::table("fields-title", columns, &html! {
                    @for field in &found.fields {
                        tr {
                            th.wrap scope="row" { code { (field.path) } }
                            td { (field.kind.name()) }
                            td.number { (words::share(field.events, found.events)) }
                            td.number {
                                (words::number(field.values as i128))
                                @if field.has_more_values { "+" }
                            }
                            @if shows_values { td.wrap { (examples(field)) } }
                        }
                    }
                }))
                @if found.has_more_fields { p.quiet { "The events have more fields than these." } }
            }
        }
    }
}

/// The last column is only for people who may see values.
const FIELDS: [Column<'_>; 5] = [
    Text("Field"),
    Text("Type"),
    Number("Present in"),
    Number("Distinct values"),
    Text("Examples, most frequent first"),
];

fn examples(field: &Field) -> Markup {
    html! {
        @for (place, example) in field.examples.iter().take(EXAMPLES_SHOWN).enumerate() {
            @if place > 0 { ", " }
            code { (words::cut(&example.text, VALUE_CHARS)) }
        }
    }
}

fn sources(found: &EventType) -> Markup {
    html! {
        section.card aria-labelledby="sources-title" {
            h2 #sources-title { "Sources" }
            (parts::table("sources-title", &[Text("Source"), Number("Events")], &html! {
                @for (source, events) in found.sources.iter().take(SOURCES_SHOWN) {
                    tr {
                        th.wrap scope="row" { code { (words::cut(source, 120)) } }
                        td.number { (words::number((*events).into())) }
                    }
                }
            }))
        }
    }
}

fn samples(found: &EventType, zone: &TimeZone) -> Markup {
    html! {
        details.card {
            summary { "The newest events" }
            div.stack {
                @for sample in found.samples.iter().rev().take(SAMPLES_SHOWN) {
                    (one(sample, zone))
                }
            }
        }
    }
}

fn one(sample: &Sample, zone: &TimeZone) -> Markup {
    let name = |text: &str| html! { " " code { (words::cut(text, 80)) } };
    html! {
        div {
            p.quiet {
                (parts::moment(sample.time_ms.div_euclid(1_000), zone))
                (name(&sample.source)) (name(&sample.id))
                @if let Some(subject) = &sample.subject { (name(subject)) }
            }
            pre.data tabindex="0" { code { (words::cut(&sample.data, DATA_CHARS)) } }
        }
    }
}
