//! What a campaign did: by local day, by step, and by reason.

use crate::pages::reasons;
use crate::pages::usage::Usage;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_campaigns::campaign::Campaign;
use raingauge_portal::html::chart::{Chart, Kind, Line, Points, Scale, Unit};
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use std::collections::BTreeMap;

/// Fewest days of a chart.
const DAYS_MIN: i64 = 14;

const REASONS: [Column<'_>; 4] = [
    Column::Text("Outcome"),
    Column::Text("Meaning"),
    Column::Number("Actions"),
    Column::Number("Share"),
];
const STEPS: [Column<'_>; 3] =
    [Column::Text("Step"), Column::Number("Times granted"), Column::Number("Different subjects")];

/// Triggers and spend of each local day.
pub fn by_day(usage: &Usage, campaign: &Campaign, now_ms: i64, zone: &TimeZone) -> Markup {
    let days = days(usage, now_ms, zone);
    if days.is_empty() {
        return html! {};
    }

    let triggers = |date: &Date| usage.by_day.get(date).map_or(0.0, |day| day.triggers as f64);
    let triggers = days.iter().map(triggers).map(Some).collect();
    let steps = vec![Line { name: "steps granted".to_owned(), values: triggers, kind: Kind::Bars }];
    html! {
        div.columns {
            (card("triggers", "Granted by day", chart("Steps granted by day", &days, steps, zone)))
            @for (name, budget) in spent(usage) {
                @let unit = campaign.budgets.get(&name).map_or("", |budget| budget.unit.as_str());
                @let spent = |date: &Date| budget.get(date).copied().unwrap_or(0) as f64;
                @let values = days.iter().map(spent).map(Some).collect();
                @let line = Line { name: format!("{name}, {unit}"), values, kind: Kind::Bars };
                (card(&format!("spend-{name}"), &format!("Spend by day: {name}, {unit}"), chart(&format!("Spend of {name} by day"), &days, vec![line], zone)))
            }
        }
    }
}

fn card(id: &str, title: &str, chart: Markup) -> Markup {
    html! { section.card aria-labelledby=(id) { h2 id=(id) { (title) } (chart) } }
}

/// The days from the first decision to today, and two weeks at least.
fn days(usage: &Usage, now_ms: i64, zone: &TimeZone) -> Vec<Date> {
    let first = usage.by_day.keys().next();
    let today = crate::pages::usage::date_of(now_ms, zone);
    let (Some(first), Some(today)) = (first, today) else { return Vec::new() };
    let fortnight = today.checked_sub(jiff::Span::new().days(DAYS_MIN - 1)).unwrap_or(today);
    let first = fortnight.min(*first);
    first.series(jiff::Span::new().days(1)).take_while(|date| *date <= today).collect()
}

/// What each budget spent, by day.
fn spent(usage: &Usage) -> BTreeMap<String, BTreeMap<Date, i64>> {
    let mut spent: BTreeMap<String, BTreeMap<Date, i64>> = BTreeMap::new();
    for (date, day) in &usage.by_day {
        for (budget, amount) in &day.spend {
            spent.entry(budget.clone()).or_default().insert(*date, *amount);
        }
    }
    spent
}

fn chart(title: &str, days: &[Date], lines: Vec<Line>, zone: &TimeZone) -> Markup {
    let start_s =
        |date: Date| date.to_zoned(zone.clone()).map_or(0, |start| start.timestamp().as_second());
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return html! {} };
    let end = last.tomorrow().unwrap_or(*last);

    Chart {
        title: title.to_owned(),
        words: title.to_owned(),
        times: days.iter().map(|date| start_s(*date)).collect(),
        lines,
        from_s: start_s(*first),
        to_s: start_s(end),
        points: Points::Buckets,
        unit: Unit::Count,
        scale: Scale::Linear,
        zone,
        now_s: None,
        marks: Vec::new(),
    }
    .figure()
}

/// How many actions each gate let through or refused, and how often each step was granted.
pub fn funnel(usage: &Usage, campaign: &Campaign, is_cut: bool) -> Markup {
    let all: u64 = usage.by_outcome.values().sum();
    let mut outcomes: Vec<(&String, &u64)> = usage.by_outcome.iter().collect();
    outcomes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));

    html! {
        div.columns {
            section.card aria-labelledby="funnel-title" {
                h2 #funnel-title { "What became of its actions, last 30 days" }
                @if all == 0 {
                    p { "It has decided nothing in this time. " a href={ "/campaigns/why?campaign=" (campaign.id) } { "Why not?" } }
                } @else {
                    (parts::table("funnel-title", &REASONS, &html! {
                        @for (outcome, count) in outcomes {
                            tr {
                                td { (reasons::badge(outcome)) }
                                td.wrap {
                                    (reasons::meaning(outcome).map_or("", |meaning| meaning.words))
                                }
                                td.number {
                                    a href={ "/campaigns/decisions?campaign=" (campaign.id) "&outcome=" (outcome) } {
                                        (words::number((*count).into()))
                                    }
                                }
                                td.number { (words::share(*count, all)) }
                            }
                        }
                    }))
                    @if is_cut { p.quiet { "By the newest decisions alone: there are too many to add up." } }
                }
            }
            @if !usage.by_step.is_empty() {
                section.card aria-labelledby="steps-title" {
                    h2 #steps-title { "Steps, last 30 days" }
                    (parts::table("steps-title", &STEPS, &html! {
                        @for (step, used) in &usage.by_step {
                            tr {
                                th scope="row" { (step) }
                                td.number { (words::number(used.triggers.into())) }
                                td.number { (words::number(used.subjects.into())) }
                            }
                        }
                    }))
                }
            }
        }
    }
}
