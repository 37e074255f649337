//! Actions on their way to destinations, and dead letters: sent again, or cancelled.

use super::reasons;
use super::visit::{Answer, Tab, Visit, done, encoded};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_portal::html::parts::{self, Column, Mood};
use raingauge_portal::html::words;
use raingauge_portal::{Fault, Fields};
use raingauge_ports::campaigns::{
    ActionId, DeliveryPlace, DeliveryQuery, DeliveryRecord, Selection, Status,
};
use serde_json::json;

/// Rows of a page.
const ROWS_MAX: usize = 100;

const COLUMNS: [Column<'_>; 7] = [
    Column::Text("Action"),
    Column::Text("Destination"),
    Column::Text("Subject"),
    Column::Text("Status"),
    Column::Text("When"),
    Column::Number("Tries"),
    Column::Text("Last answer"),
];

/// `GET /campaigns/actions`
pub async fn list(visit: Visit) -> Answer {
    let query = asked(&visit.query);
    let status = query.status;
    let page = visit.desk.outbox().list(query).await.map_err(super::faults::ledger)?;
    let zone = visit.zone();
    let body = html! {
        div.page-head { h1 { "Actions" } }
        (form(&visit, status))
        @if page.records.is_empty() {
            (parts::empty("None", &html! { "No action has the status " (status.name()) "." @if status == Status::Dead { " That is how it should be." } }))
        } @else {
            @if visit.may_edit() && Status::OPEN.contains(&status) {
                (change_all(&visit, status))
            }
            section.card.table-card aria-labelledby="actions-title" {
                h2.visually-hidden #actions-title { "Actions" }
                (parts::table("actions-title", &COLUMNS, &html! {
                    @for record in &page.records { (row(&visit, record, &zone)) }
                }))
            }
        }
        @if let Some(next) = &page.next {
            nav.actions aria-label="Pages" { a.button href=(next_page(&visit.query, next)) { "Further" } }
        }
    };
    Ok(visit.show(Tab::Actions, "Actions", &body))
}

fn asked(fields: &Fields) -> DeliveryQuery {
    let after = fields.given("after").and_then(|after| {
        let (at_ms, rest) = after.split_once('_')?;
        let (action, destination) = rest.split_at_checked(36)?;
        Some(DeliveryPlace {
            destination: destination.strip_prefix('_')?.to_owned(),
            at_ms: at_ms.parse().ok()?,
            action: action.parse().ok()?,
        })
    });
    DeliveryQuery {
        status: Status::from_name(fields.text("status")).unwrap_or(Status::Pending),
        destination: fields.given("destination").map(str::to_owned),
        campaign: fields.given("campaign").and_then(|id| id.parse().ok()),
        after,
        len_max: ROWS_MAX,
    }
}

fn next_page(fields: &Fields, next: &DeliveryPlace) -> String {
    let kept = ["status", "destination", "campaign", "zone"];
    let kept: String = kept
        .iter()
        .filter_map(|name| Some(format!("{name}={}&", encoded(fields.given(name)?))))
        .collect();
    let DeliveryPlace { destination, at_ms, action } = next;
    format!("/campaigns/actions?{kept}after={at_ms}_{action}_{}", encoded(destination))
}

fn form(visit: &Visit, status: Status) -> Markup {
    let chosen = visit.query.text("destination");
    html! {
        form.row.filters method="get" action="/campaigns/actions" {
            div.field {
                label for="status" { "Status" }
                select id="status" name="status" {
                    @for one in Status::ALL {
                        option value=(one.name()) selected[one == status] { (one.name()) }
                    }
                }
            }
            div.field {
                label for="destination" { "Destination" }
                select id="destination" name="destination" {
                    option value="" { "any" }
                    @for document in visit.desk.documents("destination") {
                        option value=(document.id) selected[chosen == document.id] { (document.id) }
                    }
                }
            }
            (parts::Field { name: "campaign", label: "Campaign (its number)", hint: "", problem: None }.text(visit.query.text("campaign")))
            button.button type="submit" { "Show" }
        }
    }
}

