//! The list of campaigns: state, what they did in the last day, and how much of a budget is used.

use super::desk::{Desk, Listed};
use super::report;
use super::usage::{self, Activity};
use super::visit::{Answer, Tab, Visit};
use maud::{Markup, html};
use raingauge_campaigns::budget::Budget;
use raingauge_campaigns::calendar::Zone;
use raingauge_campaigns::campaign::{Campaign, CampaignId, State, ZoneSource};
use raingauge_portal::html::chart::sparkline;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use raingauge_portal::{Fault, Fields};
use raingauge_ports::campaigns::{BudgetKey, DecisionQuery};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Rows of the list. A search finds the others.
const ROWS_MAX: usize = 200;
const DAY_MS: i64 = 86_400_000;

const COLUMNS: [Column<'_>; 7] = [
    Column::Text("Campaign"),
    Column::Text("State"),
    Column::Text("On events"),
    Column::Text("Actions, last 24 hours"),
    Column::Text("Budget"),
    Column::Text("Owner"),
    Column::Number("Changed"),
];

/// `GET /campaigns`
pub async fn list(visit: Visit) -> Answer {
    let mut all = visit.desk.campaigns();
    let count = all.len();
    let filter = Filter::of(&visit.query);
    all.retain(|listed| filter.shows(listed));
    let matching = all.len();
    all.truncate(ROWS_MAX);

    let activity = activity(&visit).await?;
    let mut rows = Vec::with_capacity(all.len());
    for listed in &all {
        rows.push(row(&visit, listed, &activity).await?);
    }

    let body = html! {
        div.page-head {
            h1 { "Campaigns" }
            @if visit.may_edit() {
                div.actions { a.button.primary href="/campaigns/new" { "New campaign" } }
            }
        }
        @if let Some(trouble) = visit.desk.trouble() {
            (parts::notice(parts::Mood::Bad, &html! { "Campaigns decide nothing at the moment: " (trouble) }))
        }
        @if count == 0 {
            (parts::empty("No campaigns yet", &html! {
                "A campaign says which event, under which conditions, triggers which actions. "
                @if visit.may_edit() { a href="/campaigns/new" { "Create the first one" } ", or apply a file with " code { "raingauge campaigns apply" } "." }
            }))
        } @else {
            (filter.form())
            p.quiet aria-live="polite" { (tally(matching, count)) @if matching > ROWS_MAX { "; the first " (ROWS_MAX) " are shown" } }
            section.card.table-card aria-labelledby="campaigns-title" {
                h2.visually-hidden #campaigns-title { "All campaigns" }
                (parts::table("campaigns-title", &COLUMNS, &html! { @for row in &rows { (row) } }))
            }
            (audit(&visit))
            @if activity.is_cut { p.quiet { "More was decided than is added up here: the numbers of the last day are too low." } }
        }
    };
    Ok(visit.show(Tab::Campaigns, "Campaigns", &body))
}

/// The result of the last self-audit, and another one.
fn audit(visit: &Visit) -> Markup {
    let last = visit.desk.last_audit();
    html! {
        section.card aria-labelledby="audit-title" {
            h2 #audit-title { "Self-audit" }
            @match &last {
                Some(result) => {
                    p.quiet { "The last one, of " (visit.desk.name_of(audited(result))) ":" }
                    (report::audit(result, visit.may_edit()))
                }
                None => p { "An audit replays a campaign for some subjects from the log, and compares what it decides with what was decided." },
            }
            @if visit.may_edit() {
                form.row method="post" action="/campaigns/audit" {
                    (parts::csrf(&visit.person))
                    button.button type="submit" { "Audit a campaign chosen at random" }
                }
            }
        }
    }
}

fn audited(result: &Json) -> CampaignId {
    result["campaign"].as_u64().and_then(|id| id.try_into().ok()).unwrap_or(0)
}

