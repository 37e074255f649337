//! Why a member has what they have: the awards that are left in the balance, and what took the
//! others.

use crate::pages::kinds;
use crate::pages::view::ProgrammeView;
use crate::pages::visit::Visit;
use maud::{Markup, html};
use raingauge_awarding::{Explanation, LeftPoints, SpentPoints};
use raingauge_points::Entry;
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;

/// Awards and uses that the page shows, newest first.
const SHOWN: usize = 50;

const LEFT: [Column<'_>; 4] = [
    Column::Text("Award of"),
    Column::Number("Left"),
    Column::Text("From"),
    Column::Text("Expire"),
];
const USES: [Column<'_>; 4] = [
    Column::Text("When"),
    Column::Text("What"),
    Column::Number("Points"),
    Column::Text("Of the award of"),
];

/// The answer to *why do I have 180?*
pub async fn card(visit: &Visit, programme: &ProgrammeView, member: &str) -> Result<Markup, Fault> {
    let Some(explanation) = visit.desk.explain(&programme.name, member).await? else {
        return Ok(html! {});
    };
    let available = explanation.balance.available;
    Ok(html! {
        section.card aria-labelledby="why-title" {
            h2 #why-title { "Why " (programme.points(available.into())) "?" }
            @if explanation.left.is_empty() {
                p.quiet { "Nothing is left of any award." }
            } @else {
                p { "These awards are left:" }
                (left(visit, programme, &explanation))
            }
            @if explanation.is_cut {
                p.quiet { "Only the newest entries were read: what is left of older awards is missing here." }
            }
            (uses(programme, &explanation))
        }
    })
}

fn left(visit: &Visit, programme: &ProgrammeView, explanation: &Explanation) -> Markup {
    let row = |one: &LeftPoints| {
        html! {
            tr {
                th scope="row" { (moment(programme, &one.entry)) }
                td.number { strong { (programme.amount(one.points.into())) } }
                td.wrap { (one.words) }
                td { (programme.date(one.expires_on, visit.now_s())) }
            }
        }
    };
    html! {
        (parts::table("why-title", &LEFT, &html! {
            @for one in explanation.left.iter().rev().take(SHOWN) { (row(one)) }
        }))
        (more(explanation.left.len()))
    }
}

fn uses(programme: &ProgrammeView, explanation: &Explanation) -> Markup {
    let row = |one: &SpentPoints| {
        html! {
            tr {
                th scope="row" { (moment(programme, &one.by)) }
                td { (kinds::badge(one.by.kind)) }
                td.number { (programme.amount(one.points.into())) }
                td { (moment(programme, &one.of)) }
            }
        }
    };
    html! {
        @if !explanation.spent.is_empty() {
            details {
                summary { "What became of the others" }
                (parts::named_table("What became of the others", "", &USES, &html! {
                    @for one in explanation.spent.iter().rev().take(SHOWN) { (row(one)) }
                }))
                (more(explanation.spent.len()))
            }
        }
    }
}

fn more(count: usize) -> Markup {
    html! {
        @if count > SHOWN { p.quiet { "The newest " (SHOWN) " of " (words::number(count as i128)) "." } }
    }
}

/// When an entry happened, with a link to it where it is written.
fn moment(programme: &ProgrammeView, entry: &Entry) -> Markup {
    let at = parts::moment(entry.occurred_ms.div_euclid(1_000), &programme.zone);
    let place = format!("entries/{}/{}", entry.book, entry.sequence);
    html! {
        @if entry.sequence > 0 { a href=(programme.address(&place)) { (at) } } @else { (at) }
    }
}