/// Buttons for all actions of the list, also those on further pages.
fn change_all(visit: &Visit, status: Status) -> Markup {
    let hidden =
        |name: &str| html! { input type="hidden" name=(name) value=(visit.query.text(name)); };
    let bound =
        visit.query.given("destination").is_some() || visit.query.given("campaign").is_some();
    html! {
        section.card aria-labelledby="all-title" {
            h2 #all-title { "All of them" }
            @if status == Status::Dead {
                p { "Every try failed. When the destination works again, send them again: their ids stay the same, so nothing is carried out twice." }
            }
            form.row method="post" action="/campaigns/actions/redrive" {
                (parts::csrf(&visit.person)) (hidden("destination")) (hidden("campaign"))
                @if status == Status::Dead { button.button.primary type="submit" { "Send all again" } }
                button.button.danger type="submit" formaction="/campaigns/actions/cancel" { "Cancel all" }
                span.quiet { @if bound { "Of this destination and campaign, also on further pages." } @else { "Of every destination and campaign. Cancelling includes pending, held and dead ones." } }
            }
        }
    }
}

fn row(visit: &Visit, record: &DeliveryRecord, zone: &TimeZone) -> Markup {
    let delivery = &record.delivery;
    let shows_subjects = visit.person.may(Role::Editor);
    html! {
        tr {
            th.wrap scope="row" {
                a href={ "/campaigns/actions/" (delivery.action) } {
                    code { (words::cut(&delivery.action.to_string(), 16)) }
                }
                " of " a href={ "/campaigns/" (delivery.campaign) } { (visit.desk.name_of(delivery.campaign)) }
            }
            td {
                a href={ "/campaigns/destinations/" (words::step_of_address(&delivery.destination)) } {
                    (delivery.destination)
                }
            }
            td.wrap {
                @if shows_subjects {
                    code { (words::cut(&delivery.subject, 60)) }
                } @else {
                    span.quiet { "hidden" }
                }
            }
            td { (reasons::status(record.status)) }
            td { (parts::moment(record.at_ms.div_euclid(1_000), zone)) }
            td.number { (record.tries) }
            td.wrap { (record.note) }
        }
    }
}

/// `GET /campaigns/actions/{action}`
pub async fn one(visit: Visit) -> Answer {
    let action = action_id(&visit)?;
    let record = visit.desk.outbox().get(action).await.map_err(super::faults::ledger)?;
    let decision = visit.desk.reader().granted(action).await.map_err(super::faults::ledger)?;
    if record.is_none() && decision.is_none() {
        return Err(Fault::not_found("such action"));
    }

    let zone = visit.zone();
    let shows_subjects = visit.person.may(Role::Editor);
    let body = html! {
        div.page-head {
            h1 { "Action" }
            @if let Some(record) = &record { (reasons::status(record.status)) }
        }
        @if let Some(decision) = &decision {
            section.card aria-labelledby="decision-title" {
                h2 #decision-title { "Decided" }
                dl.facts {
                    dt { "Id" } dd { code { (action) } }
                    dt { "Campaign" }
                    dd {
                        a href={ "/campaigns/" (decision.campaign) } { (visit.desk.name_of(decision.campaign)) }
                        ", version "
                        (decision.version)
                    }
                    dt { "Step and action" } dd { (decision.step) "/" (decision.name) }
                    @if shows_subjects {
                        dt { "Subject" } dd { code { (decision.subject) } }
                        dt { "Event" }
                        dd {
                            code { (decision.source) "/" (decision.event) }
                            ", "
                            (parts::moment(decision.event_ms.div_euclid(1_000), &zone))
                        }
                    }
                    dt { "Decided" } dd { (parts::moment(decision.decided_ms.div_euclid(1_000), &zone)) }
                    dt { "Outcome" } dd { (reasons::explained(&decision.outcome)) }
                    @if let Some(cost) = &decision.cost {
                        dt { "Cost" }
                        dd { (words::number(cost.amount.into())) " of the budget " (cost.budget.name) }
                    }
                }
                @if shows_subjects { h3 { "Because" } (super::decisions::evidence(&decision.evidence)) }
            }
        }
        @if let Some(record) = &record { (delivery(&visit, record, &zone, shows_subjects)) } @else {
            (parts::notice(Mood::Wait, &html! { "It is not due yet, or its delivery was too long ago and is forgotten." }))
        }
    };
    Ok(visit.show(Tab::Actions, "Action", &body))
}

