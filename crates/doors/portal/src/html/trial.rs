//! The page view of a trial: what a configuration would do.

use crate::html::parts::{self, Mood};
use crate::trying::{EVENTS_MAX, Outcome, Trial};
use maud::{Markup, html};
use raingauge_core::counter::Counter;
use raingauge_core::retention::RetentionDays;
use raingauge_counters::preview::{Comparison, Daily, Hot, KeyChange, KeyChanges, Preview};

/// The whole trial of a configuration.
pub fn trial(trial: &Trial, draft: &Counter) -> Markup {
    html! {
        @for conflict in &trial.conflicts {
            (parts::notice(Mood::Bad, &html! { strong { "Conflict. " } "The template " (conflict.detail) "." }))
        }
        @match &trial.result {
            Outcome::Alone(found) => (alone(found, draft, trial.shows_keys)),
            Outcome::Beside(found) => (beside(found, draft, trial.shows_keys)),
        }
    }
}

fn alone(found: &Preview, draft: &Counter, shows_keys: bool) -> Markup {
    html! {
        (what_was_tried(found))
        @if found.counted > 0 {
            dl.tallies {
                (figure("events counted", &whole(found.counted)))
                (figure("keys", &whole(found.keys as u64)))
                (figure("cells a day", &about(found.cells_per_day)))
            }
        }
        (skipped(found))
        @if found.counted > 0 {
            @if shows_keys { h3 { "Hottest keys" } (hottest(&found.hottest)) } @else { (without_keys()) }
            h3 { "What it costs" }
            (cost(&found.daily, draft.retention_days))
        }
    }
}

fn beside(found: &Comparison, draft: &Counter, shows_keys: bool) -> Markup {
    let (before, after) = (&found.before, &found.after);
    let row = |label: &str, before: String, after: String| {
        html! { tr { th scope="row" { (label) } td.number { (before) } td.number.changed[before != after] { (after) } } }
    };
    let bytes = |daily: &Daily| size(daily.fine_bytes + daily.day_bytes);

    html! {
        (what_was_tried(after))
        div.scroll tabindex="0" {
            table.compare {
                caption { "The same events, counted as it is now and as it would be" }
                thead { tr { th scope="col" { "On these events" } th.number scope="col" { "now" } th.number scope="col" { "after the change" } } }
                tbody {
                    (row("events counted", whole(before.counted), whole(after.counted)))
                    @for reason in reasons(before, after) {
                        (row(reason_words(reason), whole(skips(before, reason)), whole(skips(after, reason))))
                    }
                    (row("keys", whole(before.keys as u64), whole(after.keys as u64)))
                    (row("cells a day", about(before.cells_per_day), about(after.cells_per_day)))
                    (row("bytes a day", bytes(&before.daily), bytes(&after.daily)))
                }
            }
        }
        @if shows_keys {
            (key_changes(&found.keys))
            div.columns.hottest {
                div { h3 { "Hottest keys now" } (hottest(&before.hottest)) }
                div { h3 { "After the change" } (hottest(&after.hottest)) }
            }
        } @else {
            (without_keys())
        }
        h3 { "What it costs after the change" }
        (cost(&after.daily, draft.retention_days))
    }
}

/// Shown in place of keys, which contain values of events and may be personal data.
fn without_keys() -> Markup {
    html! { p.quiet { "The keys are not shown to you, or have masked fields." } }
}

fn what_was_tried(found: &Preview) -> Markup {
    if found.events == 0 {
        return parts::notice(
            Mood::Wait,
            &html! {
                "The log holds no events yet. Send some to " code { "POST /v1/events" } ", or import a file, and look again."
            },
        );
    }

    if found.events_of_type == 0 {
        return parts::notice(
            Mood::Wait,
            &html! {
                "None of the newest " (whole(found.events)) " events has this type. It would count once some arrive."
            },
        );
    }

    html! {
        p.quiet {
            (whole(found.events_of_type)) " events of this type, among the newest " (whole(found.events))
            @if found.events >= EVENTS_MAX { " (no more are tried)" }
            @if let (Some(from), Some(to)) = (found.from_time, found.to_time) {
                ". What is counted happened from " (parts::moment(from, &jiff::tz::TimeZone::UTC)) " to " (parts::moment(to, &jiff::tz::TimeZone::UTC)) " UTC"
            }
            "."
        }
    }
}

/// Why events were not counted.
fn skipped(found: &Preview) -> Markup {
    html! {
        @if !found.skipped.is_empty() {
            h3 { "Not counted" }
            ul.reasons {
                @for (reason, events) in &found.skipped {
                    li { strong { (whole(*events)) } " " (reason_words(reason)) }
                }
            }
        }
    }
}