async fn activity(visit: &Visit) -> Result<Activity, Fault> {
    let now_ms = visit.now_ms();
    let query = DecisionQuery { from_ms: now_ms - DAY_MS, ..DecisionQuery::default() };
    let gathered =
        usage::gather(visit.desk.reader(), query).await.map_err(super::faults::ledger)?;
    Ok(Activity::of(&gathered, now_ms))
}

async fn row(visit: &Visit, listed: &Listed, activity: &Activity) -> Result<Markup, Fault> {
    let campaign = &listed.campaign;
    let halves = activity.of_campaign(campaign.id);
    let actions: u64 = halves.iter().sum();
    let values: Vec<f64> = halves.iter().map(|half| *half as f64).collect();
    let bar = spend_bar(&visit.desk, campaign, visit.now_ms()).await?;

    Ok(html! {
        tr {
            th.wrap scope="row" {
                a href={ "/campaigns/" (campaign.id) } { (campaign.name) }
                @if !campaign.description.is_empty() {
                    br;
                    span.quiet { (words::cut(&campaign.description, 90)) }
                }
            }
            td { (state_badge(listed, visit.now_s())) }
            td.wrap {
                @for (place, kind) in campaign.event_types.iter().enumerate() {
                    @if place > 0 { ", " }
                    code { (words::cut(kind, 40)) }
                }
            }
            td.activity {
                span.activity-words {
                    @if actions > 0 { (sparkline(&values)) }
                    span.number { (words::short_number(actions as f64)) }
                }
            }
            td { (bar) }
            td { (campaign.owner) }
            td.number.quiet { (parts::ago(visit.now_s() - listed.changed_ms.div_euclid(1_000))) }
        }
    })
}

/// The state of a campaign, and what follows from the time and the log.
pub fn state_badge(listed: &Listed, now_s: i64) -> Markup {
    let campaign = &listed.campaign;
    let (mood, word) = match campaign.state {
        State::Active | State::Shadow if listed.is_warming => ("wait", "warming"),
        State::Active | State::Shadow if campaign.active_from.is_some_and(|from| now_s < from) => {
            ("draft", "scheduled")
        }
        State::Active | State::Shadow
            if campaign.active_until.is_some_and(|until| until <= now_s) =>
        {
            ("draft", "ended")
        }
        State::Active => ("active", "active"),
        State::Shadow => ("draft", "shadow"),
        State::Paused => ("paused", "paused"),
        State::Draft => ("draft", "draft"),
        State::Archived => ("draft", "archived"),
    };
    html! { span.state data-state=(mood) { (word) } }
}

/// The fullest of the campaign's own budgets in its current period.
async fn spend_bar(desk: &Desk, campaign: &Campaign, now_ms: i64) -> Result<Markup, Fault> {
    if campaign.budgets.is_empty() {
        return Ok(html! { span.quiet { "–" } });
    }
    let reserved = desk.reader().budgets_of(campaign.id).await.map_err(super::faults::ledger)?;
    let reserved: BTreeMap<BudgetKey, _> = reserved.into_iter().collect();
    let fullest = campaign.budgets.iter().map(|(name, budget)| {
        let key = current_key(campaign, name, budget, now_ms);
        let used = reserved.get(&key).map_or(0, |found| found.reserved);
        (name, budget, used)
    });
    let fullest = fullest
        .max_by_key(|(_, budget, used)| i128::from(*used) * 10_000 / i128::from(budget.max.max(1)));

    Ok(html! { @if let Some((name, budget, used)) = fullest { (bar(name, used, budget)) } })
}

/// A bar with its numbers.
pub fn bar(name: &str, used: i64, budget: &Budget) -> Markup {
    let share =
        words::share(u64::try_from(used).unwrap_or(0), u64::try_from(budget.max).unwrap_or(0));
    html! {
        progress value=(used) max=(budget.max.max(1)) aria-label={ "Used of " (name) } {}
        span.quiet { (share) " of " (words::short_number(budget.max as f64)) " " (budget.unit) }
    }
}

