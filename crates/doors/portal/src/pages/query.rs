//! Counts by hand: one key with an explanation of the answer, or many keys at once.

mod batch;
mod figure;
mod question;

use crate::Portal;
use crate::caller::{Caller, Page};
use crate::fields::Query;
use crate::html::{layout, parts, words};
use crate::largest;
use axum::extract::State;
use axum::response::Html;
use maud::{Markup, html};
use question::{Question, SPANS};
use raingauge_core::code::{Code, Refusal};
use raingauge_policy::cache::Strategy;
use raingauge_reader::{Answer, Explanation, Range};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Number of keys suggested while the person types.
const OFFERS_MAX: usize = 20;
/// What the lines of a batch look like.
const BATCH_EXAMPLE: &str = "rain_drops:city:111222\n\
    rain_drops:city:111222 2024-09-24T22:03:50Z 2024-09-27T01:20:00Z\n\
    rain_drops:city:111222 -7d today";

/// `GET /query`
pub async fn page(caller: Caller, Query(fields): Query) -> Page {
    let portal = &caller.portal;
    let question = Question::of(&fields, portal.clock.now_s());
    let body = html! {
        div.page-head { h1 { "Explain a count" } }
        section.card aria-label="Question" { (form(&question)) }
        @for problem in &question.problems {
            (parts::notice(parts::Mood::Wait, &html! { (problem) }))
        }
        @if !question.batch.trim().is_empty() {
            (batch::answered(portal, &question).await)
        } @else if question.key.is_empty() {
            (parts::empty("Enter a key", &html! {
                "Enter a key such as " code { "rain_drops:city:111222" } " and choose a range: the \
                 page shows which buckets add up to its count. You can also paste many keys, one \
                 to a line."
            }))
        } @else if let Some((from_s, to_s)) = question.range() {
            (one(portal, &question, from_s, to_s).await)
        }
    };
    Ok(caller.page(layout::Place::Query, "Explain a count", &body))
}

fn form(question: &Question) -> Markup {
    html! {
        form.question id="query" method="get" action="/query" {
            div.field {
                label for="key" { "Key" }
                input.mono type="text" id="key" name="key" value=(question.key) list="query-keys"
                    autocomplete="off" spellcheck="false" hx-get="/query/keys"
                    hx-trigger="input changed delay:150ms, focus once" hx-target="#query-keys"
                    hx-swap="outerHTML" hx-sync="this:replace" hx-params="key";
                (offers(&[]))
            }
            div.row {
                fieldset {
                    legend { "Range" }
                    div.segments {
                        @for (name, text, _) in SPANS {
                            (parts::segment("range", name, text, question.span == name))
                        }
                    }
                }
                (parts::zone_field(&question.zone))
            }
            div.row.custom { (parts::range_fields(question.ends.as_ref(), &question.zone)) }
            details.many open[!question.batch.is_empty()] {
                summary { "Many keys at once" }
                div.field {
                    label for="batch" { "One to a line: a key, or a key with its own range" }
                    textarea.mono id="batch" name="batch" rows="6" spellcheck="false"
                        placeholder=(BATCH_EXAMPLE) { (question.batch) }
                }
            }
            div.row.question-foot {
                (parts::check("fresh", "1", question.fresh, "Include the open quarter hour"))
                button.button.primary type="submit" { "Count" }
            }
        }
    }
}

/// One range, its count, and how the count was computed.
async fn one(portal: &Portal, question: &Question, from_s: i64, to_s: i64) -> Markup {
    let range = Range { key: &question.key, from_s, to_s, fresh: question.fresh };

    // Must precede the count, which loads what it reads into memory.
    let explained = portal.reader.explain(&range);
    let began = Instant::now();
    let answer = portal.reader.counts(std::slice::from_ref(&range)).await.remove(0);
    let took = began.elapsed();

    match (answer, explained) {
        (Ok(answer), Ok(explained)) => {
            let slices = figure::slices(portal, &question.key, &explained).await;
            html! {
                section.card.answer aria-label="Answer" {
                    (total(question, &answer, (from_s, to_s)))
                    p { (how(&explained, &slices, took)) }
                    (figure::drawn(&slices, answer.count))
                    (figure::table(&slices, &question.zone))
                    (links(question, &explained, &answer))
                }
            }
        }
        (Err(failure), _) | (_, Err(failure)) => refused(&failure),
    }
}

