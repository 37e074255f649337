//! All programmes: what each issued, what was spent, what expired, and what is outstanding.

use super::view::ProgrammeView;
use super::visit::{Answer, Tab, Visit};
use maud::{Markup, html};
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use raingauge_ports::points::QueueName;

const COLUMNS: [Column<'_>; 7] = [
    Column::Text("Programme"),
    Column::Number("Issued today"),
    Column::Number("Spent today"),
    Column::Number("Expired today"),
    Column::Number("Outstanding"),
    Column::Text("Points expire"),
    Column::Text("Changed"),
];

/// `GET /points`
pub async fn list(visit: Visit) -> Answer {
    let programmes = visit.desk.programmes().await?;
    let is_added = visit.desk.refresh_today().await;
    let mut rows = Vec::with_capacity(programmes.len());
    for programme in &programmes {
        rows.push(row(&visit, programme).await?);
    }
    let body = html! {
        div.page-head {
            h1 { "Points" }
            @if visit.may_edit() {
                div.actions { a.button.primary href="/points/new" { "New programme" } }
            }
        }
        (notices(&visit).await?)
        @if programmes.is_empty() {
            (parts::empty("No programmes yet", &html! {
                "A programme says what earns how many points, and when they expire. "
                @if visit.may_edit() {
                    a href="/points/new" { "Create the first one" }
                    " from an example that works, or apply a file with "
                    code { "raingauge points programmes apply" }
                    "."
                }
            }))
        } @else {
            section.card.table-card aria-labelledby="programmes-title" {
                h2.visually-hidden #programmes-title { "All programmes" }
                (parts::table("programmes-title", &COLUMNS, &html! { @for row in &rows { (row) } }))
            }
            p.quiet {
                "Today begins at midnight in the zone of the programme."
                @if !is_added { " It is still being added up: load the page again." }
            }
        }
    };
    Ok(visit.show(Tab::Programmes, "Points", &body))
}

/// What keeps points from being awarded.
async fn notices(visit: &Visit) -> Result<Markup, Fault> {
    let mut dead = 0;
    for queue in QueueName::ALL {
        dead += visit.desk.depth(queue).await?.dead;
    }
    Ok(html! {
        @if let Some(trouble) = visit.desk.trouble() {
            (parts::notice(Mood::Bad, &html! { "Nothing is awarded at the moment: " (trouble) }))
        }
        @if dead > 0 {
            (parts::notice(Mood::Bad, &html! {
                a href="/points/queues" { (words::count_of(dead.into(), "letter was", "letters were")) " given up" }
                ": look at the reason, and send them again."
            }))
        }
    })
}

async fn row(visit: &Visit, programme: &ProgrammeView) -> Result<Markup, Fault> {
    let liability = visit.desk.liability(&programme.name).await?;
    let today = visit.desk.today(&programme.name).unwrap_or_default();
    let changed_s = programme.changed_ms.div_euclid(1_000);
    Ok(html! {
        tr {
            th.wrap scope="row" {
                a href=(programme.address("")) { (programme.name) }
                br;
                span.quiet { (programme.unit) ", version " (programme.version) }
            }
            td.number { (programme.amount(today.issued)) }
            td.number { (programme.amount(today.spent)) }
            td.number { (programme.amount(today.expired)) }
            td.number { strong { (programme.amount(liability.total())) } }
            td.wrap { (super::rules::expiry(&programme.configuration["expiry"])) }
            td.quiet {
                (parts::ago(visit.now_s() - changed_s))
                @if !programme.changed_by.is_empty() { br; (programme.changed_by) }
            }
        }
    })
}
