//! Finding a member, and the page of one: what they have, and how they came to it.

mod adjust;
mod entry;
mod statement;
mod why;

pub use adjust::adjust;
pub use entry::page as entry;
pub use statement::download;

use super::view::ProgrammeView;
use super::visit::{Answer, Part, Tab, Visit, programme, programme_head};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};
use raingauge_awarding::Balance;
use raingauge_portal::html::parts::{self, Column, Field};

const LOTS: [Column<'_>; 2] = [Column::Number("Points"), Column::Text("Expire")];

/// `GET /points/{programme}/members`: a search, which leads to the member.
pub async fn search(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    if let Some(member) = visit.query.given("member") {
        return Ok(Redirect::to(&programme.member_address(member)).into_response());
    }

    let title = format!("Members of {}", programme.name);
    let body = html! {
        (programme_head(&programme, Part::Members, "Members", &html! {}))
        section.card {
            form.row method="get" action=(programme.address("members")) role="search" {
                (Field { name: "member", label: "Member", hint: "Exactly as events name them.", problem: None }.text(""))
                button.button.primary type="submit" { "Show" }
            }
        }
        (parts::empty("Whose points?", &html! {
            "A member's page shows what they have, when it expires, everything that happened, and why. Anyone may be looked up: members need not be registered, they begin with their first points."
        }))
    };
    Ok(visit.show(Tab::Programmes, &title, &body))
}

/// `GET /points/{programme}/members/{member}`
pub async fn page(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let member = visit.at("member").to_owned();
    let balance = visit.desk.balance(&programme.name, &member).await?;
    let statement = statement::card(&visit, &programme, &member).await?;
    let why = why::card(&visit, &programme, &member).await?;

    let actions = html! {
        @if let Some(tier) = &balance.tier { span.state data-state="good" { (tier) } }
        div.actions { a.button href=(programme.address("members")) { "Another member" } }
    };
    let body = html! {
        (programme_head(&programme, Part::Members, &member, &actions))
        (figures(&visit, &programme, &balance))
        div.columns {
            (lots(&visit, &programme, &balance))
            (why)
        }
        (statement)
        @if visit.may_edit() { (adjust::card(&visit, &programme, &member)) }
    };
    Ok(visit.show(Tab::Programmes, &member, &body))
}

/// The parts of the balance as large numbers.
fn figures(visit: &Visit, programme: &ProgrammeView, balance: &Balance) -> Markup {
    let figure = |label: &str, points: i64, words: &str| {
        html! {
            div {
                dt { (label) }
                dd { span.figure { (programme.amount(points.into())) } span.quiet { (words) } }
            }
        }
    };
    html! {
        section.card aria-label="Balance" {
            dl.figures {
                (figure("Can spend", balance.available, &programme.unit))
                @if balance.pending != 0 { (figure("Pending", balance.pending, "can be spent later")) }
                @if balance.held != 0 { (figure("Set aside", balance.held, "for something under way")) }
                @if balance.arrears != 0 { (figure("Owes", balance.arrears, "paid by the next points")) }
                @if balance.closed {
                    div {
                        dt { "Wallet" }
                        dd { span.state data-state="draft" { "closed" } }
                    }
                }
                div {
                    dt { "Next to expire" }
                    dd { span { (programme.date(balance.expires_on, visit.now_s())) } }
                }
            }
        }
    }
}

fn lots(visit: &Visit, programme: &ProgrammeView, balance: &Balance) -> Markup {
    html! {
        section.card aria-labelledby="lots-title" {
            h2 #lots-title { "When they expire" }
            @if balance.lots.is_empty() {
                p.quiet { "There are no points to spend, so nothing expires." }
            } @else {
                (parts::table("lots-title", &LOTS, &html! {
                    @for lot in &balance.lots {
                        tr {
                            td.number { (programme.amount(lot.points.into())) }
                            td { (programme.date(lot.expires_on, visit.now_s())) }
                        }
                    }
                }))
                p.quiet { "Points that expire first are spent first." }
            }
        }
    }
}