/// The account of a budget in its current period.
pub fn current_key(campaign: &Campaign, name: &str, budget: &Budget, now_ms: i64) -> BudgetKey {
    let own = budget.zone.as_deref().and_then(Zone::of_name);
    let zone = own.or_else(|| match ZoneSource::parse(&campaign.zone) {
        Some(ZoneSource::Fixed(zone)) => Some(zone),
        _ => None,
    });
    let period = budget.period_number(now_ms, &zone.unwrap_or_else(Zone::utc));
    BudgetKey { campaign: campaign.id, name: name.to_owned(), period }
}

fn tally(shown: usize, all: usize) -> String {
    let words = words::count_of(all as i128, "campaign", "campaigns");
    if shown == all { words } else { format!("{shown} of {words}") }
}

/// What the list shows.
struct Filter<'f> {
    search: &'f str,
    state: &'f str,
}

/// The choices of states.
const STATES: [(&str, &str); 7] = [
    ("", "all but archived"),
    ("active", "active"),
    ("shadow", "shadow"),
    ("paused", "paused"),
    ("draft", "draft"),
    ("archived", "archived"),
    ("all", "all"),
];

impl<'f> Filter<'f> {
    fn of(fields: &'f Fields) -> Self {
        Self { search: fields.text("q"), state: fields.text("state") }
    }

    fn shows(&self, listed: &Listed) -> bool {
        let campaign = &listed.campaign;
        let state = serde_json::to_value(campaign.state).unwrap_or_default();
        let is_state = match self.state {
            "" => campaign.state != State::Archived,
            "all" => true,
            wanted => state == wanted,
        };
        let text = format!(
            "{} {} {} {} {}",
            campaign.id,
            campaign.name,
            campaign.owner,
            campaign.description,
            campaign.event_types.join(" ")
        );
        let text = text.to_lowercase();
        is_state && self.search.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    fn form(&self) -> Markup {
        html! {
            form.row.filters role="search" method="get" action="/campaigns" {
                div.field.search {
                    label for="q" { "Search" }
                    input type="search" id="q" name="q" value=(self.search) placeholder="name, event type, owner or id" autocomplete="off";
                }
                div.field {
                    label for="state" { "State" }
                    select id="state" name="state" {
                        @for (name, words) in STATES {
                            option value=(name) selected[self.state == name] { (words) }
                        }
                    }
                }
                button.button type="submit" { "Search" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed(changes: serde_json::Value) -> Listed {
        let mut json = json!({"id": 7, "name": "Three orders", "eventTypes": ["mart.order"],
            "state": "active", "steps": [{"name": "s", "actions": [
                {"name": "a", "kind": "reward", "to": "r", "reward": "R"}]}]});
        for (name, value) in changes.as_object().unwrap() {
            json[name] = value.clone();
        }
        let campaign = Campaign::from_json(&json).unwrap();
        Listed { campaign, version: 1, changed_ms: 0, is_warming: false }
    }

    #[test]
    fn the_state_follows_from_the_time() {
        let word = |changes: serde_json::Value| {
            let markup = state_badge(&listed(changes), 1_000).into_string();
            markup.split(['>', '<']).nth(2).unwrap().to_owned()
        };
        assert_eq!(word(json!({})), "active");
        assert_eq!(word(json!({"activeFrom": 1_001})), "scheduled");
        assert_eq!(word(json!({"activeFrom": 1, "activeUntil": 1_000})), "ended");
        assert_eq!(word(json!({"state": "paused", "activeFrom": 1_001})), "paused");
    }

    #[test]
    fn a_search_finds_every_word() {
        let finds = |query: &str, changes| {
            Filter::of(&Fields::parse(query.as_bytes())).shows(&listed(changes))
        };
        assert!(finds("q=mart+THREE", json!({})));
        assert!(!finds("q=mart+four", json!({})));
        assert!(!finds("", json!({"state": "archived"})));
        assert!(finds("state=archived", json!({"state": "archived"})));
        assert!(finds("state=all&q=7", json!({"state": "archived"})));
    }
}
