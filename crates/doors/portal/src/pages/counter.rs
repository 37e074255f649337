//! The page of a counter: what it counts, a chart, its largest keys, its cost, the events it did
//! not count, and its history.

pub mod answer;
pub mod chart_query;
mod controls;
mod cost;
mod csv;
mod examples;
mod panels;
mod versions;

pub use cost::{Memory as CostMemory, cost};
pub use csv::{keys, series};
pub use versions::compare;

use crate::caller::Caller;
use crate::fault::Fault;
use crate::fields::{Fields, Query};
use crate::html::{layout, notes, parts, words};
use crate::largest::{self, Largest};
use crate::pages::actions;
use crate::{Answer, Portal};
use answer::ChartData;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use chart_query::ChartQuery;
use maud::{Markup, html};
use raingauge_core::retention::Horizons;
use raingauge_people::Principal;
use raingauge_ports::catalog::Versioned;
use std::sync::Arc;

/// Everything that the page of a counter shows.
struct View {
    found: Versioned,
    asked: ChartQuery,
    /// `None` while the counter is not being served.
    horizons: Option<Horizons>,
    shown: Option<ChartData>,
    largest: Largest,
}

/// `GET /counters/{id}`
pub async fn page(
    caller: Caller,
    Path(id): Path<u32>,
    Query(fields): Query,
    headers: HeaderMap,
) -> Answer {
    let portal = &caller.portal;
    let view = look(portal, id, &fields, true).await?;
    let versions = portal.counters.versions(id).await?;
    let counter = &view.found.counter;
    let body = html! {
        (head(&view.found, &caller.person))
        (notes::shown(&fields))
        (actions::backfill_card(&caller, counter))
        div #asked.stack { (answered(portal, &view)) }
        div.columns {
            (panels::configuration(counter))
            div.stack {
                (panels::not_counted(portal.operations.watch.activity().of(id).as_ref()))
                (cost::panel(id))
            }
        }
        (versions::panel(id, &versions, &view.asked.zone))
        (examples::panel(&headers, &caller.person, view.shown.as_ref(), counter))
    };

    let page = caller.page(layout::Place::Counters, &counter.name, &body);
    let address = format!("/counters/{id}?{}", view.asked.query());
    Ok(layout::addressed(page, &headers, "hx-push-url", &address))
}

/// `GET /counters/{id}/chart.svg`: the chart as a file.
pub async fn picture(
    State(portal): State<Portal>,
    Path(id): Path<u32>,
    Query(fields): Query,
) -> Answer {
    let view = look(&portal, id, &fields, false).await?;
    let shown = view.shown.ok_or_else(|| nothing_to("draw"))?;
    if shown.rows.is_empty() {
        let failure = shown.failures.into_iter().next();
        return Err(failure.map_or_else(|| nothing_to("draw"), |(_, failure)| failure.into()));
    }
    let file = shown.chart(&view.asked, portal.clock.now_s()).document().into_string();
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], file).into_response())
}

/// The answer where no key is named and the counter has none.
fn nothing_to(what: &str) -> Fault {
    let advice = "Name a key of an active or paused counter: ?key=…";
    Fault::bad_request(format!("There is nothing to {what}"), advice)
}

/// Runs the query of an address. Without a key, it uses the largest one.
async fn look(
    portal: &Portal,
    id: u32,
    fields: &Fields,
    with_largest: bool,
) -> Result<View, Fault> {
    let found = portal.counters.get(id).await?;
    let now_s = portal.clock.now_s();
    let mut asked = ChartQuery::of(fields, now_s);
    let horizons = {
        let view = portal.counted.published.view();
        view.ruleset.index_of(id).map(|index| view.horizons(index, now_s))
    };
    let mut largest = Largest::Found(Arc::default());
    let Some(horizons) = horizons else {
        return Ok(View { found, asked, horizons: None, shown: None, largest });
    };

    if asked.keys.is_empty() {
        largest = largest::keys(portal, id, 0, portal.end_of_today_s()).await;
        asked.keys.extend(largest.keys().first().map(|key| key.key.clone()));
    }

    if asked.keys.is_empty() {
        return Ok(View { found, asked, horizons: Some(horizons), shown: None, largest });
    }
    let shown = answer::answer(portal, &asked, &horizons).await;
    if with_largest {
        largest = largest::keys(portal, id, shown.window.from_s, shown.window.to_s).await;
    }

    Ok(View { found, asked, horizons: Some(horizons), shown: Some(shown), largest })
}

