//! Log lag by partition, circuit breakers, errors.

use super::overview::Overview;
use crate::html::parts::Column::{self, Number, Text};
use crate::html::{parts, words};
use maud::{Markup, html};
use raingauge_operations::measures::values::{
    BREAKER_STATE, BREAKER_TRANSITIONS, DEAD_LETTERS, ERRORS, LAG_EVENTS, LAG_SECONDS, REJECTED,
};
use std::collections::BTreeMap;

/// Number of rows in the tables of error codes.
const CODES_MAX: usize = 12;

const LAG: [Column<'_>; 3] = [Text("Partition"), Number("Events waiting"), Number("Oldest for")];
const BREAKERS: [Column<'_>; 3] = [Text("Engine"), Text("State"), Text("Last change")];
const CODES: [Column<'_>; 3] = [Text("Code"), Text("Kind"), Number("Number")];

/// The kinds of failures, with their metrics.
const FAILURES: [(&str, &str); 3] =
    [("request failed", ERRORS), ("event refused", REJECTED), ("message set aside", DEAD_LETTERS)];

pub fn section(overview: &Overview) -> Markup {
    html! {
        div.columns {
            (lag(overview))
            (breakers(overview))
            (errors(overview))
        }
    }
}

fn lag(overview: &Overview) -> Markup {
    let mut partitions: Vec<(&str, f64)> = overview.totals.by(LAG_EVENTS).collect();
    partitions.sort_by_key(|(partition, _)| partition.parse::<u32>().unwrap_or(u32::MAX));
    html! {
        section.card aria-labelledby="lag-title" {
            h2 #lag-title { "Lag by partition" }
            @if partitions.is_empty() {
                p.quiet { "No writer has reported its position." }
            } @else {
                (parts::table("lag-title", &LAG, &html! {
                    @for (partition, events) in partitions {
                        tr {
                            th scope="row" { (partition) }
                            td.number { (words::number(events as i128)) }
                            td.number {
                                (words::duration(overview.totals.of(LAG_SECONDS, partition)))
                            }
                        }
                    }
                }))
            }
        }
    }
}

/// The common name of an engine behind a circuit breaker.
pub fn engine_words(engine: &str) -> String {
    engine.replace('_', " ")
}

fn breakers(overview: &Overview) -> Markup {
    let engines: Vec<(&str, f64)> = overview.totals.by(BREAKER_STATE).collect();
    let last = last_transitions(overview);
    html! {
        section.card aria-labelledby="breakers-title" {
            h2 #breakers-title { "Circuit breakers" }
            @if engines.is_empty() {
                p.quiet { "No reader has a circuit breaker." }
            } @else {
                (parts::table("breakers-title", &BREAKERS, &html! {
                    @for (engine, state) in engines {
                        @let (word, mood) = state_words(state);
                        tr {
                            th scope="row" { (engine_words(engine)) }
                            td { span.state data-state=(mood) { (word) } }
                            td {
                                @match last.get(engine) {
                                    Some((at_s, to)) => {
                                        "to " (to.replace('_', " ")) ", "
                                        (parts::ago(overview.now_s - at_s))
                                    },
                                    None => { span.quiet { "none within the hour" } },
                                }
                            }
                        }
                    }
                }))
            }
        }
    }
}

fn state_words(state: f64) -> (&'static str, &'static str) {
    match state {
        2.0.. => ("open", "bad"),
        1.0.. => ("half open", "wait"),
        _ => ("closed", "good"),
    }
}

/// The last state transition of each breaker: when, and to which state.
fn last_transitions(overview: &Overview) -> BTreeMap<String, (i64, String)> {
    let mut last = BTreeMap::new();
    for span in &overview.spans {
        let changed = span.values.by(BREAKER_TRANSITIONS).filter(|(_, count)| *count > 0.0);
        for (labels, _) in changed {
            if let Some((engine, to)) = labels.split_once('/') {
                last.insert(engine.to_owned(), (span.to_s.min(overview.now_s), to.to_owned()));
            }
        }
    }
    last
}

fn errors(overview: &Overview) -> Markup {
    let mut hour = BTreeMap::<(&str, &str), f64>::new();
    for span in &overview.spans {
        for (what, metric) in FAILURES {
            for (code, count) in span.values.by(metric).filter(|(_, count)| *count > 0.0) {
                *hour.entry((what, code)).or_default() += count;
            }
        }
    }

    let mut codes: Vec<((&str, &str), f64)> = hour.into_iter().collect();
    codes.sort_by(|one, other| other.1.total_cmp(&one.1));
    html! {
        section.card aria-labelledby="errors-title" {
            h2 #errors-title { "Errors of the last hour" }
            @if codes.is_empty() {
                p.quiet { "None." }
            } @else {
                (parts::table("errors-title", &CODES, &html! {
                    @for ((what, code), count) in codes.iter().take(CODES_MAX) {
                        tr {
                            th scope="row" { code { (code) } }
                            td { (what) }
                            td.number { (words::number(*count as i128)) }
                        }
                    }
                }))
            }
        }
    }
}
