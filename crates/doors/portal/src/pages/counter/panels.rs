//! The smaller panels on the page of a counter.

use super::View;
use super::answer::ChartData;
use crate::html::{parts, words};
use crate::largest::Largest;
use form_urlencoded::Serializer;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::counter::{Counter, State};
use raingauge_counters::difference;
use raingauge_ports::activity::Recent;
use raingauge_reader::Key;

/// The first key over the same range, as a query string for the query page or a recount.
pub fn query_of(shown: &ChartData, zone: &TimeZone) -> String {
    let mut query = Serializer::new(String::new());
    if let Some(row) = shown.rows.first() {
        query.append_pair("key", &row.key);
    }
    query
        .append_pair("from", &shown.window.from_s.to_string())
        .append_pair("to", &shown.window.to_s.to_string());
    if *zone != TimeZone::UTC {
        query.append_pair("zone", words::zone(zone));
    }
    query.finish()
}

/// Why a counter has no counts, and what to do.
pub fn why_silent(counter: &Counter) -> Markup {
    match counter.state {
        State::Draft => html! { "A draft counts nothing until it is made active." },
        State::Archived => {
            html! {
                "It is archived: it neither counts nor answers, and leaves its template to others. Its versions stay below. \
                 It keeps what it had counted, so that it can be brought back; when an administrator purges it, the space is freed."
            }
        }
        State::Active | State::Paused => {
            html! { "Its configuration has not reached this process yet. Load the page again in some seconds; if it stays so, look whether the writer runs." }
        }
    }
}

/// The largest keys of the range, each a link to its chart.
pub fn largest_keys(address: &str, template: &str, view: &View, shown: &ChartData) -> Markup {
    let keys = view.largest.keys();
    let most = keys.iter().map(|key| key.count.unsigned_abs()).max().unwrap_or(1).max(1);
    html! {
        section.card aria-labelledby="largest-title" {
            h2 id="largest-title" { "Largest keys" }
            p.quiet { "Over the whole UTC days of " (shown.when(&view.asked)) "." }
            @match &view.largest {
                Largest::Looking => { p.quiet { "They are still being looked for, because there are many. Load the page again in a moment." } }
                Largest::Failed(failure) => { (parts::notice(parts::Mood::Bad, &html! { (failure.detail) })) }
                Largest::Found(found) if !found.is_complete => {
                    (parts::notice(parts::Mood::Wait, &html! { "The counter has more keys than could be looked at: larger ones may be missing." }))
                }
                Largest::Found(found) if found.keys.is_empty() => { p.quiet { "No key has a count in these days." } }
                Largest::Found(_) => {}
            }
            @if !keys.is_empty() {
                ol.key-bars { @for key in keys { (key_bar(address, template, view, key, most)) } }
            }
        }
    }
}

fn key_bar(address: &str, template: &str, view: &View, key: &Key, most: u64) -> Markup {
    let keys = &view.asked.keys;
    let is_shown = keys.contains(&key.key);
    let width = format!("{:.1}%", key.count.unsigned_abs() as f64 / most as f64 * 100.0);
    let shared = shared_len(template, &key.key);
    let with: Vec<&str> = keys.iter().map(String::as_str).chain([key.key.as_str()]).collect();

    html! {
        li {
            a.key-bar href={ (address) "?" (view.asked.query_with(&[&key.key])) } aria-current=[is_shown.then_some("true")] {
                svg.key-bar-fill width="100%" height="100%" aria-hidden="true" { rect width=(width) height="100%" rx="4" {} }
                span.key-text { span.key-shared { (key.key[..shared]) } (key.key[shared..]) }
                span.key-count { (words::number(key.count.into())) }
            }
            @if !is_shown {
                a.key-add href={ (address) "?" (view.asked.query_with(&with)) } aria-label={ "Compare with " (key.key) } title="Compare with this key" { "+" }
            }
        }
    }
}

/// Length in bytes of the prefix that all keys of a template share, so that the differing part can
/// stand out.
fn shared_len(template: &str, key: &str) -> usize {
    let literal = template.split('{').next().unwrap_or_default();
    if key.starts_with(literal) { literal.len() } else { 0 }
}

/// Fields that the head of the page already shows.
const ABOVE: [&str; 4] = ["name", "template", "state", "description"];

/// Describes the counter in sentences.
pub fn configuration(counter: &Counter) -> Markup {
    html! {
        section.card aria-labelledby="configuration-title" {
            h2 id="configuration-title" { "Configuration" }
            dl.facts {
                @for said in difference::say(counter).iter().filter(|said| !ABOVE.contains(&said.field)) {
                    dt { (said.label) }
                    dd { (said.words) }
                }
                dt { "Id" }
                dd { (counter.id) }
            }
            p { a href={ "/counters/" (counter.id) "/counter.yaml" } download { "Export as YAML" } }
        }
    }
}

/// Events that the counter did not count, by reason.
pub fn not_counted(recent: Option<&Recent>) -> Markup {
    let skipped: Vec<_> = recent
        .iter()
        .flat_map(|recent| &recent.skipped)
        .filter(|(_, events)| **events > 0)
        .collect();

    let late: Vec<_> =
        recent.iter().flat_map(|recent| &recent.late).filter(|(_, events)| **events > 0).collect();
    html! {
        section.card aria-labelledby="skipped-title" {
            h2 id="skipped-title" { "Not counted" }
            @if skipped.is_empty() && late.is_empty() {
                p.quiet { "Every event of its type was counted, as far as the writers have told." }
            } @else {
                table.reasons {
                    thead { tr { th scope="col" { "Why" } th.number scope="col" { "Events" } } }
                    tbody {
                        @for (reason, events) in skipped { tr { th scope="row" { (reason_words(reason)) } td.number { (words::number((*events).into())) } } }
                        @for (granularity, events) in late {
                            tr { th scope="row" { "came after the " (granularity) " buckets of their time had expired" } td.number { (words::number((*events).into())) } }
                        }
                    }
                }
            }
            p.quiet { "Added up over the writers, since each of them began. The same is in the metrics " code { "raingauge_events_skipped_total" } " and " code { "raingauge_late_refused_total" } "." }
        }
    }
}

/// Why an event was not counted, as a sentence.
fn reason_words(reason: &str) -> &str {
    match reason {
        "filtered" => "did not pass the filter",
        "no_key" => "had no value for a field of the template",
        "no_value" => "had no number to add, or one that is not whole",
        "too_many_keys" => "had a new key, and the counter has as many keys as it may have",
        "outside_activity" => "happened outside the time in which the counter is active",
        other => other,
    }
}