fn refused(failure: &Refusal) -> Markup {
    parts::notice(
        parts::Mood::Bad,
        &html! {
            p { strong { "This cannot be counted. " } (failure.detail) }
            @if failure.code == Code::KeyUnknown {
                p {
                    "A key follows the template of a counter: "
                    a href="/" { "see the templates" } "."
                }
            }
        },
    )
}

fn total(question: &Question, answer: &Answer, asked: (i64, i64)) -> Markup {
    let when = words::span(answer.from_s, answer.to_s, &question.zone);
    html! {
        div.result aria-live="polite" {
            div.result-row {
                span.total { (words::number(answer.count.into())) }
                span.result-key { code { (question.key) } }
            }
            div.result-words {
                p { (when) " · " (words::zone(&question.zone)) }
                @if (answer.from_s, answer.to_s) != asked {
                    p.quiet { "Both ends were moved back to the start of their quarter hour." }
                }
            }
        }
    }
}

/// How the count was computed, in a sentence.
fn how(explained: &Explanation, slices: &[figure::Sliced], took: Duration) -> Markup {
    let cells: i64 = slices.iter().map(|sliced| sliced.cells).sum();
    let place = match (explained.asks_cache, explained.is_in_memory) {
        (true, _) => "the result cache was checked first",
        (false, true) => "all of them were in memory",
        (false, false) => "they were read from the bucket store",
    };
    let strategy = explained.strategy;

    html! {
        "The count is the sum of " strong { (words::count_of(cells.into(), "cell", "cells")) }
        " in " (words::count_of(slices.len() as i128, "slice", "slices")) ", stored in "
        strong { (words::count_of(explained.rows.into(), "row", "rows")) } "; " (place)
        ". The counter has the cache strategy " strong { (strategy.name()) }
        " (" (strategy_words(strategy)) "). Answering took "
        strong { (words::duration(took.as_secs_f64())) } "."
    }
}

const fn strategy_words(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::None => "no sums are cached: every count is read from the bucket store",
        Strategy::Result => "sums are cached for some minutes by key and range",
        Strategy::Phased => {
            "sums are cached, and each key moves on to the next quarter hour at its own time"
        }
        Strategy::Live => "tiles in use stay in memory and follow the writers",
    }
}

fn links(question: &Question, explained: &Explanation, answer: &Answer) -> Markup {
    let chart = question.chart_query(answer.from_s, answer.to_s);
    html! {
        div.actions {
            a.button href={ "/counters/" (explained.counter) "?" (chart) } { "Show as a chart" }
            a.quiet href={ "/query?" (question.query()) } { "Link to this range" }
        }
    }
}

/// `GET /query/keys?key=rain`: suggests keys with this prefix.
pub async fn keys(State(portal): State<Portal>, Query(fields): Query) -> Html<String> {
    let begun = fields.given("prefix").unwrap_or(fields.text("key"));
    Html(offers(&offered(&portal, begun).await).into_string())
}

fn offers(keys: &[String]) -> Markup {
    html! { datalist id="query-keys" { @for key in keys { option value=(key) {} } } }
}

/// The largest keys of the counters whose templates match the prefix, and the literal prefixes of
/// templates.
async fn offered(portal: &Portal, begun: &str) -> Vec<String> {
    let beginnings: Vec<(u32, String)> = {
        let view = portal.counted.published.view();
        let counters = view.ruleset.rules().iter().map(|rule| &rule.counter);
        let literal = |template: &str| template.split('{').next().unwrap_or_default().to_owned();
        counters.map(|counter| (counter.id, literal(&counter.template))).collect()
    };

    let fits = |(_, literal): &&(u32, String)| {
        literal.starts_with(begun) || begun.starts_with(literal.as_str())
    };
    let mut offers = BTreeSet::new();
    let mut looked_at = 0;

    for (id, literal) in beginnings.iter().filter(fits) {
        // While many templates match, their prefixes help more than the keys of a few of them.
        if begun.starts_with(literal.as_str()) || looked_at < 3 {
            looked_at += 1;
            let found = largest::keys(portal, *id, 0, portal.end_of_today_s()).await;
            offers.extend(
                found.keys().iter().map(|key| key.key.clone()).filter(|key| key.starts_with(begun)),
            );
        } else {
            offers.insert(literal.clone());
        }
        if offers.len() >= OFFERS_MAX || looked_at > 6 {
            break;
        }
    }

    offers.into_iter().take(OFFERS_MAX).collect()
}
