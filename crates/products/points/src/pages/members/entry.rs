//! One entry of the ledger, and why it is what it is.

use crate::pages::kinds;
use crate::pages::view::ProgrammeView;
use crate::pages::visit::{Answer, Part, Tab, Visit, programme, programme_head};
use maud::{Markup, html};
use raingauge_points::{Account, Entry, Expiry, Explain, Kind};
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Column, Mood};

const FACTORS: [Column<'_>; 3] =
    [Column::Text("Factor"), Column::Text("Row"), Column::Number("Value")];
const POSTINGS: [Column<'_>; 2] = [Column::Text("Account"), Column::Number("Points")];

/// `GET /points/{programme}/entries/{book}/{sequence}`
pub async fn page(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let missing = || Fault::not_found("such entry");
    let book = visit.at("book").parse().map_err(|_| missing())?;
    let sequence = visit.at("sequence").parse().map_err(|_| missing())?;
    let entry = visit.desk.entry(&programme.name, book, sequence).await?;
    let entry = entry.ok_or_else(missing)?;

    let title = title(&programme, &entry);
    let actions = html! {
        (kinds::badge(entry.kind))
        @if let Some(member) = &entry.member {
            div.actions { a.button href=(programme.member_address(member)) { "Member " (member) } }
        }
    };
    let body = html! {
        (programme_head(&programme, Part::Members, &title, &actions))
        @if let Some(refusal) = &entry.refusal {
            (parts::notice(Mood::Bad, &html! { "Refused: " (refusal.detail) }))
        }
        @if let Some(explain) = entry.explain.as_deref().filter(|_| entry.kind == Kind::Earn) {
            (calculation(&programme, explain))
        } @else if let Some(words) = visit.desk.explain_entry(&entry) {
            p.lead { (words) "." }
        }
        div.columns {
            (facts(&programme, &entry))
            (postings(&programme, &entry))
        }
    };
    Ok(visit.show(Tab::Programmes, &title, &body))
}

/// The question that the page answers.
fn title(programme: &ProgrammeView, entry: &Entry) -> String {
    match entry.awarded().max(entry.points().abs()) {
        0 => format!("Entry: {}", kinds::words(entry.kind)),
        points => format!("Why {}?", programme.points(points.into())),
    }
}

/// The product that the points are, as it was computed.
pub fn calculation(programme: &ProgrammeView, explain: &Explain) -> Markup {
    html! {
        section.card aria-labelledby="calculation-title" {
            h2 #calculation-title { "How it was calculated" }
            p.lead { strong { (product(programme, explain)) } }
            @if !explain.factors.is_empty() {
                (parts::table("calculation-title", &FACTORS, &html! {
                    @for factor in &explain.factors {
                        tr {
                            th scope="row" { (factor.name) }
                            td { code { (factor.row) } }
                            td.number { "× " (factor.value) }
                        }
                    }
                }))
            }
            p.quiet {
                @if let Some(name) = &explain.rule_name {
                    "Rule " @if let Some(rule) = explain.rule { (rule) ", " } (name) ", of version " (explain.version) " of the programme."
                } @else {
                    "By version " (explain.version) " of the programme."
                }
            }
        }
    }
}

/// `15 × 2 × 1 × 2 × 3 = 180 points`
fn product(programme: &ProgrammeView, explain: &Explain) -> Markup {
    let points = programme.points(explain.points.into());
    let Some(amount) = &explain.amount else {
        return html! { (points) ", fixed" };
    };
    let exact = explain.exact.as_ref().map(ToString::to_string);
    let is_rounded =
        exact.as_deref().is_some_and(|exact| exact != plain(programme, explain.points));
    html! {
        (amount)
        @for factor in &explain.factors { " × " (factor.value) }
        " = "
        @if let Some(exact) = exact.filter(|_| is_rounded) { (exact) ", rounded to " }
        (points)
        @if let Some(limit) = explain.limit {
            span.quiet { ", because one event gives at most " (programme.amount(limit.into())) }
        }
    }
}

/// Points as an exact number is written: without groups and without zeros at the end.
fn plain(programme: &ProgrammeView, points: i64) -> String {
    let text = programme.amount(points.into()).replace(',', "");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn facts(programme: &ProgrammeView, entry: &Entry) -> Markup {
    let moment = |at_ms: i64| parts::zoned(at_ms.div_euclid(1_000), &programme.zone);
    html! {
        section.card aria-labelledby="facts-title" {
            h2 #facts-title { "About this entry" }
            dl.facts {
                @if let Some(member) = &entry.member {
                    dt { "Member" }
                    dd { a href=(programme.member_address(member)) { (member) } }
                }
                dt { "Happened" } dd { (moment(entry.occurred_ms)) }
                dt { "Recorded" } dd { (moment(entry.recorded_ms)) }
                dt { "Balance after it" } dd { (programme.points(entry.balance_after.into())) }
                @if let Some(tier) = &entry.tier_after { dt { "Tier after it" } dd { (tier) } }
                @if let Some(day) = entry.expires_after { dt { "Points expire on" } dd { (day) } }
                @if let Some(reason) = &entry.reason { dt { "Reason" } dd { (reason) } }
                @if let Some(reference) = &entry.reference { dt { "Reference" } dd { code { (reference) } } }
                @if let Some(key) = &entry.key {
                    dt { "Key" }
                    dd { code { (key.text) } @if !key.source.is_empty() { " from " (key.source) } }
                }
                dt { "Place in the ledger" } dd { "book " (entry.book) ", entry " (entry.sequence) }
            }
        }
    }
}

fn postings(programme: &ProgrammeView, entry: &Entry) -> Markup {
    html! {
        section.card aria-labelledby="postings-title" {
            h2 #postings-title { "Where the points went" }
            @if entry.postings.is_empty() {
                p.quiet { "No points moved." }
            } @else {
                (parts::table("postings-title", &POSTINGS, &html! {
                    @for posting in &entry.postings {
                        tr {
                            th scope="row" { (account(&posting.account)) }
                            td.number { (programme.change(posting.amount.into())) }
                        }
                    }
                }))
                p.quiet { "They add up to zero: points never appear or vanish." }
            }
        }
    }
}

/// An account in words.
fn account(account: &Account) -> String {
    match account {
        Account::Available(expiry) => format!("the member, {}", expiring(expiry)),
        Account::Pending { matures, .. } => format!("the member, from {matures} on"),
        Account::Held => "set aside".to_owned(),
        Account::Arrears => "owed by the member".to_owned(),
        Account::Issued(budget) => format!("issued from {budget}"),
        Account::Burned(reason, None) => format!("spent: {reason}"),
        Account::Burned(reason, Some(due)) => format!("spent: {reason}, due in {due}"),
        Account::Expired(None) => "expired".to_owned(),
        Account::Expired(Some(due)) => format!("expired in {due}"),
        Account::Adjusted => "adjustments".to_owned(),
        Account::Partner(partner, _) => format!("partner {partner}"),
        Account::Transit => "on the way to another member".to_owned(),
        Account::WrittenOff => "written off".to_owned(),
    }
}

fn expiring(expiry: &Expiry) -> String {
    match expiry {
        Expiry::On(day) => format!("until {day}"),
        Expiry::Rolling => "as long as there is activity".to_owned(),
        Expiry::Never => "for ever".to_owned(),
    }
}
