//! The list of counters.

mod listing;
mod memory;

pub use memory::Memory;

use crate::caller::Caller;
use crate::fields::Query;
use crate::html::chart::sparkline;
use crate::html::{layout, notes, parts, words};
use crate::pages::{drafts, sign_in};
use crate::{Answer, Portal};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Uri};
use listing::{Column, Listing, STATES};
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_core::counter::State as CounterState;
use raingauge_people::Principal;
use raingauge_ports::catalog::Versioned;
use std::collections::BTreeSet;

/// Rows per page.
pub const ROWS_MAX: usize = 100;

/// A counter, with its recent activity.
pub struct Row<'a> {
    pub found: &'a Versioned,
    /// Events of the last 24 hours by quarter hour; `None` when no writer has reported any.
    pub day: Option<Vec<u64>>,
}

impl Row<'_> {
    pub fn events(&self) -> u64 {
        self.day.iter().flatten().sum()
    }
}

/// `GET /`: the list of counters; for a visitor who has not signed in, the way to sign in.
pub async fn home(
    State(portal): State<Portal>,
    person: Option<Extension<Principal>>,
    query: Query,
    headers: HeaderMap,
    uri: Uri,
) -> Answer {
    match person {
        Some(Extension(person)) => list(Caller { portal, person }, query, headers).await,
        None => sign_in::form(State(portal), None, uri).await,
    }
}

async fn list(caller: Caller, Query(fields): Query, headers: HeaderMap) -> Answer {
    let portal = &caller.portal;
    let counters = portal.list.counters(portal).await?;
    let listing = Listing::of(&fields);
    let body = html! {
        div.page-head {
            h1 { "Counters" }
            div.actions {
                @if !counters.is_empty() {
                    a.button href="/settings.yaml" download { "Export as YAML" }
                }
                @if caller.person.may(Role::Editor) {
                    a.button.primary href="/counters/new" { "New counter" }
                }
            }
        }
        (drafts::hint(portal).await?)
        (notes::shown(&fields))
        @if counters.is_empty() {
            (parts::empty("Nothing is counted yet", &nothing_yet(&caller.person)))
        } @else {
            (controls(&listing, &counters))
            (results(portal, &listing, &counters))
        }
    };

    let page = caller.page(layout::Place::Counters, "Counters", &body);
    let address = format!("/?{}", listing.query(listing.sort, listing.page));
    Ok(layout::addressed(page, &headers, "hx-replace-url", &address))
}

fn nothing_yet(person: &Principal) -> Markup {
    html! {
        "A counter defines which events are counted, and under which keys. "
        @if person.may(Role::Editor) {
            a href="/counters/new" { "Define the first one" }
            ", or apply a file with " code { "raingauge counters apply" } "."
        } @else {
            "An editor can define one."
        }
    }
}

fn controls(listing: &Listing, counters: &[Versioned]) -> Markup {
    let owners: BTreeSet<&str> = counters
        .iter()
        .map(|found| found.counter.owner.as_str())
        .filter(|owner| !owner.is_empty())
        .collect();

    let types: BTreeSet<&str> =
        counters.iter().map(|found| found.counter.event_type.as_str()).collect();
    html! {
        form.row.filters id="filters" role="search" method="get" action="/" hx-get="/"
            hx-trigger="input delay:200ms, change" hx-target="#counters" hx-select="#counters"
            hx-swap="outerHTML" hx-replace-url="true" hx-sync="this:replace" {
            div.field.search {
                label for="q" { "Search" }
                input type="search" id="q" name="q" value=(listing.search) autocomplete="off"
                    placeholder="name, template, description, event type, owner or id";
            }
            div.field {
                label for="state" { "State" }
                select id="state" name="state" {
                    @for (name, label) in STATES {
                        option value=(name) selected[listing.state == name] { (label) }
                    }
                }
            }
            (choice("type", "Event type", &types, &listing.event_type))
            (choice("owner", "Owner", &owners, &listing.owner))
            input type="hidden" name="sort" value=(listing.sort.name());
            button.button type="submit" { "Search" }
        }
    }
}

fn choice(name: &str, label: &str, values: &BTreeSet<&str>, chosen: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { "any" }
                // The filter in the address stays selected, even when no counter has that value any
                // more.
                @let is_gone = !chosen.is_empty() && !values.contains(chosen);
                @if is_gone { option value=(chosen) selected { (words::cut(chosen, 40)) } }
                @for value in values {
                    option value=(value) selected[*value == chosen] { (words::cut(value, 40)) }
                }
            }
        }
    }
}

