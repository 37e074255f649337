//! One campaign: what it does in plain words, what it did, its budgets, and its versions.

mod budgets;
mod results;
mod versions;

pub use versions::compare as versions;

use super::desk::Listed;
use super::list::state_badge;
use super::summary::summary;
use super::usage::{self, Usage};
use super::visit::{Answer, Tab, Visit, campaign_id};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_campaigns::campaign::{Campaign, State};
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Mood};
use raingauge_portal::html::words;
use raingauge_ports::campaigns::DecisionQuery;

/// Days whose decisions are added up.
const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;
/// Decisions that the page shows.
const SHOWN: usize = 10;

/// `GET /campaigns/{id}`
pub async fn page(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?;
    let listed = visit.desk.campaign(id).ok_or_else(|| Fault::not_found("such campaign"))?;
    let campaign = &listed.campaign;
    let zone = zone_of(campaign);

    let now_ms = visit.now_ms();
    let query = DecisionQuery {
        campaign: Some(id),
        from_ms: now_ms - DAYS * DAY_MS,
        ..DecisionQuery::default()
    };
    let gathered =
        usage::gather(visit.desk.reader(), query).await.map_err(super::faults::ledger)?;
    let usage = Usage::of(&gathered.decisions, &zone);
    let newest = &gathered.decisions[..gathered.decisions.len().min(SHOWN)];
    let versions = visit.desk.versions("campaign", &id.to_string()).await?;

    let body = html! {
        (head(&visit, &listed))
        (notices(&visit, &listed))
        div.columns {
            section.card aria-labelledby="summary-title" {
                h2 #summary-title { "What it does" }
                (summary(campaign))
                (times(campaign, &zone))
            }
            (budgets::card(&visit, campaign, &usage, &zone).await?)
        }
        (results::by_day(&usage, campaign, now_ms, &zone))
        (results::funnel(&usage, campaign, gathered.is_cut))
        @if !gathered.decisions.is_empty() {
            section.card aria-labelledby="newest-title" {
                div.card-head { h2 #newest-title { "Newest decisions" } div.actions { a href={ "/campaigns/decisions?campaign=" (id) } { "All decisions" } } }
                (super::decisions::table("newest-title", &visit, newest, &zone))
            }
        }
        (texts(campaign))
        (versions::card(&visit, campaign, &versions))
    };
    Ok(visit.show(Tab::Campaigns, &campaign.name, &body))
}

/// The zone of a campaign's days; UTC where it differs by subject.
pub fn zone_of(campaign: &Campaign) -> TimeZone {
    TimeZone::get(&campaign.zone).unwrap_or(TimeZone::UTC)
}

fn head(visit: &Visit, listed: &Listed) -> Markup {
    let campaign = &listed.campaign;
    let place = |rest: &str| format!("/campaigns/{}/{rest}", campaign.id);
    let to = |state: &str| format!("/campaigns/{}/state?to={state}", campaign.id);
    html! {
        div.counter-head {
            div.page-head {
                h1 { (campaign.name) }
                (state_badge(listed, visit.now_s()))
                div.actions {
                    a.button href={ "/campaigns/why?campaign=" (campaign.id) } { "Why not?" }
                    @if visit.may_edit() {
                        a.button.primary href=(place("edit")) { "Edit" }
                        @match campaign.state {
                            State::Active => { a.button.danger href=(to("paused")) { "Pause" } }
                            State::Shadow => { a.button href=(to("active")) { "Activate" } a.button href=(to("paused")) { "Pause" } }
                            State::Paused => { a.button href=(to("active")) { "Resume" } }
                            State::Draft => { a.button href=(to("shadow")) { "Run in shadow" } a.button href=(to("active")) { "Activate" } }
                            State::Archived => {}
                        }
                        @if campaign.state != State::Archived { a.button href=(to("archived")) { "Archive" } }
                        a.button href={ "/campaigns/new?copy=" (campaign.id) } { "Copy" }
                    }
                }
            }
            p.quiet {
                "Number "
                (campaign.id)
                ", version "
                (listed.version)
                @if !campaign.owner.is_empty() { ", owned by " (campaign.owner) }
            }
            @if !campaign.description.is_empty() { p.description { (campaign.description) } }
        }
    }
}

fn notices(visit: &Visit, listed: &Listed) -> Markup {
    html! {
        @if let Some(warming) = visit.desk.warming(listed.campaign.id) {
            (parts::notice(Mood::Wait, &html! { "Its counts are being filled from the log, and it decides nothing until then: " (warming) "." }))
        }
        @match listed.campaign.state {
            State::Paused => { (parts::notice(Mood::Wait, &html! { "Paused: it counts, and decides nothing. What was not delivered yet is held until it is resumed. What happens now is not made up for later." })) }
            State::Shadow => { (parts::notice(Mood::Good, &html! { "In shadow: it decides as if it were active, with budgets of its own, and delivers nothing." })) }
            State::Active | State::Draft | State::Archived => {}
        }
    }
}

fn times(campaign: &Campaign, zone: &TimeZone) -> Markup {
    html! {
        @if campaign.active_from.is_some() || campaign.active_until.is_some() {
            p {
                "Active"
                @if let Some(from) = campaign.active_from { " from " (parts::moment(from, zone)) }
                @if let Some(until) = campaign.active_until { " until " (parts::moment(until, zone)) }
                "."
            }
        }
        p.quiet { "Days and hours are those of " (campaign.zone) "." }
    }
}

/// The messages of the campaign, as they are written.
fn texts(campaign: &Campaign) -> Markup {
    if campaign.templates.is_empty() {
        return html! {};
    }
    html! {
        section.card aria-labelledby="texts-title" {
            h2 #texts-title { "Messages" }
            dl.facts {
                @for (name, by_locale) in &campaign.templates {
                    @for (locale, text) in by_locale {
                        dt { (name) " " span.quiet { (locale) } }
                        dd { (words::cut(text, 1_000)) }
                    }
                }
            }
        }
    }
}
