//! Queues, and their dead letters: sent again, or discarded.

use super::visit::{Answer, Tab, Visit, done};
use crate::queues::Change;
use maud::{Markup, html};
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, ButtonForm, Column, Mood};
use raingauge_portal::html::words;
use raingauge_ports::points::{Depth, LetterSelection, PeekedLetter, QueueName, Shelf};
use serde_json::{Value as Json, json};

/// Letters that a page shows.
const SHOWN: usize = 100;

const QUEUES: [Column<'_>; 6] = [
    Column::Text("Queue"),
    Column::Number("Waiting"),
    Column::Number("Dead"),
    Column::Number("Being worked on"),
    Column::Text("Oldest"),
    Column::Text("Carries"),
];
const LETTERS: [Column<'_>; 5] = [
    Column::Text("Letter"),
    Column::Text("Why"),
    Column::Number("Tries"),
    Column::Text("Since"),
    Column::Silent("What to do"),
];

/// What a queue carries, in a sentence.
const fn purpose(queue: QueueName) -> &'static str {
    match queue {
        QueueName::Award => "awards that were accepted before they were made",
        QueueName::Retry => "events that could not be priced yet",
        QueueName::Expiry => "ranges of members whose points are due",
        QueueName::Notify => "notifications that were not taken",
    }
}

/// `GET /points/queues`
pub async fn list(visit: Visit) -> Answer {
    let mut depths = Vec::with_capacity(QueueName::ALL.len());
    for queue in QueueName::ALL {
        depths.push((queue, visit.desk.depth(queue).await?));
    }
    let dead: u64 = depths.iter().map(|(_, depth)| depth.dead).sum();
    let now_ms = visit.now_ms();

    let body = html! {
        div.page-head { h1 { "Queues" } }
        @if dead == 0 {
            (parts::notice(Mood::Good, &html! { "There are no dead letters: nothing was given up." }))
        } @else {
            (parts::notice(Mood::Bad, &html! { (words::count_of(dead.into(), "letter was", "letters were")) " given up. Look at the reason, put it right, and send them again: the keys make sure that nothing is awarded twice." }))
        }
        section.card.table-card aria-labelledby="queues-title" {
            h2.visually-hidden #queues-title { "Queues" }
            (parts::table("queues-title", &QUEUES, &html! {
                @for (queue, depth) in &depths { (row(*queue, depth, now_ms)) }
            }))
        }
    };
    Ok(visit.show(Tab::Queues, "Queues", &body))
}

fn row(queue: QueueName, depth: &Depth, now_ms: i64) -> Markup {
    let name = queue.name();
    html! {
        tr {
            th scope="row" { a href={ "/points/queues/" (name) } { (name) } }
            td.number { (words::number(depth.waiting.into())) }
            td.number {
                @if depth.dead > 0 {
                    a href={ "/points/queues/" (Shelf::Dead.name_of(queue)) } {
                        strong { (words::number(depth.dead.into())) }
                    }
                } @else {
                    "0"
                }
            }
            td.number { (words::number(depth.in_flight.into())) }
            td {
                @match depth.oldest_ms {
                    Some(oldest_ms) => { (parts::ago((now_ms - oldest_ms) / 1_000)) }
                    None => "–",
                }
            }
            td.wrap { (purpose(queue)) }
        }
    }
}

fn shelf(visit: &Visit) -> Result<(QueueName, Shelf), Fault> {
    QueueName::shelf_from_name(visit.at("queue")).ok_or_else(|| Fault::not_found("such queue"))
}

/// `GET /points/queues/{queue}`
pub async fn one(visit: Visit) -> Answer {
    let (queue, shelf) = shelf(&visit)?;
    let letters = visit.desk.letters(queue, shelf, SHOWN).await?;
    let title = match shelf {
        Shelf::Waiting => format!("Queue {}", queue.name()),
        Shelf::Dead => format!("Dead letters of {}", queue.name()),
    };
    let dead = Shelf::Dead.name_of(queue);

    let body = html! {
        div.page-head {
            h1 { (title) }
            div.actions {
                @if shelf == Shelf::Dead {
                    a.button href={ "/points/queues/" (queue.name()) } { "What waits" }
                } @else {
                    a.button href={ "/points/queues/" (dead) } { "Dead letters" }
                }
            }
        }
        p.lead { "It carries " (purpose(queue)) "." }
        @if letters.is_empty() {
            (parts::empty("Nothing here", &html! {
                @if shelf == Shelf::Dead { "Nothing was given up. That is how it should be." }
                @else { "Nothing waits. What arrives is worked on at once." }
            }))
        } @else {
            @if shelf == Shelf::Dead && visit.may_administer() { (all_of_them(&visit, queue)) }
            section.card.table-card aria-labelledby="letters-title" {
                h2.visually-hidden #letters-title { "Letters" }
                (parts::table("letters-title", &LETTERS, &html! {
                    @for letter in &letters { (letter_row(&visit, queue, letter)) }
                }))
            }
            @if letters.len() == SHOWN { p.quiet { "The first " (SHOWN) " are shown." } }
        }
    };
    Ok(visit.show(Tab::Queues, &title, &body))
}