fn reasons<'a>(before: &'a Preview, after: &'a Preview) -> Vec<&'a str> {
    let mut reasons: Vec<&str> =
        before.skipped.keys().chain(after.skipped.keys()).copied().collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

fn skips(found: &Preview, reason: &str) -> u64 {
    found.skipped.get(reason).copied().unwrap_or(0)
}

fn reason_words(reason: &str) -> &str {
    match reason {
        "outside_activity" => "happened outside the time in which it counts",
        "filtered" => "did not pass the filter",
        "no_key" => "had no key: a field of the template was missing, or the key too long",
        "too_many_keys" => "had a new key when the counter had as many as it may have",
        "no_value" => "had no value: the field was missing, or not whole after scaling",
        other => other,
    }
}

fn hottest(keys: &[Hot]) -> Markup {
    html! {
        @if keys.is_empty() { p.quiet { "None." } } @else {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th scope="col" { "Key" } th.number scope="col" { "Events" } th.number scope="col" { "Count" } } }
                    tbody {
                        @for hot in keys.iter().take(10) {
                            tr { td { code { (hot.key) } } td.number { (whole(hot.events)) } td.number { (parts::number(hot.count)) } }
                        }
                    }
                }
            }
        }
    }
}

fn key_changes(changes: &KeyChanges) -> Markup {
    let all = changes.gained + changes.lost + changes.changed;
    let count =
        |words: &str, keys: usize| html! { li { strong { (whole(keys as u64)) } " " (words) } };
    html! {
        h3 { "Keys that differ" }
        @if all == 0 {
            p.quiet { "None: every key has the same count." }
        } @else {
            ul.reasons {
                (count("gained: only after the change", changes.gained))
                (count("lost: only now", changes.lost))
                (count("with another count", changes.changed))
                (count("with the same count", changes.same))
            }
            div.scroll tabindex="0" {
                table {
                    caption { "The largest differences" }
                    thead { tr { th scope="col" { "Key" } th.number scope="col" { "now" } th.number scope="col" { "after" } th.number scope="col" { "difference" } } }
                    tbody { @for change in changes.largest.iter().take(10) { (changed_key(change)) } }
                }
            }
        }
    }
}

fn changed_key(change: &KeyChange) -> Markup {
    let count = |count: Option<i128>| count.map_or_else(|| "–".to_owned(), parts::number);
    let difference = change.after.unwrap_or(0).saturating_sub(change.before.unwrap_or(0));
    let sign = if difference > 0 { "+" } else { "" };
    html! {
        tr {
            td { code { (change.key) } }
            td.number { (count(change.before)) }
            td.number { (count(change.after)) }
            td.number { (sign) (parts::number(difference)) }
        }
    }
}

/// What a day adds, and the upper bound that is reached once the first day expires.
pub fn cost(daily: &Daily, kept: RetentionDays) -> Markup {
    let fine_cells = (daily.quarter_cells + daily.hour_cells).max(1.0);
    let fine = |cells: f64| daily.fine_bytes * cells / fine_cells;
    let rows = [
        ("Quarter hours", daily.quarter_cells, fine(daily.quarter_cells), kept.quarter),
        ("Hours", daily.hour_cells, fine(daily.hour_cells), kept.hour),
        ("Days", daily.day_cells, daily.day_bytes, kept.day),
    ];

    let held = |daily: f64, days: Option<u32>| match days {
        Some(days) => size(daily * f64::from(days)),
        None => format!("{} a year", size(daily * 365.0)),
    };
    html! {
        div.scroll tabindex="0" {
            table.cost {
                thead { tr { th scope="col" { "Kept" } th.number scope="col" { "cells a day" } th.number scope="col" { "bytes a day" } th.number scope="col" { "days" } th.number scope="col" { "in all" } } }
                tbody {
                    @for (name, cells, bytes, days) in rows {
                        tr {
                            th scope="row" { (name) }
                            td.number { (about(cells)) }
                            td.number { (size(bytes)) }
                            td.number { (days.map_or_else(|| "for ever".to_owned(), |days| parts::number(days.into()))) }
                            td.number { (held(bytes, days)) }
                        }
                    }
                }
            }
        }
        p.quiet { "About, from the days on which the events above happened, before compression. On a cluster a cell is also a row of a count table." }
    }
}

fn figure(label: &str, value: &str) -> Markup {
    html! { div { dt { (label) } dd { (value) } } }
}

fn whole(number: u64) -> String {
    parts::number(number.into())
}

/// An average; small ones have a decimal.
fn about(number: f64) -> String {
    if number < 10.0 && number.fract() != 0.0 {
        format!("{number:.1}")
    } else {
        parts::number(number.round() as i128)
    }
}

/// Bytes in the largest unit that keeps them above one.
fn size(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];

    let mut value = bytes;
    for unit in &UNITS[..4] {
        if value < 1_000.0 {
            return if value < 10.0 && *unit != "B" {
                format!("{value:.1} {unit}")
            } else {
                format!("{value:.0} {unit}")
            };
        }
        value /= 1_000.0;
    }

    format!("{value:.1} {}", UNITS[4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            [0.0, 999.0, 1_500.0, 42_000_000.0].map(size),
            ["0 B", "999 B", "1.5 kB", "42 MB"]
        );
        assert_eq!([0.0, 2.25, 12.6, 3.0].map(about), ["0", "2.2", "13", "3"]);
    }
}