fn head(found: &Versioned, person: &Principal) -> Markup {
    let counter = &found.counter;
    html! {
        div.counter-head {
            div.page-head {
                h1 { (counter.name) }
                (parts::state(counter.state))
                (actions::buttons(person, counter))
            }
            p.template { (words::template(&counter.template)) }
            @if !counter.description.is_empty() { p.description { (counter.description) } }
        }
    }
}

/// The part of the page that another query replaces: the form, the chart, the largest keys.
fn answered(portal: &Portal, view: &View) -> Markup {
    let counter = &view.found.counter;
    let address = format!("/counters/{}", counter.id);

    if view.horizons.is_none() {
        return parts::empty("This counter does not answer", &panels::why_silent(counter));
    }
    let window = view.shown.as_ref().map(|shown| shown.window);
    html! {
        section.card.answer aria-label="Counts" {
            (controls::form(
                &address, "#asked", &counter.template, &view.asked, window, view.largest.keys()
            ))
            @for problem in &view.asked.problems {
                (parts::notice(parts::Mood::Wait, &html! { (problem) }))
            }
            @match &view.shown {
                Some(shown) => { (result(portal, view, shown, &address)) }
                None => { (nothing_yet(view)) }
            }
        }
        @if let Some(shown) = &view.shown {
            (panels::largest_keys(&address, &counter.template, view, shown))
        }
    }
}

fn nothing_yet(view: &View) -> Markup {
    let counter = &view.found.counter;
    match &view.largest {
        Largest::Failed(failure) => parts::notice(parts::Mood::Bad, &html! { (failure.detail) }),
        Largest::Looking => parts::notice(
            parts::Mood::Wait,
            &html! {
                "This counter has many keys, and the search for the largest ones is still running. \
                 Enter a key, or load the page again in a moment."
            },
        ),
        Largest::Found(_) => html! {
            p.quiet {
                "Nothing has been counted yet. Keys appear with the first " (counter.event_type)
                " event that the counter accepts."
            }
        },
    }
}

/// The total in large type, and the chart.
fn result(portal: &Portal, view: &View, shown: &ChartData, address: &str) -> Markup {
    let asked = &view.asked;
    let query = view.asked.query();
    let elsewhere = panels::query_of(shown, &asked.zone);
    let picture = format!("{address}/chart.svg?{query}");
    let file = format!("counter-{}", view.found.counter.id);

    html! {
        @for (key, failure) in &shown.failures {
            (parts::notice(parts::Mood::Bad, &html! {
                code { (key) } " cannot be counted: " (failure.detail)
            }))
        }
        @if !shown.rows.is_empty() {
            div.result aria-live="polite" {
                @for row in &shown.rows {
                    div.result-row {
                        span.total { (words::number(row.total.into())) }
                        span.result-key { code { (row.key) } }
                    }
                }
                div.result-words {
                    p { (shown.when(asked)) " · " (words::zone(&asked.zone)) }
                    @if let Some(change) = shown.change() { p { (change) } }
                    @if let Some(peak) = shown.peak(asked) { p.quiet { (peak) } }
                }
            }
            @for note in &shown.notes { p.quiet { (note) } }
            @if shown.is_empty() && asked.span != chart_query::Span::Latest {
                p {
                    "Nothing was counted in this range. "
                    a href={ (address) "?" (asked.latest_query()) } { "Show the latest data" }
                    "."
                }
            }
            (shown.chart(asked, portal.clock.now_s()).figure())
            div.actions {
                a.button href={ (address) "/series.csv?" (query) } download { "CSV" }
                a.button href=(picture) download={ (file) ".svg" } { "SVG" }
                button.button type="button" hidden data-png=(picture)
                    data-name={ (file) ".png" } { "PNG" }
                a.quiet href={ "/query?" (elsewhere) } { "Explain this count" }
                a.quiet href={ "/checks?" (elsewhere) "#recount" } { "Recount" }
            }
        }
    }
}
