//! The versions of a campaign: who changed what, when and why.

use crate::pages::visit::{Answer, Tab, Visit, campaign_id};
use maud::{Markup, html};
use raingauge_campaigns::campaign::Campaign;
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Column};
use raingauge_ports::campaigns::documents::StoredDocument;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Versions that the page of a campaign lists.
const SHOWN: usize = 10;

const COLUMNS: [Column<'_>; 5] = [
    Column::Number("Version"),
    Column::Text("When"),
    Column::Text("Who"),
    Column::Text("Why"),
    Column::Silent("Compare"),
];

pub fn card(visit: &Visit, campaign: &Campaign, versions: &[StoredDocument]) -> Markup {
    let id = campaign.id;
    html! {
        section.card aria-labelledby="versions-title" {
            div.card-head {
                h2 #versions-title { "Versions" }
                @if versions.len() > 1 && visit.may_edit() {
                    div.actions { a href={ "/campaigns/" (id) "/compare" } { "Compare two versions on past events" } }
                }
            }
            (parts::table("versions-title", &COLUMNS, &html! {
                @for version in versions.iter().take(SHOWN) {
                    tr {
                        td.number { (version.version) }
                        td { (parts::moment(version.changed_ms.div_euclid(1_000), &visit.zone())) }
                        td { (version.changed_by) }
                        td.wrap { (version.reason) }
                        td {
                            @if version.version > 1 {
                                a href={ "/campaigns/" (id) "/versions?from=" (version.version - 1) "&to=" (version.version) } { "What changed" }
                            }
                        }
                    }
                }
            }))
        }
    }
}

/// `GET /campaigns/{id}/versions?from=1&to=2`
pub async fn compare(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?.to_string();
    let versions = visit.desk.versions("campaign", &id).await?;
    let newest = versions.first().map_or(1, |version| version.version);
    let of = |name: &str, default: u32| {
        let wanted = visit.query.given(name).and_then(|text| text.parse().ok()).unwrap_or(default);
        let found = versions.iter().find(|version| version.version == wanted);
        found.ok_or_else(|| Fault::not_found("such version of the campaign"))
    };
    let from = of("from", newest.saturating_sub(1).max(1))?;
    let to = of("to", newest)?;

    let changes = changes(&from.configuration, &to.configuration);
    let title = format!("Versions {} and {}", from.version, to.version);
    let body = html! {
        div.page-head { h1 { (title) } div.actions { a.button href={ "/campaigns/" (id) } { "The campaign" } } }
        form.row.filters method="get" {
            @for (name, label, chosen) in [("from", "From version", from.version), ("to", "To version", to.version)] {
                div.field {
                    label for=(name) { (label) }
                    select id=(name) name=(name) {
                        @for version in &versions {
                            option value=(version.version) selected[version.version == chosen] {
                                (version.version)
                            }
                        }
                    }
                }
            }
            button.button type="submit" { "Compare" }
        }
        section.card aria-labelledby="changes-title" {
            h2 #changes-title { "What changed" }
            @if changes.is_empty() { p { "Nothing differs." } } @else { (table(&changes)) }
        }
    };
    Ok(visit.show(Tab::Campaigns, &title, &body))
}

/// A member that differs: its path, and its two values.
pub type Change = (String, Option<Json>, Option<Json>);

pub fn table(changes: &[Change]) -> Markup {
    let said = |value: &Option<Json>| value.as_ref().map_or("–".to_owned(), Json::to_string);
    html! {
        div.scroll tabindex="0" {
            table.differences {
                thead { tr { th scope="col" { "Member" } th scope="col" { "Before" } th scope="col" { "After" } } }
                tbody {
                    @for (path, before, after) in changes {
                        tr {
                            th scope="row" { code { (path) } }
                            td { del { (said(before)) } }
                            td { ins { (said(after)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The members in which two documents differ, by their paths.
pub fn changes(before: &Json, after: &Json) -> Vec<Change> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flatten("", before, &mut old);
    flatten("", after, &mut new);

    let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let differs = |path: &&String| old.get(*path) != new.get(*path);
    paths
        .into_iter()
        .filter(differs)
        .map(|path| (path.clone(), old.get(path).cloned(), new.get(path).cloned()))
        .collect()
}

fn flatten(path: &str, value: &Json, found: &mut BTreeMap<String, Json>) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, inner) in members {
                flatten(&format!("{path}{dot}{name}"), inner, found);
            }
        }
        Json::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (place, inner) in items.iter().enumerate() {
                flatten(&format!("{path}[{place}]"), inner, found);
            }
        }
        value => {
            found.insert(path.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_differ_by_member() {
        let before =
            json!({"name": "n", "steps": [{"name": "s", "when": {"rhs": 3}}], "eventTypes": ["a"]});
        let after = json!({"name": "n", "steps": [{"name": "s", "when": {"rhs": 4}}], "eventTypes": ["a", "b"], "owner": "o"});
        assert_eq!(
            changes(&before, &after),
            [
                ("eventTypes".to_owned(), Some(json!(["a"])), Some(json!(["a", "b"]))),
                ("owner".to_owned(), None, Some(json!("o"))),
                ("steps[0].when.rhs".to_owned(), Some(json!(3)), Some(json!(4))),
            ]
        );
        assert!(changes(&before, &before).is_empty());
        assert!(!table(&changes(&json!({"a": "<b>"}), &json!({}))).into_string().contains("<b>"));
    }
}
