//! All versions of the cache policy, with a button to restore an earlier one.

use super::strategy_words;
use crate::html::parts::Column::{self, Silent, Text};
use crate::html::parts::{self, ButtonForm};
use crate::pages::system::overview::Overview;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_people::Principal;
use raingauge_policy::cache::{Choice, Policy};

/// Number of versions that can be restored.
pub const VERSIONS_MAX: usize = crate::pages::system::overview::POLICIES_MAX;

/// The last column is only for people who may restore a version.
const COLUMNS: [Column<'_>; 6] =
    [Text("Version"), Text("Policy"), Text("By"), Text("Reason"), Text("Time"), Silent("Back")];

pub fn section(person: &Principal, overview: &Overview) -> Markup {
    let current = overview.policy().version;
    let may = person.may(Role::Admin);
    let columns = &COLUMNS[..COLUMNS.len() - usize::from(!may)];
    html! {
        section.card #history aria-labelledby="history-title" {
            h2 #history-title { "History" }
            @if overview.policies.is_empty() {
                p.quiet {
                    "No policy has been set: counts are answered from tiles in memory, which \
                     follow the writers, in processes that have them."
                }
            } @else {
                (parts::table("history-title", columns, &html! {
                    @for version in &overview.policies {
                        @let is_current = version.version == current;
                        tr {
                            th scope="row" {
                                (version.version)
                                @if is_current {
                                    " " span.state data-state="good" { "in force" }
                                }
                            }
                            td { (policy(&version.policy)) }
                            td { (version.changed_by) }
                            td.wrap { (version.reason) }
                            td { (parts::moment(version.changed_at, &overview.zone)) }
                            @if may {
                                td { @if !is_current { (back(person, current, version.version)) } }
                            }
                        }
                    }
                }))
                @if may && overview.policies.len() == 1 { (back(person, current, 0)) }
            }
        }
    }
}

fn back(person: &Principal, current: u32, to: u32) -> Markup {
    let label = match to {
        0 => "Back to no policy".to_owned(),
        to if to + 1 == current => format!("Back to version {to}, the previous one"),
        to => format!("Back to version {to}"),
    };
    let [current, to] = [current, to].map(|version| version.to_string());
    let fields = [("version", current.as_str()), ("to", to.as_str())];
    ButtonForm::new("/system/cache/back", &label).with(&fields).markup(person)
}

/// A policy in words.
pub fn policy(policy: &Policy) -> Markup {
    html! {
        (choice(&policy.choice))
        @for (instance, own) in &policy.overrides { div { "on " b { (instance) } ": " (choice(own)) } }
    }
}

fn choice(choice: &Choice) -> Markup {
    html! {
        @for step in &choice.rollout {
            code { "id % " (step.modulo) " < " (step.below) } " "
            (strategy_words(step.strategy.name())) ", else "
        }
        (strategy_words(choice.strategy.name()))
    }
}
