//! Lists of checks: differing keys with their buckets, and all checks by time.

use super::PAGE_LEN;
use crate::html::parts::Column::{self, Number, Text};
use crate::html::{parts, words};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::bucket::Granularity;
use raingauge_ports::checks::{Check, Difference, Outcome, Selection};

/// Number of buckets shown for each differing key.
const BUCKETS_SHOWN: usize = 20;

const COLUMNS: [Column<'_>; 7] = [
    Text("When"),
    Text("Outcome"),
    Text("Key"),
    Text("Range"),
    Number("Stored"),
    Number("From the log"),
    Text("By"),
];

/// The keys whose newest check found a difference.
pub fn differing(checks: &[Check], now_s: i64, zone: &TimeZone) -> Markup {
    html! {
        section.card.alarm #differing aria-labelledby="differing-title" {
            h2 #differing-title { (words::count_of(checks.len() as i128, "key differs", "keys differ")) " from the log" }
            p.quiet { "Stored counts that are not what the events come to. Find out what wrote them (a restore of one engine without the other, rows changed by hand, a disk); a backfill of the counter makes its counts again from the log. The audit checks these keys each time until they agree." }
            @for check in checks {
                article.difference {
                    div.card-head {
                        h3 { code { (check.key) } }
                        span.quiet { "checked " (parts::ago(now_s - check.at_s)) }
                        div.actions {
                            a.button href=(recount_address(check)) { "Recount" }
                            a.button href={ "/counters/" (check.counter) } { "The counter" }
                        }
                    }
                    p { (words::range(check.from_s, check.to_s, zone)) ": stored " b { (words::number(check.stored)) } ", the log comes to " b { (words::number(check.recounted)) } "." }
                    (buckets(&check.differences[..check.differences.len().min(BUCKETS_SHOWN)], zone, &format!("Buckets of {} that differ", check.key)))
                    @if check.differences.len() > BUCKETS_SHOWN { p.quiet { "and " (check.differences.len() - BUCKETS_SHOWN) " more buckets, at least" } }
                }
            }
        }
    }
}

/// The address that opens the recount form, filled in for this check.
pub fn recount_address(check: &Check) -> String {
    let key: String = form_urlencoded::byte_serialize(check.key.as_bytes()).collect();
    format!("/checks?key={key}&from={}&to={}#recount", check.from_s, check.to_s)
}

pub const fn granularity_words(granularity: Granularity) -> &'static str {
    match granularity {
        Granularity::Quarter => "quarter hour",
        Granularity::Hour => "hour",
        Granularity::Day => "day",
    }
}

/// Stored and recounted values, side by side.
pub fn buckets(buckets: &[Difference], zone: &TimeZone, title: &str) -> Markup {
    let count = |count: Option<i64>| {
        count.map_or_else(|| "none".to_owned(), |count| words::number(count.into()))
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr { th scope="col" { "Bucket" } th scope="col" { "Begins" } th.number scope="col" { "Stored" } th.number scope="col" { "From the log" } th.number scope="col" { "Difference" } } }
                tbody {
                    @for bucket in buckets {
                        @let difference = i128::from(bucket.stored.unwrap_or(0)) - i128::from(bucket.recounted.unwrap_or(0));
                        tr.differs[difference != 0] {
                            td { (granularity_words(bucket.granularity)) }
                            th scope="row" { (words::weekday_moment(bucket.time, zone)) }
                            td.number { (count(bucket.stored)) }
                            td.number { (count(bucket.recounted)) }
                            td.number { @if difference == 0 { "–" } @else { (words::number(difference)) } }
                        }
                    }
                }
            }
        }
    }
}

pub fn outcome(outcome: Outcome) -> Markup {
    let (word, mood) = match outcome {
        Outcome::Equal => ("equal", "good"),
        Outcome::Differs => ("differs", "bad"),
        Outcome::Uncovered => ("not in the log", "draft"),
        Outcome::Failed => ("failed", "wait"),
    };
    html! { span.state data-state=(mood) { (word) } }
}

/// All checks by time, optionally those with one outcome only.
pub fn list(checks: &[Check], selection: Selection, zone: &TimeZone) -> Markup {
    let chosen = selection.outcome.map_or("", Outcome::name);
    html! {
        section.card #list aria-labelledby="list-title" {
            div.card-head {
                h2 #list-title { "Results" }
                div.segments.actions role="group" aria-label="Outcome" {
                    @for (name, word) in [("", "all"), ("differs", "differs"), ("equal", "equal"), ("uncovered", "not in the log"), ("failed", "failed")] {
                        a href={ "/checks" @if !name.is_empty() { "?outcome=" (name) } "#list" } aria-current=[(name == chosen).then_some("true")] { (word) }
                    }
                }
            }
            @if checks.is_empty() {
                (nothing(selection))
            } @else {
                (parts::table("list-title", &COLUMNS, &html! { @for check in checks { (row(check, zone)) } }))
                @if let (Some(last), true) = (checks.last(), checks.len() == PAGE_LEN) {
                    p { a href={ "/checks?before=" (last.id) @if !chosen.is_empty() { "&outcome=" (chosen) } "#list" } { "Older ones" } }
                }
            }
        }
    }
}

fn nothing(selection: Selection) -> Markup {
    html! {
        @if selection.before.is_some() || selection.outcome.is_some() {
            p.quiet { "There are none of these." }
        } @else {
            p.quiet { "Nothing has been checked yet. The first audit follows a minute after the start, when events have been counted; “Check now” does not wait." }
        }
    }
}

fn row(check: &Check, zone: &TimeZone) -> Markup {
    html! {
        tr.differs[check.outcome == Outcome::Differs] {
            td { (parts::moment(check.at_s, zone)) }
            td { (outcome(check.outcome)) }
            th.wrap scope="row" {
                a href=(recount_address(check)) { code { (check.key) } }
                @if !check.detail.is_empty() { div.quiet { (check.detail) } }
            }
            td { (words::range(check.from_s, check.to_s, zone)) }
            @if matches!(check.outcome, Outcome::Equal | Outcome::Differs) {
                td.number { (words::number(check.stored)) } td.number { (words::number(check.recounted)) }
            } @else {
                td.number { "–" } td.number { "–" }
            }
            td { (check.by) }
        }
    }
}