/// The part of the page that a search replaces.
fn results(portal: &Portal, listing: &Listing, counters: &[Versioned]) -> Markup {
    let activity = portal.operations.watch.activity();
    let now_s = portal.clock.now_s();
    let day_of =
        |found: &Versioned| activity.of(found.counter.id).map(|recent| recent.day_up_to(now_s));
    let mut rows: Vec<Row<'_>> = counters
        .iter()
        .filter(|found| listing.shows(&found.counter))
        .map(|found| Row { found, day: day_of(found) })
        .collect();

    listing.sort.apply(&mut rows);
    let pages = rows.len().div_ceil(ROWS_MAX).max(1);
    let page = listing.page.clamp(1, pages);
    let shown = &rows[(page - 1) * ROWS_MAX..rows.len().min(page * ROWS_MAX)];

    html! {
        section #counters.stack aria-label="Counters" {
            p.quiet aria-live="polite" { (tally(rows.len(), counters.len())) }
            @if rows.is_empty() {
                (parts::empty("No counter matches", &html! {
                    "Remove a word or a filter, or " a href="/" { "show all counters" } "."
                }))
            } @else {
                div.card.table-card {
                    div.scroll tabindex="0" role="region" aria-label="Table of counters" {
                        (table(listing, shown, now_s))
                    }
                }
                @if pages > 1 { (paging(listing, page, pages)) }
            }
        }
    }
}

fn tally(shown: usize, all: usize) -> String {
    let all_words = words::count_of(all as i128, "counter", "counters");
    if shown == all {
        all_words
    } else {
        format!("{} of {all_words}", words::number(shown as i128))
    }
}

fn table(listing: &Listing, rows: &[Row<'_>], now_s: i64) -> Markup {
    html! {
        table.list.counters {
            thead { tr { @for column in Column::ALL { (heading(listing, column)) } } }
            tbody {
                @for row in rows {
                    @let counter = &row.found.counter;
                    tr {
                        th scope="row" {
                            div.counter-cell {
                                a href={ "/counters/" (counter.id) } { (counter.name) }
                                (words::template(&counter.template))
                                // Narrow screens leave out the state column.
                                @if counter.state != CounterState::Active {
                                    span.narrow-state { (parts::state(counter.state)) }
                                }
                            }
                        }
                        td { (parts::state(counter.state)) }
                        td { code { (counter.event_type) } }
                        td { (counter.owner) }
                        td.activity { (activity(row)) }
                        td.number.quiet { (parts::ago(now_s - row.found.changed_at)) }
                    }
                }
            }
        }
    }
}

/// The heading of a column, as a link that sorts by it, or reverses the order when the list is
/// sorted by it already.
fn heading(listing: &Listing, column: Column) -> Markup {
    let (order, arrow) =
        if listing.sort.descending { ("descending", " ↓") } else { ("ascending", " ↑") };
    let is_sorted = listing.sort.column == column;
    let next = listing.sort.next(column);
    html! {
        th scope="col" aria-sort=[is_sorted.then_some(order)]
            class=[(column == Column::Changed).then_some("number")] {
            a.sort href={ "/?" (listing.query(next, 1)) } {
                (column.words())
                @if is_sorted { span aria-hidden="true" { (arrow) } }
            }
        }
    }
}

/// The last day as a sparkline and a number.
fn activity(row: &Row<'_>) -> Markup {
    let Some(day) = &row.day else {
        return html! { span.quiet title=(NO_ACTIVITY) { "–" } };
    };
    let halves: Vec<f64> = day.chunks(2).map(|pair| pair.iter().sum::<u64>() as f64).collect();
    let events = row.events();
    html! {
        span.activity-words {
            @if events > 0 { (sparkline(&halves)) }
            span.number title=(ACTIVITY) { (words::short_number(events as f64)) }
        }
    }
}

const NO_ACTIVITY: &str = "No recent activity reported: the counter has counted nothing yet, or is \
                           not among the busiest ones";
const ACTIVITY: &str =
    "Events counted in the last 24 hours, by their arrival, since the writers started";

fn paging(listing: &Listing, page: usize, pages: usize) -> Markup {
    let link = |to: usize, text: &str| {
        html! {
            @if (1..=pages).contains(&to) {
                a.button href={ "/?" (listing.query(listing.sort, to)) } { (text) }
            }
        }
    };
    html! {
        nav.actions aria-label="Pages" {
            (link(page.wrapping_sub(1), "Previous"))
            span.quiet { "Page " (page) " of " (pages) }
            (link(page + 1, "Next"))
        }
    }
}
