//! The smaller panels on the page of a counter.

use super::View;
use super::answer::ChartData;
use crate::html::parts::Column::{Number, Text};
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
        State::Archived => html! {
            "It is archived: it neither counts nor answers, and other counters may use its \
             template. Its versions and its counts are kept, so it can be restored by rolling back \
             to an earlier version. Purging it, which needs an administrator, frees the space."
        },
        State::Active | State::Paused => html! {
            "Its configuration has not reached this process yet. Load the page again in a few \
             seconds. If nothing changes, check that the writer runs."
        },
    }
}

/// Number of keys in the file.
const ALL_KEYS_MAX: i128 = raingauge_app::largest::KEYS_MAX as i128;

/// The largest keys of the range, each a link to its chart.
pub fn largest_keys(address: &str, template: &str, view: &View, shown: &ChartData) -> Markup {
    let keys = view.largest.keys();
    let most = keys.iter().map(|key| key.count.unsigned_abs()).max().unwrap_or(1).max(1);
    html! {
        section.card aria-labelledby="largest-title" {
            div.card-head {
                h2 id="largest-title" { "Largest keys" }
                span.quiet { "Over the whole UTC days of " (shown.when(&view.asked)) "." }
                @if !keys.is_empty() {
                    div.actions {
                        a.button href={ (address) "/keys.csv?" (view.asked.query()) } download
                            title={ "The " (words::number(ALL_KEYS_MAX)) " largest keys" } { "CSV" }
                    }
                }
            }
            @match &view.largest {
                Largest::Looking => p.quiet {
                    "This counter has many keys, and the search is still running. Load the page \
                     again in a moment."
                },
                Largest::Failed(failure) => {
                    (parts::notice(parts::Mood::Bad, &html! { (failure.detail) }))
                }
                Largest::Found(found) if !found.is_complete => {
                    (parts::notice(parts::Mood::Wait, &html! {
                        "The counter has more keys than could be searched: larger ones may be \
                         missing."
                    }))
                }
                Largest::Found(found) if found.keys.is_empty() => {
                    p.quiet { "No key has a count on these days." }
                }
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
    let place = |keys: &[&str]| format!("{address}?{}", view.asked.query_with(keys));

    html! {
        li {
            a.key-bar href=(place(&[&key.key])) aria-current=[is_shown.then_some("true")] {
                svg.key-bar-fill width="100%" height="100%" aria-hidden="true" {
                    rect width=(width) height="100%" rx="4" {}
                }
                span.key-text { span.key-shared { (key.key[..shared]) } (key.key[shared..]) }
                span.key-count { (words::number(key.count.into())) }
            }
            @if !is_shown {
                a.key-add href=(place(&with)) aria-label={ "Compare with " (key.key) }
                    title="Compare with this key" { "+" }
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
    let facts = difference::say(counter);
    html! {
        section.card aria-labelledby="configuration-title" {
            h2 id="configuration-title" { "Configuration" }
            dl.facts {
                @for fact in facts.iter().filter(|fact| !ABOVE.contains(&fact.field)) {
                    dt { (fact.label) }
                    dd { (fact.words) }
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
    let skipped = recent.iter().flat_map(|recent| &recent.skipped);
    let skipped = skipped.map(|(reason, events)| (reason_words(reason).to_owned(), *events));
    let late = recent.iter().flat_map(|recent| &recent.late).map(|(granularity, events)| {
        (format!("arrived after the {granularity} buckets of their time had expired"), *events)
    });
    let rows: Vec<(String, u64)> = skipped.chain(late).filter(|(_, events)| *events > 0).collect();

    html! {
        section.card aria-labelledby="skipped-title" {
            h2 id="skipped-title" { "Not counted" }
            @if rows.is_empty() {
                p.quiet { "Every event of its type was counted, as far as the writers report." }
            } @else {
                (parts::table("skipped-title", &[Text("Reason"), Number("Events")], &html! {
                    @for (reason, events) in &rows {
                        tr {
                            th.wrap scope="row" { (reason) }
                            td.number { (words::number((*events).into())) }
                        }
                    }
                }))
            }
            p.quiet {
                "All writers together, since each of them started. The metrics "
                code { "raingauge_events_skipped_total" } " and "
                code { "raingauge_late_refused_total" } " show the same."
            }
        }
    }
}

/// Why an event was not counted, as a sentence.
fn reason_words(reason: &str) -> &str {
    match reason {
        "filtered" => "did not pass the filter",
        "no_key" => "had no value for a field of the template",
        "no_value" => "had no number to add, or one that is not whole after scaling",
        "too_many_keys" => "had a new key, but the counter has the most keys that it may have",
        "outside_activity" => "happened outside the counter's active time",
        other => other,
    }
}