/// Buttons for all dead letters, also those that are not shown.
fn all_of_them(visit: &Visit, queue: QueueName) -> Markup {
    let dead = Shelf::Dead.name_of(queue);
    html! {
        section.card aria-labelledby="all-title" {
            h2 #all-title { "All of them" }
            form.row method="post" action={ "/points/queues/" (dead) "/redrive" } {
                (parts::csrf(&visit.person))
                button.button.primary type="submit" { "Send all again" }
                button.button.danger type="submit" formaction={ "/points/queues/" (dead) "/discard" } { "Discard all" }
                span.quiet { "What is discarded is never awarded." }
            }
        }
    }
}

fn letter_row(visit: &Visit, queue: QueueName, peeked: &PeekedLetter) -> Markup {
    let PeekedLetter { letter, receives, sent_ms, death, .. } = peeked;
    let zone = visit.zone();
    let why = death.as_ref().map_or(letter.first_error.as_deref(), |death| Some(&death.last_error));
    let since_ms = death.as_ref().map_or(*sent_ms, |death| death.died_ms);
    let tries = death.as_ref().map_or(*receives, |death| death.attempts);
    html! {
        tr {
            th.wrap scope="row" {
                details {
                    summary { code { (words::cut(&letter.id, 60)) } }
                    pre.data { (pretty(&letter.body)) }
                }
            }
            td.wrap {
                @if let Some(death) = death { span.state data-state="bad" { (death.reason) } " " }
                (why.unwrap_or("–"))
            }
            td.number { (tries) }
            td { (parts::moment(since_ms.div_euclid(1_000), &zone)) }
            td {
                @if death.is_some() && visit.may_administer() {
                    (one_of_them(visit, queue, &letter.id))
                }
            }
        }
    }
}

fn one_of_them(visit: &Visit, queue: QueueName, id: &str) -> Markup {
    let dead = Shelf::Dead.name_of(queue);
    let fields = [("id", id)];
    let about = |what: &str| format!("{what}: {id}");
    let redrive = format!("/points/queues/{dead}/redrive");
    let discard = format!("/points/queues/{dead}/discard");
    let button = |address, label, class| {
        let about = about(label);
        let form = ButtonForm::new(address, label).class(class).about(&about).with(&fields);
        form.markup(&visit.person)
    };
    html! {
        div.actions {
            (button(&redrive, "Send again", "small"))
            (button(&discard, "Discard", "small danger"))
        }
    }
}

/// A body as people read it.
fn pretty(body: &str) -> String {
    let json: Option<Json> = serde_json::from_str(body).ok();
    let pretty = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
    words::cut(&pretty.unwrap_or_else(|| body.to_owned()), 4_000)
}

/// The letters that a form is about: one, or all.
fn selection(visit: &Visit) -> LetterSelection {
    match visit.form.given("id") {
        Some(id) => LetterSelection::Ids(vec![id.to_owned()]),
        None => LetterSelection::All,
    }
}

/// `POST /points/queues/{queue}/redrive`
pub async fn redrive(visit: Visit) -> Answer {
    let (queue, _) = shelf(&visit)?;
    let count = visit.desk.change_letters(queue, &selection(&visit), Change::Redrive).await?;
    Ok(changed(queue, "queue.redrive", count, "redriven"))
}

/// `POST /points/queues/{queue}/discard`
pub async fn discard(visit: Visit) -> Answer {
    let (queue, _) = shelf(&visit)?;
    let count = visit.desk.change_letters(queue, &selection(&visit), Change::Discard).await?;
    Ok(changed(queue, "queue.discard", count, "discarded"))
}

fn changed(
    queue: QueueName,
    verb: &'static str,
    count: usize,
    note: &str,
) -> axum::response::Response {
    let note = if count == 0 { "nothing" } else { note };
    let address = format!("/points/queues/{}?note={note}", Shelf::Dead.name_of(queue));
    done(&address, verb, format!("queue {}", queue.name()), json!({"letters": count}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_laid_out() {
        assert_eq!(pretty("{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(pretty("no json"), "no json");
    }

    #[test]
    fn a_queue_with_dead_letters_leads_to_them() {
        let depth = Depth { waiting: 1_200, dead: 3, oldest_ms: Some(0), ..Depth::default() };
        let shown = row(QueueName::Retry, &depth, 60_000).into_string();
        assert!(shown.contains("1,200") && shown.contains("/points/queues/retry.dead"), "{shown}");
        assert!(shown.contains("1 min ago"), "{shown}");
    }
}
