//! What members can get for their points.

use super::rules;
use super::view::ProgrammeView;
use super::visit::{Answer, Part, Tab, Visit, programme, programme_head};
use maud::{Markup, html};
use raingauge_awarding::Allowance;
use raingauge_core::time::parse_time_s;
use raingauge_portal::html::parts::{self, Column};
use raingauge_portal::html::words;
use serde_json::Value as Json;

const COLUMNS: [Column<'_>; 5] = [
    Column::Text("Reward"),
    Column::Number("Price"),
    Column::Text("Stock"),
    Column::Text("Each member"),
    Column::Text("When"),
];

/// `GET /points/{programme}/rewards`
pub async fn page(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let stocks = visit.desk.allowances(&programme.name).await?.rewards;
    let rewards = programme.configuration["rewards"].as_array().cloned().unwrap_or_default();
    let title = format!("Rewards of {}", programme.name);
    let actions = html! {
        @if visit.may_edit() { div.actions { a.button href=(programme.address("edit")) { "Edit" } } }
    };

    let body = html! {
        (programme_head(&programme, Part::Rewards, "Rewards", &actions))
        @if rewards.is_empty() {
            (parts::empty("No rewards", &html! {
                "A reward has a price in points, and a stock that cannot be oversold. Add "
                code { "rewards: [{name: coffee, points: 300, stock: 1000}]" }
                " to the programme; your shop then redeems it by API."
            }))
        } @else {
            section.card.table-card aria-labelledby="rewards-title" {
                h2.visually-hidden #rewards-title { "All rewards" }
                (parts::table("rewards-title", &COLUMNS, &html! {
                    @for reward in &rewards { (row(&visit, &programme, reward, &stocks)) }
                }))
            }
            p.quiet { "A redemption sets the points aside; your shop captures them when it hands the reward over, or gives them back." }
        }
    };
    Ok(visit.show(Tab::Programmes, &title, &body))
}

fn row(visit: &Visit, programme: &ProgrammeView, reward: &Json, stocks: &[Allowance]) -> Markup {
    let name = reward["name"].as_str().unwrap_or_default();
    let left = Allowance::left_of(stocks, name);
    html! {
        tr {
            th.wrap scope="row" {
                (name)
                @if let Some(words) = reward["description"].as_str() {
                    br;
                    span.quiet { (words::cut(words, 120)) }
                }
            }
            td.number { (rules::amount_of(&reward["points"])) " " (programme.unit) }
            td {
                @match (left, reward["stock"].as_u64()) {
                    (Some(left), Some(stock)) => {
                        (words::number(left.into())) " of " (words::number(stock.into())) " left"
                    }
                    (None, Some(stock)) => { (words::number(stock.into())) }
                    (_, None) => "no bound",
                }
            }
            td { @match reward["perMember"].as_u64() { Some(most) => { "at most " (most) } None => "no bound" } }
            td { (span(visit, reward, left == Some(0))) }
        }
    }
}

/// When a reward can be had.
fn span(visit: &Visit, reward: &Json, is_sold_out: bool) -> Markup {
    let [from, until] = ["from", "until"].map(|end| reward[end].as_str());
    let second = |text: Option<&str>| text.and_then(parse_time_s);
    let now_s = visit.now_s();
    let (mood, word) = match (second(from), second(until)) {
        (_, Some(until_s)) if until_s <= now_s => ("draft", "ended"),
        (Some(from_s), _) if now_s < from_s => ("wait", "not yet"),
        _ if is_sold_out => ("draft", "sold out"),
        _ => ("active", "available"),
    };
    html! {
        span.state data-state=(mood) { (word) }
        @if let Some(from) = from { span.quiet { " from " (from) } }
        @if let Some(until) = until { span.quiet { " until " (until) } }
    }
}
