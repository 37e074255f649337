//! Is the ledger right, and is what is due written down? Sweeps, and what proves the entries.

use super::faults;
use super::visit::{Answer, Tab, Visit, done};
use maud::{Markup, html};
use raingauge_awarding::{SweepState, SweepStatus};
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use raingauge_ports::points::Head;
use serde_json::json;

const SWEEPS: [Column<'_>; 5] = [
    Column::Text("Began"),
    Column::Text("State"),
    Column::Number("Members"),
    Column::Number("Entries"),
    Column::Text("Took"),
];

const SEALS: [Column<'_>; 4] = [
    Column::Text("Book"),
    Column::Number("Entries"),
    Column::Text("Last one"),
    Column::Text("Hash over all of them"),
];

/// `GET /points/checks`
pub async fn page(visit: Visit) -> Answer {
    let sweeps = visit.desk.services().teller.sweeps();
    let heads = visit.desk.heads().await?;
    let body = html! {
        div.page-head { h1 { "Checks" } }
        @match visit.desk.trouble() {
            Some(trouble) => { (parts::notice(Mood::Bad, &html! { "Nothing is awarded at the moment: " (trouble) })) }
            None => { (parts::notice(Mood::Good, &html! { "The ledger takes entries. Each turn checks that its postings add up to zero, and that every balance is the sum of its lots." })) }
        }
        (sweep_card(&visit, &sweeps))
        (super::audit::card(&visit))
        (seal_card(&visit, &heads))
    };
    Ok(visit.show(Tab::Checks, "Checks", &body))
}

fn sweep_card(visit: &Visit, sweeps: &[SweepStatus]) -> Markup {
    html! {
        section.card aria-labelledby="sweeps-title" {
            div.card-head { h2 #sweeps-title { "Sweeps" } }
            p { "A sweep writes down what is due: points that expired or can be spent, things that were set aside for too long, tiers that ended. Balances are right without it, because every read settles the balance first." }
            @if sweeps.is_empty() {
                p.quiet { "Nothing was due since this process began." }
            } @else {
                (parts::table("sweeps-title", &SWEEPS, &html! { @for sweep in sweeps { (row(visit, sweep)) } }))
            }
            @if visit.may_administer() {
                form.row method="post" action="/points/checks/sweep" {
                    (parts::csrf(&visit.person))
                    button.button type="submit" { "Sweep now" }
                    span.quiet { "It also runs by itself." }
                }
            }
        }
    }
}

fn row(visit: &Visit, sweep: &SweepStatus) -> Markup {
    let (mood, state) = match (sweep.state, &sweep.error) {
        (SweepState::Finished, None) => ("good", "done".to_owned()),
        (SweepState::Finished, Some(why)) => ("bad", format!("ended early: {why}")),
        (SweepState::Waiting, Some(why)) => ("wait", format!("tried again soon: {why}")),
        (SweepState::Waiting, None) => ("wait", "waiting".to_owned()),
        (SweepState::Running, _) if sweep.ranges == 0 => ("wait", "running".to_owned()),
        (SweepState::Running, _) => {
            ("wait", format!("{} of {} ranges", sweep.ranges_done, sweep.ranges))
        }
    };
    html! {
        tr {
            th scope="row" { (parts::moment(sweep.id.div_euclid(1_000), &visit.zone())) }
            td { span.state data-state=(mood) { (state) } }
            td.number { (words::number(sweep.wallets.into())) }
            td.number { (words::number(sweep.entries.into())) }
            td {
                @match sweep.finished_ms {
                    Some(end_ms) => { (words::duration((end_ms - sweep.id) as f64 / 1e3)) }
                    None => "–",
                }
            }
        }
    }
}

/// What proves the ledger: the hashes over all entries, and what recomputes them.
fn seal_card(visit: &Visit, heads: &[Head]) -> Markup {
    html! {
        section.card aria-labelledby="seals-title" {
            h2 #seals-title { "Seals" }
            p { "Entries are chained by hashes and never change. Keep these, and nothing before them can change unnoticed." }
            (parts::table("seals-title", &SEALS, &html! {
                @for head in heads.iter().filter(|head| head.sequence > 0) {
                    tr {
                        th scope="row" { (head.book) }
                        td.number { (words::number(head.sequence.into())) }
                        td { (parts::moment(head.recorded_ms.div_euclid(1_000), &visit.zone())) }
                        td.wrap { code { (head.chain) } }
                    }
                }
            }))
            p { "With the server stopped, this recomputes every balance, sum and hash from the entries, and ends with the first difference if there is one:" }
            (parts::command("raingauge points verify --data-dir DIR"))
        }
    }
}

/// `POST /points/checks/sweep`
pub async fn sweep(visit: Visit) -> Answer {
    let status = visit.desk.services().teller.begin_sweep(None).map_err(faults::ledger)?;
    let details = json!({"sweep": status.id.to_string()});
    Ok(done("/points/checks?note=sweeping", "points.sweep", "points".to_owned(), details))
}
