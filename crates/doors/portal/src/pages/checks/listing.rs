//! Lists of checks: differing keys with their buckets, and all checks by time.

use super::PAGE_LEN;
use crate::html::parts::Column::{self, Number, Text};
use crate::html::{parts, words};
use jiff::tz::TimeZone;
use maud::{Markup, html};
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

const BUCKET_COLUMNS: [Column<'_>; 5] = [
    Text("Bucket"),
    Text("Begins"),
    Number("Stored"),
    Number("From the log"),
    Number("Difference"),
];

/// The outcomes to filter by: their names in the address, and their labels.
const OUTCOMES: [(&str, &str); 5] = [
    ("", "all"),
    ("differs", "differs"),
    ("equal", "equal"),
    ("uncovered", "not in the log"),
    ("failed", "failed"),
];

/// The keys whose newest check found a difference.
pub fn differing(checks: &[Check], now_s: i64, zone: &TimeZone) -> Markup {
    html! {
        section.card.alarm #differing aria-labelledby="differing-title" {
            h2 #differing-title { (words::count_of(checks.len() as i128, "key differs", "keys differ")) " from the log" }
            p.quiet {
                "The stored counts of these keys do not match the events in the log. Find out what \
                 wrote them: a restore of one engine without the other, rows changed by hand, a \
                 faulty disk. A backfill of the counter counts again from the log. Every audit \
                 checks these keys until they match."
            }
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
                    p {
                        (words::range(check.from_s, check.to_s, zone)) ": "
                        b { (words::number(check.stored)) } " stored, "
                        b { (words::number(check.recounted)) } " recounted from the log."
                    }
                    @let shown = check.differences.len().min(BUCKETS_SHOWN);
                    @let title = format!("Buckets of {} that differ", check.key);
                    (buckets(&check.differences[..shown], zone, &title))
                    @if check.differences.len() > shown {
                        p.quiet {
                            "and at least " (check.differences.len() - shown) " more buckets"
                        }
                    }
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

/// Stored and recounted values, side by side.
pub fn buckets(buckets: &[Difference], zone: &TimeZone, title: &str) -> Markup {
    let count = |count: Option<i64>| {
        count.map_or_else(|| "none".to_owned(), |count| words::number(count.into()))
    };
    let whole = |count: Option<i64>| i128::from(count.unwrap_or(0));
    parts::named_table(
        title,
        "",
        &BUCKET_COLUMNS,
        &html! {
            @for bucket in buckets {
                @let difference = whole(bucket.stored) - whole(bucket.recounted);
                tr.differs[difference != 0] {
                    td { (words::singular(bucket.granularity)) }
                    th scope="row" { (words::weekday_moment(bucket.time, zone)) }
                    td.number { (count(bucket.stored)) }
                    td.number { (count(bucket.recounted)) }
                    td.number {
                        @if difference == 0 { "–" } @else { (words::number(difference)) }
                    }
                }
            }
        },
    )
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
                    @for (name, word) in OUTCOMES {
                        @let mark = (name == chosen).then_some("true");
                        a href={ "/checks" @if !name.is_empty() { "?outcome=" (name) } "#list" }
                            aria-current=[mark] { (word) }
                    }
                }
            }
            @if checks.is_empty() {
                (nothing(selection))
            } @else {
                (parts::table("list-title", &COLUMNS, &html! {
                    @for check in checks { (row(check, zone)) }
                }))
                @if let (Some(last), true) = (checks.last(), checks.len() == PAGE_LEN) {
                    @let outcome = format!("&outcome={chosen}");
                    p {
                        a href={ "/checks?before=" (last.id) (outcome) "#list" } { "Older checks" }
                    }
                }
            }
        }
    }
}

fn nothing(selection: Selection) -> Markup {
    html! {
        @if selection.before.is_some() || selection.outcome.is_some() {
            p.quiet { "No check has this outcome." }
        } @else {
            p.quiet {
                "Nothing has been checked yet. The first audit runs a minute after the start, once \
                 events have been counted; “Check now” starts one at once."
            }
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
            @let is_compared = matches!(check.outcome, Outcome::Equal | Outcome::Differs);
            @for count in [check.stored, check.recounted] {
                td.number { @if is_compared { (words::number(count)) } @else { "–" } }
            }
            td { (check.by) }
        }
    }
}