fn delivery(visit: &Visit, record: &DeliveryRecord, zone: &TimeZone, shows_body: bool) -> Markup {
    let delivery = &record.delivery;
    let post = |verb: &str| format!("/campaigns/actions/{verb}");
    html! {
        section.card aria-labelledby="delivery-title" {
            h2 #delivery-title { "Delivery" }
            dl.facts {
                dt { "To" } dd { (delivery.destination) }
                dt { "Due" } dd { (parts::moment(delivery.due_ms.div_euclid(1_000), zone)) }
                dt { "Status" }
                dd {
                    (reasons::explained(record.status.name()))
                    ", "
                    (parts::moment(record.at_ms.div_euclid(1_000), zone))
                }
                dt { "Tries" } dd { (record.tries) }
                @if !record.note.is_empty() { dt { "Last answer" } dd { (record.note) } }
            }
            @if shows_body { h3 { "What is sent" } pre.data { (String::from_utf8_lossy(&delivery.body)) } }
            @if visit.may_edit() && Status::OPEN.contains(&record.status) {
                form.row method="post" action=(post("redrive")) {
                    (parts::csrf(&visit.person))
                    input type="hidden" name="action" value=(delivery.action.to_string());
                    @if record.status == Status::Dead { button.button.primary type="submit" { "Send again" } }
                    button.button.danger type="submit" formaction=(post("cancel")) { "Cancel" }
                }
            }
        }
    }
}

fn action_id(visit: &Visit) -> Result<ActionId, Fault> {
    visit.at("action").parse().map_err(|_| Fault::not_found("such action"))
}

/// What a form selects: one action, or all of a destination and a campaign.
fn selection(form: &Fields) -> Result<Selection, Fault> {
    let wrong = |_| Fault::bad_request("This names no action", "Go back, and load the page again.");
    match form.given("action") {
        Some(action) => Ok(Selection::One(action.parse().map_err(wrong)?)),
        None => Ok(Selection::All {
            destination: form.given("destination").map(str::to_owned),
            campaign: form.given("campaign").and_then(|id| id.parse().ok()),
        }),
    }
}

/// `POST /campaigns/actions/redrive`
pub async fn redrive(visit: Visit) -> Answer {
    change(&visit, true).await
}

/// `POST /campaigns/actions/cancel`
pub async fn cancel(visit: Visit) -> Answer {
    change(&visit, false).await
}

async fn change(visit: &Visit, again: bool) -> Answer {
    let selection = selection(&visit.form)?;
    let now_ms = visit.now_ms();
    let outbox = visit.desk.outbox();

    // A call changes a bounded number.
    let mut changed = 0;
    loop {
        let some = if again {
            outbox.redrive(selection.clone(), now_ms).await
        } else {
            outbox.cancel(selection.clone(), now_ms).await
        };
        match some.map_err(super::faults::ledger)? {
            0 => break,
            some => changed += some,
        }
    }

    let (verb, note) =
        if again { ("action.redrive", "redriven") } else { ("action.cancel", "cancelled") };
    let note = if changed == 0 { "nothing" } else { note };
    let (object, address) = match &selection {
        Selection::One(action) => {
            (action.to_string(), format!("/campaigns/actions/{action}?note={note}"))
        }
        Selection::All { destination, campaign } => {
            let destination = destination.as_deref().unwrap_or_default();
            let campaign = campaign.map(|id| id.to_string()).unwrap_or_default();
            let query =
                format!("destination={}&campaign={campaign}&note={note}", encoded(destination));
            ("actions".to_owned(), format!("/campaigns/actions?{query}"))
        }
    };
    let details = json!({"changed": changed, "selection": visit.form.text("destination")});
    Ok(done(&address, verb, object, details))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let next =
            DeliveryPlace { destination: "a_b&c".to_owned(), at_ms: 5, action: ActionId([7; 16]) };
        let address = next_page(&Fields::parse(b"status=dead&destination=a_b%26c"), &next);
        let (_, query) = address.split_once('?').unwrap();
        let query = asked(&Fields::parse(query.as_bytes()));
        assert_eq!(query.after, Some(next));
        assert_eq!((query.status, query.destination.as_deref()), (Status::Dead, Some("a_b&c")));
        assert_eq!(asked(&Fields::parse(b"after=5_act&status=none")).after, None);
    }

    #[test]
    fn a_form_names_one_action_or_many() {
        let one = format!("action={}", ActionId([7; 16]));
        assert_eq!(
            selection(&Fields::parse(one.as_bytes())).unwrap(),
            Selection::One(ActionId([7; 16]))
        );
        assert!(selection(&Fields::parse(b"action=act_1")).is_err());
        let all = Selection::All { destination: Some("d".to_owned()), campaign: None };
        assert_eq!(selection(&Fields::parse(b"destination=d&campaign=")).unwrap(), all);
    }
}
