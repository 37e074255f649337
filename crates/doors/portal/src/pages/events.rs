//! Event types: how fresh they are, how complete a quarter hour is when it closes, and which
//! counters use them.

mod detail;

pub use detail::page as detail_page;

use crate::Portal;
use crate::caller::{Caller, Page};
use crate::fields::Query;
use crate::html::parts::Column::{self, Number, Text};
use crate::html::{layout, parts, words};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_counters::observed::{EventType, Observation};
use raingauge_operations::measures::values::{DUPLICATES, LAG_EVENTS, LAG_SECONDS, REJECTED};
use raingauge_people::Principal;
use raingauge_ports::catalog::Versioned;

/// An event type is fresh when its newest event is at most this old.
const FRESH_S: i64 = 900;
/// The page reports a history load when the newest event was older than this on arrival.
const HISTORY_S: i64 = 7 * 86_400;

const COLUMNS: [Column<'_>; 7] = [
    Text("Type"),
    Number("Events"),
    Text("Newest event"),
    Text("Last arrival"),
    Number("Median delay"),
    Number("Within 15 min"),
    Text("Counters"),
];

/// `GET /events`
pub async fn page(caller: Caller, Query(fields): Query) -> Page {
    let portal = &caller.portal;
    let zone = fields.zone();
    let observed = portal.observed().await?;
    let counters = portal.counters.list().await?;
    let now_s = portal.clock.now_s();
    let body = html! {
        div.page-head { h1 { "Events" } }
        @if observed.types.is_empty() {
            (parts::empty("No event has arrived", &html! {
                "Send some to " code { "POST /v1/events" } ", import a file with "
                code { "raingauge import" } ", or run " code { "raingauge demo" } "."
            }))
        } @else {
            p.lead {
                "The types of the newest "
                (words::count_of(observed.events.into(), "event", "events")) " in the log."
            }
            (types(&observed, &counters, &caller.person, now_s, &zone))
        }
        @let silent = silent(&observed, &counters);
        @if !silent.is_empty() { (waiting(&silent)) }
        (arrival(portal))
    };

    Ok(caller.page(layout::Place::Events, "Events", &body))
}

/// The counters that use an event type and are not archived.
pub fn listeners<'a>(
    counters: &'a [Versioned],
    event_type: &'a str,
) -> impl Iterator<Item = &'a Versioned> {
    use raingauge_core::counter::State::Archived;
    counters.iter().filter(move |found| {
        found.counter.event_type == event_type && found.counter.state != Archived
    })
}

/// The address of an event type's page, whatever characters its name has.
pub fn address(event_type: &str) -> String {
    format!("/events/{}", words::step_of_address(event_type))
}

fn create_address(event_type: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(event_type.as_bytes()).collect();
    format!("/counters/new?type={encoded}")
}

fn types(
    observed: &Observation,
    counters: &[Versioned],
    person: &Principal,
    now_s: i64,
    zone: &TimeZone,
) -> Markup {
    html! {
        section.card aria-labelledby="types-title" {
            h2 #types-title { "Event types" }
            (parts::table("types-title", &COLUMNS, &html! {
                @for found in &observed.types {
                    tr {
                        th.wrap scope="row" {
                            a href=(address(&found.name)) { code { (words::cut(&found.name, 80)) } }
                        }
                        td.number { (words::number(found.events.into())) }
                        td { (freshness(found, now_s)) " " (parts::moment(found.newest_s, zone)) }
                        td { (parts::ago(now_s - found.appended_s)) }
                        td.number { (words::duration(found.lateness.median_s as f64)) }
                        td.number { (completeness(found)) }
                        td { (counted_by(counters, &found.name, person)) }
                    }
                }
            }))
            @if observed.events_left_out > 0 {
                p.quiet {
                    (words::number(observed.events_left_out.into()))
                    " events of other types are not shown, because there are too many types. A \
                     type is a kind of event, not the thing that an event is about."
                }
            }
        }
    }
}

