//! Decisions: what was granted and refused, to whom, and why.

use super::reasons;
use super::visit::{Answer, Tab, Visit, done, encoded};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_portal::Fields;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use raingauge_ports::campaigns::{Decision, DecisionPlace, DecisionQuery};
use serde_json::{Value as Json, json};

/// Rows of a page.
const ROWS_MAX: usize = 100;

const COLUMNS: [Column<'_>; 6] = [
    Column::Text("Decided"),
    Column::Text("Campaign and action"),
    Column::Text("Subject"),
    Column::Text("Outcome"),
    Column::Number("Cost"),
    Column::Text("Event"),
];

/// Outcomes that a form offers.
const OUTCOMES: [&str; 12] = [
    "granted",
    "delayed",
    "limit_reached",
    "cap_reached",
    "budget_exhausted",
    "holdout",
    "control",
    "group_lost",
    "lookup_failed",
    "cancelled",
    "recheck_failed",
    "shadow",
];

/// `GET /campaigns/decisions`
pub async fn list(visit: Visit) -> Answer {
    let query = asked(&visit.query);
    let page = visit.desk.reader().decisions(query).await.map_err(super::faults::ledger)?;
    let zone = visit.zone();
    let body = html! {
        div.page-head { h1 { "Decisions" } }
        p.lead { "What campaigns granted, and what their limits, budgets and experiments refused, newest first. An event that no rule wanted leaves none: " a href="/campaigns/why" { "Why not" } " explains it." }
        (form(&visit))
        @if page.decisions.is_empty() {
            (parts::empty("No such decisions", &html! { "Nothing was decided that matches." }))
        } @else {
            section.card.table-card aria-labelledby="decisions-title" {
                h2.visually-hidden #decisions-title { "Decisions" }
                (table("decisions-title", &visit, &page.decisions, &zone))
            }
        }
        @if visit.query.text("outcome") == "budget_exhausted" && visit.may_edit() {
            form.row method="post" action="/campaigns/decisions/redrive" {
                (parts::csrf(&visit.person))
                input type="hidden" name="campaign" value=(visit.query.text("campaign"));
                button.button type="submit" { "Decide again" }
                span.quiet { "Grants what the budgets cover by now, the oldest first, under the same ids." }
            }
        }
        @if let Some(subject) = visit.query.given("subject").filter(|_| visit.may_administer()) {
            p.quiet {
                a href=(super::subjects::address(subject)) { "Erase this subject" }
                ": campaigns forget everything about it."
            }
        }
        @if let Some(next) = page.next {
            nav.actions aria-label="Pages" { a.button href=(next_page(&visit.query, next)) { "Older" } }
        }
    };
    Ok(visit.show(Tab::Decisions, "Decisions", &body))
}

/// `POST /campaigns/decisions/redrive`
pub async fn redrive(visit: Visit) -> Answer {
    let campaign = visit.form.given("campaign").and_then(|id| id.parse().ok());
    let granted = visit.desk.redrive_refused(campaign).await?;
    let note = if granted > 0 { "granted" } else { "still-refused" };
    let of = campaign.map_or_else(|| "all campaigns".to_owned(), |id| format!("campaign {id}"));
    let address = format!("/campaigns/decisions?outcome=budget_exhausted&note={note}");
    Ok(done(&address, "decision.redrive", of, json!({"granted": granted})))
}

fn asked(fields: &Fields) -> DecisionQuery {
    let after = fields.given("after").and_then(|after| {
        let (decided_ms, action) = after.split_once('_')?;
        Some(DecisionPlace { decided_ms: decided_ms.parse().ok()?, action: action.parse().ok()? })
    });
    DecisionQuery {
        campaign: fields.given("campaign").and_then(|id| id.parse().ok()),
        subject: fields.given("subject").map(str::to_owned),
        outcome: fields.given("outcome").map(str::to_owned),
        after,
        len_max: ROWS_MAX,
        ..DecisionQuery::default()
    }
}

fn next_page(fields: &Fields, next: DecisionPlace) -> String {
    let kept = ["campaign", "subject", "outcome", "zone"];
    let kept: String = kept
        .iter()
        .filter_map(|name| Some(format!("{name}={}&", encoded(fields.given(name)?))))
        .collect();
    format!("/campaigns/decisions?{kept}after={}_{}", next.decided_ms, next.action)
}

