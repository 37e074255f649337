//! Queries by hand: one key with an explanation of the answer, or many keys at once.

mod batch;
mod figure;
mod question;

use crate::Portal;
use crate::fault::Fault;
use crate::fields::Query;
use crate::html::{layout, parts, words};
use crate::largest;
use crate::times::field_of;
use axum::extract::{Extension, State};
use axum::response::Html;
use maud::{Markup, html};
use question::{Question, SPANS};
use raingauge_core::code::{Code, Refusal};
use raingauge_people::Principal;
use raingauge_policy::cache::Strategy;
use raingauge_reader::{Answer, Explanation, Range};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Number of keys suggested while the person types.
const OFFERS_MAX: usize = 20;

/// `GET /query`
pub async fn page(
    State(portal): State<Portal>,
    Extension(person): Extension<Principal>,
    Query(fields): Query,
) -> Result<Html<String>, Fault> {
    let question = Question::of(&fields, portal.clock.now_s());
    let body = html! {
        div.page-head { h1 { "Query" } }
        section.card aria-label="Question" { (form(&question)) }
        @for problem in &question.problems { (parts::notice(parts::Mood::Wait, &html! { (problem) })) }
        @if !question.batch.trim().is_empty() {
            (batch::answered(&portal, &question).await)
        } @else if question.key.is_empty() {
            (parts::empty("Ask for a count", &html! {
                "Write a key such as " code { "rain_drops:city:111222" } ", choose a range, and see what adds up to its count. Many keys can be pasted at once, a line for each."
            }))
        } @else if let Some((from_s, to_s)) = question.range {
            (one(&portal, &question, from_s, to_s).await)
        }
    };
    Ok(portal.page(Some(&person), layout::Place::Query, "Query", &body))
}

fn form(question: &Question) -> Markup {
    let (from_s, to_s) = question.range.unwrap_or_default();
    let zone = words::zone(&question.zone);
    html! {
        form.question id="query" method="get" action="/query" {
            div.field {
                label for="key" { "Key" }
                input.mono type="text" id="key" name="key" value=(question.key) list="query-keys" autocomplete="off" spellcheck="false" hx-get="/query/keys"
                    hx-trigger="input changed delay:150ms, focus once" hx-target="#query-keys" hx-swap="outerHTML" hx-sync="this:replace" hx-params="key";
                (offers(&[]))
            }
            div.row {
                fieldset {
                    legend { "Range" }
                    div.segments {
                        @for (name, text, _) in SPANS {
                            label { input type="radio" id={ "range-" (name) } name="range" value=(name) checked[question.span == name]; span { (text) } }
                        }
                    }
                }
                (parts::zone_field(&question.zone))
            }
            div.row.custom {
                @for (name, text, at_s) in [("from", "From", from_s), ("to", "To", to_s)] {
                    div.field {
                        label for=(name) { (text) ", " (zone) }
                        input type="datetime-local" id=(name) name=(name) step="60" value=(field_of(at_s, &question.zone));
                    }
                }
            }
            details.many open[!question.batch.is_empty()] {
                summary { "Many keys at once" }
                div.field {
                    label for="batch" { "A line for each: a key, or a key with its own range" }
                    textarea.mono id="batch" name="batch" rows="6" spellcheck="false" placeholder="rain_drops:city:111222 2024-09-24T22:03:50Z 2024-09-27T01:20:00Z" { (question.batch) }
                }
            }
            div.row.question-foot {
                label.check { input type="checkbox" id="fresh" name="fresh" value="1" checked[question.fresh]; " Take in the quarter hour that is still open" }
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
            @if failure.code == Code::KeyUnknown { p { "A key is what a template renders: " a href="/" { "see the templates" } " of all counters." } }
        },
    )
}

fn total(question: &Question, answer: &Answer, asked: (i64, i64)) -> Markup {
    let when = words::range(answer.from_s, answer.to_s, &question.zone);
    html! {
        div.result aria-live="polite" {
            div.result-row { span.total { (words::number(answer.count.into())) } span.result-key { code { (question.key) } } }
            div.result-words {
                p { (when) " · " (words::zone(&question.zone)) }
                @if (answer.from_s, answer.to_s) != asked { p.quiet { "Both ends were brought to the quarter hour that they lie in." } }
            }
        }
    }
}

/// How the count was computed, in a sentence.
fn how(explained: &Explanation, slices: &[figure::Sliced], took: Duration) -> Markup {
    let cells: i64 = slices.iter().map(|sliced| sliced.cells).sum();
    let place = match (explained.asks_cache, explained.is_in_memory) {
        (true, _) => "a result cache was asked first",
        (false, true) => "all of them were in memory",
        (false, false) => "they were read from the bucket store",
    };
    html! {
        "It adds up " strong { (words::count_of(cells.into(), "cell", "cells")) } " in " (words::count_of(slices.len() as i128, "slice", "slices"))
        ", which lie in " strong { (words::count_of(explained.rows.into(), "row", "rows")) } "; " (place) ". The cache strategy of the counter is "
        strong { (explained.strategy.name()) } " (" (strategy_words(explained.strategy)) "). Answering took " strong { (words::duration(took.as_secs_f64())) } "."
    }
}

const fn strategy_words(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::None => "no sums are kept: the bucket store adds up every count again",
        Strategy::Result => "sums are kept for some minutes under the key and the range",
        Strategy::Phased => {
            "sums are kept, and each key moves on to the next quarter hour at a moment of its own"
        }
        Strategy::Live => "what is in use is kept in memory, and follows what the writers count",
    }
}

fn links(question: &Question, explained: &Explanation, answer: &Answer) -> Markup {
    let chart = question.chart_query(answer.from_s, answer.to_s);
    html! {
        div.actions {
            a.button href={ "/counters/" (explained.counter) "?" (chart) } { "Show as a chart" }
            a.quiet href={ "/query?" (question.query()) } { "Link to this question" }
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
