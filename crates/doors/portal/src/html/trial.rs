//! The page view of a trial: what a configuration would do.

use crate::html::parts::Column::{self, Number, Text};
use crate::html::parts::{self, Mood};
use crate::html::words;
use crate::trials::{EVENTS_MAX, Outcome, Trial};
use jiff::tz::TimeZone;
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
            @if shows_keys {
                h3 { "Busiest keys" }
                (hottest(&found.hottest, "Busiest keys"))
            } @else {
                (without_keys())
            }
            h3 { "Storage cost" }
            (cost(&found.daily, draft.retention_days))
        }
    }
}

fn beside(found: &Comparison, draft: &Counter, shows_keys: bool) -> Markup {
    let (before, after) = (&found.before, &found.after);
    let row = |label: &str, figure: &dyn Fn(&Preview) -> String| {
        let (before, after) = (figure(before), figure(after));
        html! {
            tr {
                th scope="row" { (label) }
                td.number { (before) }
                td.number.changed[before != after] { (after) }
            }
        }
    };

    let rows = html! {
        (row("events counted", &|found| whole(found.counted)))
        @for reason in reasons(before, after) {
            (row(reason_words(reason), &|found| whole(skips(found, reason))))
        }
        (row("keys", &|found| whole(found.keys as u64)))
        (row("cells a day", &|found| about(found.cells_per_day)))
        (row("bytes a day", &|found| size(found.daily.fine_bytes + found.daily.day_bytes)))
    };
    let columns = [Text("On these events"), Number("now"), Number("after the change")];

    html! {
        (what_was_tried(after))
        (parts::named_table("The same events, now and after the change", "compare", &columns, &rows))
        @if shows_keys {
            (key_changes(&found.keys))
            div.columns.hottest {
                div { h3 { "Busiest keys now" } (hottest(&before.hottest, "Busiest keys now")) }
                div {
                    h3 { "After the change" }
                    (hottest(&after.hottest, "Busiest keys after the change"))
                }
            }
        } @else {
            (without_keys())
        }
        h3 { "Storage cost after the change" }
        (cost(&after.daily, draft.retention_days))
    }
}

/// Shown in place of keys, which contain values of events and may be personal data.
fn without_keys() -> Markup {
    html! { p.quiet { "The keys are not shown: viewers do not see them, and fields may be masked." } }
}

fn what_was_tried(found: &Preview) -> Markup {
    if found.events == 0 {
        return parts::notice(
            Mood::Wait,
            &html! {
                "The log holds no events yet. Send some to " code { "POST /v1/events" }
                " or import a file, then load the page again."
            },
        );
    }

    if found.events_of_type == 0 {
        return parts::notice(
            Mood::Wait,
            &html! {
                "None of the newest " (whole(found.events))
                " events has this type. The counter would count once some arrive."
            },
        );
    }

    let moment = |at_s| parts::moment(at_s, &TimeZone::UTC);
    html! {
        p.quiet {
            (words::part_of(found.events_of_type, found.events, "event", "events"))
            " " @if found.events_of_type == 1 { "has" } @else { "have" } " this type"
            @if found.events >= EVENTS_MAX { " (older ones are not tried)" }
            @if let (Some(from), Some(to)) = (found.from_time, found.to_time) {
                ". The counted ones happened from " (moment(from)) " to " (moment(to)) " UTC"
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
        "outside_activity" => "happened outside the counter's active time",
        "filtered" => "did not pass the filter",
        "no_key" => "had no key: a field of the template was missing, or the key was too long",
        "too_many_keys" => "had a new key, but the counter had the most keys that it may have",
        "no_value" => "had no value: the field was missing, or not whole after scaling",
        other => other,
    }
}

fn hottest(keys: &[Hot], name: &str) -> Markup {
    if keys.is_empty() {
        return html! { p.quiet { "None." } };
    }
    parts::named_table(
        name,
        "",
        &[Text("Key"), Number("Events"), Number("Count")],
        &html! {
            @for hot in keys.iter().take(10) {
                tr {
                    td { code { (hot.key) } }
                    td.number { (whole(hot.events)) }
                    td.number { (parts::number(hot.count)) }
                }
            }
        },
    )
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
            h4 #differences-title { "The largest differences" }
            (parts::table("differences-title", &DIFFERENCES, &html! {
                @for change in changes.largest.iter().take(10) { (changed_key(change)) }
            }))
        }
    }
}

const DIFFERENCES: [Column<'_>; 4] =
    [Text("Key"), Number("now"), Number("after"), Number("difference")];

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
    let days_words = |days: Option<u32>| {
        days.map_or_else(|| "forever".to_owned(), |days| parts::number(days.into()))
    };

    html! {
        (parts::named_table("Storage cost", "cost", &COSTS, &html! {
            @for (name, cells, bytes, days) in rows {
                tr {
                    th scope="row" { (name) }
                    td.number { (about(cells)) }
                    td.number { (size(bytes)) }
                    td.number { (days_words(days)) }
                    td.number { (held(bytes, days)) }
                }
            }
        }))
        p.quiet {
            "Estimated from the days of the events above, before compression. On a cluster, each \
             cell is also one row of a count table."
        }
    }
}

const COSTS: [Column<'_>; 5] = [
    Text("Kept"),
    Number("cells a day"),
    Number("bytes a day"),
    Number("days"),
    Number("in total"),
];

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