fn form(visit: &Visit) -> Markup {
    let fields = &visit.query;
    let chosen = fields.text("campaign");
    html! {
        form.row.filters method="get" action="/campaigns/decisions" {
            div.field {
                label for="campaign" { "Campaign" }
                select id="campaign" name="campaign" {
                    option value="" { "any" }
                    @for listed in visit.desk.campaigns() {
                        @let id = listed.campaign.id.to_string();
                        option value=(id) selected[chosen == id] {
                            (words::cut(&listed.campaign.name, 40))
                        }
                    }
                }
            }
            (parts::Field { name: "subject", label: "Subject", hint: "", problem: None }.text(fields.text("subject")))
            div.field {
                label for="outcome" { "Outcome" }
                select id="outcome" name="outcome" {
                    option value="" { "any" }
                    @for outcome in OUTCOMES {
                        option value=(outcome) selected[fields.text("outcome") == outcome] {
                            (outcome.replace('_', " "))
                        }
                    }
                }
            }
            (parts::zone_field(&visit.zone()))
            button.button type="submit" { "Show" }
        }
    }
}

/// A table of decisions. Subjects are values of events, which only editors see.
pub fn table(title_id: &str, visit: &Visit, decisions: &[Decision], zone: &TimeZone) -> Markup {
    let shows_subjects = visit.person.may(Role::Editor);
    parts::table(
        title_id,
        &COLUMNS,
        &html! { @for decision in decisions { (row(visit, decision, zone, shows_subjects)) } },
    )
}

fn row(visit: &Visit, decision: &Decision, zone: &TimeZone, shows_subjects: bool) -> Markup {
    let Decision { campaign, step, name, subject, source, event, .. } = decision;
    let named = visit.desk.name_of(*campaign);
    let why = format!(
        "/campaigns/why?campaign={campaign}&subject={}&source={}&event={}",
        encoded(subject),
        encoded(source),
        encoded(event)
    );
    html! {
        tr {
            td { (parts::moment(decision.decided_ms.div_euclid(1_000), zone)) }
            td.wrap {
                a href={ "/campaigns/" (campaign) } { (named) } " "
                @if decision.is_granted {
                    a href={ "/campaigns/actions/" (decision.action) } { (step) "/" (name) }
                } @else {
                    (step)
                    "/"
                    (name)
                }
                @if let Some(variant) = &decision.variant { " " span.quiet { "variant " (variant) } }
            }
            td.wrap {
                @if shows_subjects { code { (words::cut(subject, 60)) } } @else { span.quiet { "hidden" } }
            }
            td { (reasons::badge(&decision.outcome)) }
            td.number {
                @if let Some(cost) = &decision.cost { (words::number(cost.amount.into())) }
            }
            td.wrap {
                @if shows_subjects {
                    details {
                        summary { (words::cut(&format!("{source}/{event}"), 40)) }
                        (evidence(&decision.evidence))
                        p { a href=(why) { "The whole explanation" } }
                    }
                }
            }
        }
    }
}

/// The conditions that a decision is based on.
pub fn evidence(evidence: &str) -> Markup {
    let json: Json = serde_json::from_str(evidence).unwrap_or_default();
    trace(&json["trace"])
}

/// The conditions that were tested, in their order, each with what it found.
pub fn trace(trace: &Json) -> Markup {
    let lines = trace.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if !lines.is_empty() {
            ol.plain.trace { @for line in lines { li { (traced(line)) } } }
        }
    }
}

fn traced(line: &Json) -> Markup {
    let holds = line["holds"].as_bool();
    let (mood, word) = match holds {
        Some(true) => ("good", "yes"),
        Some(false) => ("bad", "no"),
        None => ("wait", "unknown"),
    };
    html! {
        span.state data-state=(mood) { (word) }
        " " code { (line["leaf"].as_str().unwrap_or_default()) }
        @if let (Some(before), Some(after)) = (line["before"].as_i64(), line["after"].as_i64()) {
            span.quiet { " it went from " (before) " to " (after) }
        } @else if let Some(is) = line.get("is") {
            span.quiet { " it is " (super::summary::rule::value(is)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let next =
            DecisionPlace { decided_ms: 5, action: raingauge_ports::campaigns::ActionId([7; 16]) };
        let fields = Fields::parse(b"campaign=7&subject=a%26b&outcome=&note=saved");
        let address = next_page(&fields, next);
        let (path, query) = address.split_once('?').unwrap();
        assert_eq!(path, "/campaigns/decisions");

        let query = asked(&Fields::parse(query.as_bytes()));
        assert_eq!(query.after, Some(next));
        assert_eq!((query.campaign, query.subject.as_deref()), (Some(7), Some("a&b")));
        assert_eq!(asked(&Fields::parse(b"after=x_y&campaign=z")).after, None);
    }

    #[test]
    fn a_trace_says_what_each_condition_found() {
        let lines = json!([
            {"leaf": "rule: var.country eq <sg>", "is": "<my>", "holds": false},
            {"leaf": "nudge: count.orders reaches 2", "before": 1, "after": 2, "holds": true}]);
        let markup = trace(&lines).into_string();
        assert!(
            markup.contains("it is &lt;my&gt;") && markup.contains("it went from 1 to 2"),
            "{markup}"
        );
        assert_eq!(trace(&Json::Null).into_string(), "");
    }
}
