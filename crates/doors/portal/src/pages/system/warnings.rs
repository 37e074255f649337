//! Conditions that need an operator's attention, as sentences that say what to do.

use super::overview::Overview;
use crate::html::{parts, words};
use maud::{Markup, html};
use raingauge_operations::measures::values::{
    BREAKER_STATE, DISK_BYTES, DISK_FREE, LAG_SECONDS, PARTITIONS_COUNTED,
};
use std::collections::BTreeSet;

/// Thresholds of the lag: above the first the page warns, above the second the warning is grave.
const LAG_SHOWN_S: f64 = 30.0;
const LAG_GRAVE_S: f64 = 300.0;
/// Age of the value with which the current lag is compared.
const LAG_BEFORE_S: i64 = 300;
/// The share of a disk that should be free.
const DISK_FREE_MIN: f64 = 0.1;
/// How long a missing instance is reported; after that it counts as taken out of service.
const GONE_SHOWN_S: i64 = 3_600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub is_grave: bool,
    pub words: String,
    /// Address and text of a link to the page that helps.
    pub link: Option<(String, &'static str)>,
}

fn grave(words: String) -> Warning {
    Warning { is_grave: true, words, link: None }
}

fn mild(words: String) -> Warning {
    Warning { is_grave: false, words, link: None }
}

/// Returns all warnings, grave ones first.
pub fn of(overview: &Overview) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(reason) = &overview.failure {
        let words = format!(
            "The catalog is unavailable, so this page shows only this process, and settings may be \
             outdated: {reason}."
        );
        warnings.push(grave(words));
    }

    stopped(overview, &mut warnings);
    writers(overview, &mut warnings);
    lag(overview, &mut warnings);
    breakers(overview, &mut warnings);
    mismatches(overview, &mut warnings);
    disk(overview, &mut warnings);
    policies(overview, &mut warnings);
    instances(overview, &mut warnings);
    warnings.sort_by_key(|warning| !warning.is_grave);

    warnings
}

/// Renders the warnings. They carry no ARIA role: the page refreshes every few seconds, and a
/// screen reader would repeat them each time.
pub fn section(warnings: &[Warning]) -> Markup {
    html! {
        div #system-warnings.stack {
            @for warning in warnings {
                div class={ "notice " (if warning.is_grave { "bad" } else { "wait" }) } data-warning {
                    (warning.words)
                    @if let Some((address, words)) = &warning.link { " " a href=(address) { (words) } }
                }
            }
        }
    }
}

fn stopped(overview: &Overview, warnings: &mut Vec<Warning>) {
    for seen in overview.present_instances() {
        if let Some(reason) = &seen.announcement.failure {
            warnings.push(grave(format!(
                "{} has stopped counting: {reason}. Check its log, remove the cause and restart it.",
                seen.title()
            )));
        }
    }
}

fn writers(overview: &Overview, warnings: &mut Vec<Warning>) {
    let has_role = |role: &str| {
        overview.present_instances().any(|seen| seen.instance.roles.iter().any(|own| own == role))
    };
    if overview.seen.is_empty() {
        return;
    }

    if !has_role("writer") {
        warnings.push(grave(
            "No writer runs: events stay in the log and are not counted. Start a process with the \
             role writer."
                .to_owned(),
        ));
    } else if overview.totals.has(PARTITIONS_COUNTED) {
        let counted = overview.totals.total(PARTITIONS_COUNTED) as usize;
        if counted < overview.partitions {
            warnings.push(mild(format!(
                "{counted} of {} partitions of the log are being counted. A writer that has just \
                 started takes its share within a minute; after that, check the logs of the \
                 writers.",
                overview.partitions
            )));
        }
    }

    if !has_role("reader") {
        warnings.push(mild(
            "No reader runs: only portals answer counts. Start a process with the role reader."
                .to_owned(),
        ));
    }
}

fn lag(overview: &Overview, warnings: &mut Vec<Warning>) {
    let now = overview.totals.largest(LAG_SECONDS);
    if now < LAG_SHOWN_S {
        return;
    }

    let before = overview
        .since(LAG_BEFORE_S + 60, 60)
        .map(|span| span.values.largest(LAG_SECONDS))
        .fold(0.0, f64::max);
    let behind = words::duration(now);
    let words = if now >= before {
        format!(
            "Counting is {behind} behind the log, and falls further behind. Add a writer, or find \
             out what slows the bucket store down. No event is lost."
        )
    } else {
        format!("Counting is {behind} behind the log, and catching up.")
    };
    warnings.push(if now >= before && now >= LAG_GRAVE_S { grave(words) } else { mild(words) });
}

fn breakers(overview: &Overview, warnings: &mut Vec<Warning>) {
    for (engine, state) in overview.totals.by(BREAKER_STATE) {
        let name = super::tables::engine_words(engine);
        if state >= 2.0 {
            warnings.push(grave(format!(
                "The circuit breaker of the {name} is open: requests that need it fail or go \
                 without it at once. Check that the {name} runs and can be reached; it is tried \
                 again every few seconds."
            )));
        } else if state >= 1.0 {
            warnings.push(mild(format!(
                "The {name} is being tried again: its circuit breaker is half open."
            )));
        }
    }
}

fn mismatches(overview: &Overview, warnings: &mut Vec<Warning>) {
    if overview.mismatches > 0 {
        let keys = words::count_of(overview.mismatches as i128, "key has", "keys have");
        warnings.push(Warning {
            is_grave: true,
            words: format!("{keys} a stored count that differs from the log."),
            link: Some(("/checks".to_owned(), "See the checks")),
        });
    }
}

fn disk(overview: &Overview, warnings: &mut Vec<Warning>) {
    for seen in overview.present_instances() {
        let values = &seen.announcement.values;
        let free = values.total(DISK_FREE);
        let all = values.total(DISK_BYTES);
        if all > 0.0 && free < all * DISK_FREE_MIN {
            warnings.push(grave(format!(
                "The disk of {} has {} left. Free space, or keep less of the log \
                 (log.retention_bytes): events are refused once it is full.",
                seen.title(),
                words::bytes(free)
            )));
        }
    }
}

fn policies(overview: &Overview, warnings: &mut Vec<Warning>) {
    let policy = overview.policy();

    // A reader needs a moment to pick up a change.
    if overview.failure.is_some() || overview.now_s - policy.changed_at < 15 {
        return;
    }

    for seen in overview.present_instances() {
        let Some(choice) = &seen.announcement.choice else {
            continue;
        };
        if choice != policy.policy.choice_of(&seen.instance.name) {
            warnings.push(mild(format!(
                "{} caches as “{}”, which is not the policy. It may be cut off from the catalog: \
                 check its log.",
                seen.title(),
                choice.strategy.name()
            )));
        }
    }
}

fn instances(overview: &Overview, warnings: &mut Vec<Warning>) {
    let gone = overview
        .seen
        .iter()
        .filter(|seen| seen.is_gone && overview.now_s - seen.instance.seen_s < GONE_SHOWN_S);
    for seen in gone {
        warnings.push(mild(format!(
            "{} was last seen {} and did not sign off. If it should run, start it.",
            seen.title(),
            parts::ago(overview.now_s - seen.instance.seen_s)
        )));
    }

    let versions: BTreeSet<&str> =
        overview.present_instances().map(|seen| seen.instance.version.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        warnings.push(mild(format!(
            "Processes of several versions run: {}. That is normal during an upgrade; complete it \
             soon.",
            versions.join(", ")
        )));
    }
}
