//! One programme: what it says in plain words, what it issued, and its versions.

mod versions;

use super::rules;
use super::view::ProgrammeView;
use super::visit::{Answer, Part, Tab, Visit, programme, programme_head};
use maud::{Markup, html};
use raingauge_awarding::Allowance;
use raingauge_points::Liability;
use raingauge_portal::html::parts::{self, Field, Mood};

/// `GET /points/{programme}`
pub async fn page(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let liability = visit.desk.liability(&programme.name).await?;
    let budgets = visit.desk.allowances(&programme.name).await?.budgets;
    let versions = versions::card(&visit, &programme).await?;
    let actions = html! {
        @if visit.may_edit() {
            div.actions { a.button.primary href=(programme.address("edit")) { "Edit" } }
        }
    };

    let body = html! {
        (programme_head(&programme, Part::Overview, &programme.name, &actions))
        (in_force(&visit, &programme))
        (figures(&programme, &liability))
        @if visit.may_edit() { (search(&programme)) }
        div.columns {
            section.card aria-labelledby="rules-title" {
                h2 #rules-title { "What is earned" }
                (rules::rules(&programme))
            }
            section.card aria-labelledby="life-title" {
                h2 #life-title { "What becomes of the points" }
                (rules::life(&programme))
            }
        }
        (budgets_card(&programme, &budgets))
        (rules::examples(&programme))
        div.columns { (rules::tables(&programme)) }
        (versions)
    };
    Ok(visit.show(Tab::Programmes, &programme.name, &body))
}

/// A version that has not taken effect yet.
fn in_force(visit: &Visit, programme: &ProgrammeView) -> Markup {
    let version = visit.desk.in_force(&programme.name).map(|programme| programme.version);
    html! {
        @if version != Some(programme.version) {
            (parts::notice(Mood::Wait, &html! {
                "Version " (programme.version) " is saved, and takes effect when the ledger reaches it. "
                @match version {
                    Some(version) => { "Until then, version " (version) " awards." }
                    None => "Until then, this programme awards nothing.",
                }
            }))
        }
    }
}

fn figures(programme: &ProgrammeView, liability: &Liability) -> Markup {
    let figure = |label: &str, points: i128| {
        html! {
            div {
                dt { (label) }
                dd { span.figure { (programme.amount(points)) } }
            }
        }
    };
    html! {
        section.card aria-label="Since the beginning" {
            dl.figures {
                (figure("Outstanding", liability.total()))
                (figure("Issued", liability.issued))
                (figure("Spent", liability.burned))
                (figure("Expired", liability.expired))
                @if liability.pending != 0 { (figure("Pending", liability.pending)) }
                @if liability.arrears != 0 { (figure("Owed by members", liability.arrears)) }
            }
        }
    }
}

fn search(programme: &ProgrammeView) -> Markup {
    html! {
        section.card {
            form.row method="get" action=(programme.address("members")) role="search" {
                (Field { name: "member", label: "Find a member", hint: "", problem: None }.text(""))
                button.button type="submit" { "Show" }
            }
        }
    }
}

/// The bounds of what is issued under a name, and what is left of it.
fn budgets_card(programme: &ProgrammeView, used: &[Allowance]) -> Markup {
    let budgets: Vec<(&str, String)> = rules::budgets(programme).collect();
    html! {
        @if !budgets.is_empty() {
            section.card aria-labelledby="budgets-title" {
                h2 #budgets-title { "Budgets" }
                dl.facts {
                    @for (name, limit) in budgets {
                        dt { (name) }
                        dd {
                            "at most " (limit) " " (programme.unit)
                            @if let Some(left) = Allowance::left_of(used, name) {
                                ", " (programme.amount(left.into())) " left"
                            }
                        }
                    }
                }
            }
        }
    }
}
