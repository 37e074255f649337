//! Experiments: who sees which variant, and how many came to where it makes a difference.

use super::visit::{Answer, Tab, Visit};
use maud::{Markup, html};
use raingauge_campaigns::campaign::Campaign;
use raingauge_campaigns::experiment::bucket;
use raingauge_portal::html::parts::{self, Column, Field};
use raingauge_portal::html::words;

const COLUMNS: [Column<'_>; 5] = [
    Column::Text("Variant"),
    Column::Number("Weight"),
    Column::Text("Buckets"),
    Column::Number("Exposed"),
    Column::Number("Share"),
];

/// `GET /campaigns/experiments?unit=u-42`
pub async fn list(visit: Visit) -> Answer {
    let all = visit.desk.campaigns();
    let unit = visit.query.text("unit");
    let mut cards = Vec::new();
    for listed in &all {
        if listed.campaign.experiment.is_some() {
            cards.push(card(&visit, &listed.campaign, unit).await?);
        }
    }

    let asked = Field { name: "unit", label: "Who is where?", hint: "", problem: None };
    let body = html! {
        div.page-head { h1 { "Experiments" } }
        @if cards.is_empty() {
            (parts::empty("No experiments", &html! { "A campaign with an " code { "experiment" } " shows parts of its subjects different steps." }))
        } @else {
            form.row.filters method="get" action="/campaigns/experiments" { (asked.text(unit)) button.button type="submit" { "Show" } }
            @for card in &cards { (card) }
        }
    };
    Ok(visit.show(Tab::Experiments, "Experiments", &body))
}

async fn card(
    visit: &Visit,
    campaign: &Campaign,
    unit: &str,
) -> Result<Markup, raingauge_portal::Fault> {
    let Some(experiment) = &campaign.experiment else { return Ok(html! {}) };
    let exposed = visit.desk.exposures(&experiment.key).await?;
    let all: u64 = exposed.values().sum();
    let id = format!("experiment-{}", campaign.id);
    let coverage = u32::from(experiment.coverage);
    let mut from = 0;
    let mut buckets = Vec::new();
    for variant in &experiment.variants {
        let weight = u32::from(variant.weight);
        buckets.push((from, from + weight * coverage / 10_000));
        from += weight;
    }

    Ok(html! {
        section.card aria-labelledby=(id) {
            div.card-head {
                h2 id=(id) { (experiment.key) }
                p.quiet {
                    "of "
                    a href={ "/campaigns/" (campaign.id) } { (campaign.name) }
                    ", on "
                    (words::share(experiment.coverage.into(), 10_000))
                    " of all "
                    (experiment.unit)
                }
            }
            (parts::table(&id, &COLUMNS, &html! {
                @for (place, variant) in experiment.variants.iter().enumerate() {
                    @let (first, end) = buckets[place];
                    @let seen = exposed.get(&variant.name).copied().unwrap_or(0);
                    tr {
                        th scope="row" { (variant.name) @if place == 0 { " " span.quiet { "(the control)" } } }
                        td.number { (words::share(variant.weight.into(), 10_000)) }
                        td { @if first < end { (first) " to " (end - 1) } @else { "none" } }
                        td.number { (words::number(seen.into())) }
                        td.number { @if all > 0 { (words::share(seen, all)) } }
                    }
                }
            }))
            @if !unit.is_empty() { (placed(campaign, unit)) }
        }
    })
}

fn placed(campaign: &Campaign, unit: &str) -> Markup {
    let Some(experiment) = &campaign.experiment else { return html! {} };
    let bucket = bucket(&experiment.key, unit);
    let variant =
        experiment.split().variant(bucket).map(|place| experiment.variants[place].name.as_str());
    html! {
        p {
            code { (unit) }
            " is in bucket "
            (bucket)
            ": "
            @match variant { Some(name) => strong { (name) }, None => "takes no part" }
        }
    }
}