/// The age of the newest event.
pub fn freshness(found: &EventType, now_s: i64) -> Markup {
    let age_s = now_s - found.newest_s;
    let (mood, word) = match age_s {
        _ if found.appended_s - found.newest_s > HISTORY_S => ("draft", "history"),
        ..=FRESH_S => ("good", "fresh"),
        _ => ("wait", "old"),
    };
    html! { span.state data-state=(mood) title={ "The newest event happened " (parts::ago(age_s)) } { (word) } }
}

/// The share of events that arrived at most a quarter hour after they happened.
pub fn completeness(found: &EventType) -> String {
    words::share(found.events - found.lateness.over_quarter, found.events)
}

fn counted_by(counters: &[Versioned], event_type: &str, person: &Principal) -> Markup {
    let own: Vec<&Versioned> = listeners(counters, event_type).collect();
    html! {
        @if own.is_empty() {
            span.state data-state="wait" { "not counted" }
            @if person.may(Role::Editor) {
                " " a href=(create_address(event_type)) { "Create a counter" }
            }
        } @else {
            @for (place, found) in own.iter().take(4).enumerate() {
                @if place > 0 { ", " }
                a href={ "/counters/" (found.counter.id) } { (found.counter.name) }
            }
            @if own.len() > 4 { " and " (own.len() - 4) " more" }
        }
    }
}

/// Event types that active counters use and that have not arrived lately.
fn silent<'a>(
    observed: &Observation,
    counters: &'a [Versioned],
) -> Vec<(&'a str, Vec<&'a Versioned>)> {
    let mut silent = std::collections::BTreeMap::<&str, Vec<&Versioned>>::new();
    for found in counters
        .iter()
        .filter(|found| found.counter.state == raingauge_core::counter::State::Active)
    {
        if observed.of_type(&found.counter.event_type).is_none() {
            silent.entry(&found.counter.event_type).or_default().push(found);
        }
    }
    silent.into_iter().collect()
}

fn waiting(silent: &[(&str, Vec<&Versioned>)]) -> Markup {
    html! {
        section.card aria-labelledby="silent-title" {
            h2 #silent-title { "Missing event types" }
            p.quiet {
                "Active counters count these types, but none of the newest events has one. Check \
                 that the producer runs, and that it spells the type in the same way."
            }
            ul.plain {
                @for (event_type, counters) in silent {
                    li {
                        code { (event_type) } " for "
                        @for (place, found) in counters.iter().enumerate() {
                            @if place > 0 { ", " }
                            a href={ "/counters/" (found.counter.id) } { (found.counter.name) }
                        }
                    }
                }
            }
        }
    }
}

/// The totals of all event types: how far counting has come, rejected events, duplicates.
pub fn arrival(portal: &Portal) -> Markup {
    let totals = portal.operations.measures.totals();
    let rejected: Vec<(&str, f64)> =
        totals.by(REJECTED).filter(|(_, count)| *count > 0.0).collect();
    html! {
        section.card aria-labelledby="arrival-title" {
            h2 #arrival-title { "All types" }
            dl.facts {
                dt { "Log lag" }
                dd {
                    (words::duration(totals.largest(LAG_SECONDS))) ", "
                    (words::count_of(totals.total(LAG_EVENTS) as i128, "event waits", "events wait"))
                    " to be counted"
                }
                dt { "Duplicates" }
                dd {
                    (words::count_of(totals.total(DUPLICATES) as i128, "event", "events"))
                    " with a known source and id, not counted again"
                }
                dt { "Refused" }
                dd {
                    @if rejected.is_empty() { "none" }
                    @for (place, (code, count)) in rejected.iter().enumerate() {
                        @if place > 0 { ", " }
                        (words::number(*count as i128)) " with " code { (code) }
                    }
                }
            }
            p.quiet {
                "Since the running processes started. "
                a href="/system" { "The system over the last hour" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_any_name() {
        assert_eq!(address("rain drop/ü?#"), "/events/rain%20drop%2F%C3%BC%3F%23");
        assert_eq!(create_address("a&b=c"), "/counters/new?type=a%26b%3Dc");
    }
}
