//! Partners of a programme: within which bounds they award, and what is to be settled with them.

use super::rules;
use super::view::ProgrammeView;
use super::visit::{Answer, Part, Tab, Visit, programme, programme_head};
use maud::{Markup, html};
use raingauge_portal::html::parts::{self, Column};
use serde_json::Value as Json;

const COLUMNS: [Column<'_>; 5] = [
    Column::Text("Partner"),
    Column::Number("To settle"),
    Column::Text("May award"),
    Column::Text("Own factors"),
    Column::Text("Exchange"),
];

/// `GET /points/{programme}/partners`
pub async fn page(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    let partners = programme.configuration["partners"].as_array().cloned().unwrap_or_default();
    let mut rows = Vec::with_capacity(partners.len());
    for partner in &partners {
        let name = partner["name"].as_str().unwrap_or_default();
        let balance = visit.desk.settlement(&programme.name, name).await?;
        rows.push(row(&programme, partner, balance));
    }

    let title = format!("Partners of {}", programme.name);
    let actions = html! {
        @if visit.may_edit() { div.actions { a.button href=(programme.address("edit")) { "Edit" } } }
    };
    let body = html! {
        (programme_head(&programme, Part::Partners, "Partners", &actions))
        @if partners.is_empty() {
            (parts::empty("No partners", &html! {
                "A partner awards points by API within bounds, or exchanges them for its own. Add "
                code { "partners: [{name: skyair, perAwardMax: 5000, exchange: {give: 2, get: 1}}]" }
                " to the programme, and make it a token with the same name."
            }))
        } @else {
            section.card.table-card aria-labelledby="partners-title" {
                h2.visually-hidden #partners-title { "All partners" }
                (parts::table("partners-title", &COLUMNS, &html! { @for row in &rows { (row) } }))
            }
            p.quiet { "To settle: points that members moved to the partner, less those that came from there. More than zero, and the partner is owed for them." }
        }
    };
    Ok(visit.show(Tab::Programmes, &title, &body))
}

fn row(programme: &ProgrammeView, partner: &Json, balance: i128) -> Markup {
    html! {
        tr {
            th scope="row" { (partner["name"].as_str().unwrap_or_default()) }
            td.number { strong { (programme.change(balance)) } }
            td.wrap { (bounds(partner)) }
            td {
                @if partner["ownFactors"].is_object() { "up to " (rules::amount_of(&partner["ownFactors"]["max"])) " together" }
                @else { "none" }
            }
            td.wrap { (exchange(programme, partner)) }
        }
    }
}

/// What a partner may give.
fn bounds(partner: &Json) -> String {
    let award = &partner["perAwardMax"];
    let day = &partner["perDayMax"];
    match (award.is_null(), day.is_null()) {
        (true, true) => "without a bound".to_owned(),
        (false, true) => format!("at most {} at a time", rules::amount_of(award)),
        (true, false) => format!("at most {} a day", rules::amount_of(day)),
        (false, false) => format!(
            "at most {} at a time, {} a day",
            rules::amount_of(award),
            rules::amount_of(day)
        ),
    }
}

/// What points are worth at a partner, in both directions.
fn exchange(programme: &ProgrammeView, partner: &Json) -> String {
    let rate = |rate: &Json| Some((rate["give"].as_u64()?, rate["get"].as_u64()?));
    let Some((give, get)) = rate(&partner["exchange"]) else {
        return "none".to_owned();
    };
    let back = rate(&partner["exchangeIn"]).unwrap_or((get, give));
    format!("{give} {} for {get} there; {} there for {} back", programme.unit, back.0, back.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::view::tests::programme;
    use serde_json::json;

    #[test]
    fn a_partner_is_a_row() {
        let partner = json!({"name": "skyair", "perAwardMax": 50_000, "perDayMax": 5_000_000,
            "ownFactors": {"max": 10}, "exchange": {"give": 2, "get": 1}});
        let shown = row(&programme(json!({"unit": "GRP"})), &partner, -1_500).into_string();
        for words in [
            "-1,500",
            "at most 50,000 at a time, 5,000,000 a day",
            "up to 10 together",
            "2 GRP for 1 there; 1 there for 2 back",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        let bare = row(&programme(json!({})), &json!({"name": "<b>"}), 0).into_string();
        assert!(bare.contains("&lt;b&gt;") && bare.contains("without a bound"), "{bare}");
    }
}
