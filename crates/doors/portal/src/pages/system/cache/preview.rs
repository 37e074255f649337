//! Preview of a policy: how many counters it changes, and how many of the queries.

use super::strategy_words;
use crate::html::parts::Column::{Number, Text};
use crate::html::{parts, words};
use crate::pages::audit_actions::Share;
use crate::pages::system::overview::Overview;
use maud::{Markup, html};
use raingauge_operations::watch::KnownInstance;
use raingauge_policy::cache::{Choice, Policy, Strategy};
use raingauge_ports::catalog::Versioned;
use std::collections::BTreeMap;

/// Number of changed counters that are named.
const NAMED_MAX: usize = 12;

/// How often each counter was queried, from a sample on all instances.
type Demand = BTreeMap<u32, u64>;

/// The counters and queries of one strategy, before or after the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Side {
    counters: usize,
    asked: u64,
}

/// The change on instances without an override.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    sides: BTreeMap<&'static str, [Side; 2]>,
    changed: Vec<u32>,
    asked_changed: u64,
    asked: u64,
}

fn difference(counters: &[u32], asked: &Demand, before: &Choice, after: &Choice) -> Difference {
    let mut difference = Difference::default();
    for id in counters {
        let often = asked.get(id).copied().unwrap_or(0);
        let strategies = [before.strategy_of(*id), after.strategy_of(*id)];
        for (place, strategy) in strategies.iter().enumerate() {
            let side = &mut difference.sides.entry(strategy.name()).or_default()[place];
            side.counters += 1;
            side.asked += often;
        }

        difference.asked += often;

        if strategies[0] != strategies[1] {
            difference.changed.push(*id);
            difference.asked_changed += often;
        }
    }

    difference
}

/// Sums up how often each counter was queried on the running instances.
fn asked_of(seen: &[KnownInstance]) -> Demand {
    let mut asked = Demand::new();
    for seen in seen.iter().filter(|seen| !seen.is_gone) {
        seen.announcement
            .asked
            .iter()
            .for_each(|(counter, often)| *asked.entry(*counter).or_default() += often);
    }
    asked
}

fn answering(counters: &[Versioned]) -> Vec<&Versioned> {
    counters.iter().filter(|found| found.counter.state.answers()).collect()
}

/// The effect of a change, in short.
pub fn share(
    counters: &[Versioned],
    seen: &[KnownInstance],
    before: &Policy,
    after: &Policy,
) -> Share {
    let ids: Vec<u32> = answering(counters).iter().map(|found| found.counter.id).collect();
    let whole = difference(&ids, &asked_of(seen), &before.choice, &after.choice);
    let asked = (whole.asked > 0).then(|| words::share(whole.asked_changed, whole.asked));
    Share { changed: whole.changed.len(), counters: ids.len(), asked }
}

pub fn section(
    counters: &[Versioned],
    overview: &Overview,
    current: &Policy,
    planned: &Policy,
) -> Markup {
    let answering = answering(counters);
    let ids: Vec<u32> = answering.iter().map(|found| found.counter.id).collect();
    let asked = asked_of(&overview.seen);
    let whole = difference(&ids, &asked, &current.choice, &planned.choice);

    html! {
        section.card #preview aria-labelledby="preview-title" aria-live="polite" {
            h2 #preview-title { "What changes" }
            @if ids.is_empty() {
                p.quiet { "No counter answers yet, so a policy has no effect." }
            } @else {
                p { (summary(&whole, ids.len(), current == planned)) }
                (table(&whole))
                @if !whole.changed.is_empty() { (named(&answering, &whole.changed)) }
                @for (instance, choice) in &planned.overrides {
                    @let own = difference(&ids, &asked, &planned.choice, choice);
                    @let changed = own.changed.len() as i128;
                    p {
                        b { (instance) } " uses another strategy for "
                        (words::count_of(changed, "counter", "counters")) "."
                    }
                }
                @if whole.asked == 0 {
                    p.quiet { "Shares of queries appear once readers have answered some." }
                }
            }
        }
    }
}

fn summary(whole: &Difference, counters: usize, is_same: bool) -> String {
    if is_same {
        return "This is the policy in force.".to_owned();
    }

    if whole.changed.is_empty() {
        return "No active or paused counter changes its strategy.".to_owned();
    }
    let share = match whole.asked {
        0 => String::new(),
        asked => format!(", with {} of the queries", words::share(whole.asked_changed, asked)),
    };
    format!("{} of {counters} counters change their strategy{share}.", whole.changed.len())
}

fn table(whole: &Difference) -> Markup {
    let share = |side: Side| match whole.asked {
        0 => "–".to_owned(),
        asked => words::share(side.asked, asked),
    };
    parts::table(
        "preview-title",
        &[
            Text("Strategy"),
            Number("Counters now"),
            Number("then"),
            Number("Queries now"),
            Number("then"),
        ],
        &html! {
            @for strategy in Strategy::ALL {
                @if let Some([before, after]) = whole.sides.get(strategy.name()) {
                    tr {
                        th scope="row" { (strategy_words(strategy.name())) }
                        td.number { (before.counters) } td.number { (after.counters) }
                        td.number { (share(*before)) } td.number { (share(*after)) }
                    }
                }
            }
        },
    )
}

fn named(answering: &[&Versioned], changed: &[u32]) -> Markup {
    let left_out = changed.len().saturating_sub(NAMED_MAX);
    let name_of = |id: u32| {
        let found = answering.iter().find(|found| found.counter.id == id);
        found.map_or("", |found| found.counter.name.as_str())
    };

    html! {
        p.quiet {
            "Changed: "
            @for (place, id) in changed.iter().take(NAMED_MAX).enumerate() {
                @if place > 0 { ", " }
                a href={ "/counters/" (id) } { (name_of(*id)) " (" (id) ")" }
            }
            @if left_out > 0 { " and " (left_out) " more" }
            "."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_policy::cache::Step;

    #[test]
    fn a_change_is_described_in_counters_and_in_counts() {
        let before = Choice { strategy: Strategy::Result, rollout: Vec::new() };
        let step = Step { strategy: Strategy::Live, modulo: 2, below: 1 };
        let after = Choice { strategy: Strategy::Result, rollout: vec![step] };

        let asked = Demand::from([(2, 30), (3, 70)]);
        let found = difference(&[1, 2, 3, 4], &asked, &before, &after);
        assert_eq!(
            (found.changed.as_slice(), found.asked_changed, found.asked),
            (&[2, 4][..], 30, 100)
        );
        assert_eq!(found.sides["live"], [Side::default(), Side { counters: 2, asked: 30 }]);

        assert_eq!(
            summary(&found, 4, false),
            "2 of 4 counters change their strategy, with 30 % of the queries."
        );
    }
}
