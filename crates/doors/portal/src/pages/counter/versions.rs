//! The versions of a counter, and the differences between two of them.

use crate::caller::{Caller, Page};
use crate::fault::Fault;
use crate::fields::Query;
use crate::html::drafts::changes;
use crate::html::parts::Column::Text;
use crate::html::{layout, parts, words};
use axum::extract::Path;
use axum::http::StatusCode;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_counters::difference;
use raingauge_ports::catalog::Versioned;

/// Number of versions listed on the page of a counter; the page of versions lists all.
const LISTED_MAX: usize = 20;

/// The versions for the page of a counter, newest first.
pub fn panel(id: u32, versions: &[Versioned], zone: &TimeZone) -> Markup {
    html! {
        section.card aria-labelledby="versions-title" {
            h2 id="versions-title" { "Versions" }
            (table(id, &versions[..versions.len().min(LISTED_MAX + 1)], LISTED_MAX, zone))
            @if versions.len() > LISTED_MAX {
                p {
                    a href={ "/counters/" (id) "/versions" } { "All " (versions.len()) " versions" }
                }
            }
        }
    }
}

fn table(id: u32, versions: &[Versioned], len_max: usize, zone: &TimeZone) -> Markup {
    let time = format!("Time, {}", words::zone(zone));
    let columns = [Text("Version"), Text(&time), Text("By"), Text("Reason"), Text("Changes")];
    parts::named_table(
        "Versions",
        "",
        &columns,
        &html! {
            @for (place, version) in versions.iter().take(len_max).enumerate() {
                tr {
                    th scope="row" { (version.version) }
                    td { (parts::moment(version.changed_at, zone)) }
                    td { (version.changed_by) }
                    td.wrap {
                        @if version.reason.is_empty() { span.quiet { "–" } }
                        @else { (version.reason) }
                    }
                    td.wrap { (changed(id, version, versions.get(place + 1))) }
                }
            }
        },
    )
}

/// The fields that a version changed, with a link to the details.
fn changed(id: u32, version: &Versioned, before: Option<&Versioned>) -> Markup {
    let Some(before) = before else {
        return html! { "created" };
    };
    let labels: Vec<&str> = difference::between(&before.counter, &version.counter)
        .iter()
        .map(|changed| changed.label)
        .collect();
    let address = format!("/counters/{id}/versions?from={}&to={}", before.version, version.version);
    html! { a href=(address) { @if labels.is_empty() { "nothing" } @else { (labels.join(", ")) } } }
}

/// `GET /counters/{id}/versions?from=1&to=3`: two versions side by side. The default is the newest
/// two.
pub async fn compare(caller: Caller, Path(id): Path<u32>, Query(fields): Query) -> Page {
    let versions = caller.portal.counters.versions(id).await?;
    let zone = fields.zone();
    let Some(newest) = versions.first() else {
        return Err(Fault::not_found("such counter"));
    };
    let chosen = |name: &str, otherwise: Option<&Versioned>| match fields.given(name) {
        None => Ok(otherwise.unwrap_or(newest).clone()),
        Some(text) => find(&versions, text),
    };
    let to = chosen("to", Some(newest))?;
    let one_before = versions.iter().find(|version| version.version < to.version);
    let from = chosen("from", one_before)?;
    let body = html! {
        div.page-head { h1 { "Versions of " a href={ "/counters/" (id) } { (newest.counter.name) } } }
        section.card aria-label="Difference" {
            (choice(id, &versions, &from, &to))
            (sides(&from, &to, &zone))
            @if caller.person.may(Role::Editor) && from.version != newest.version {
                (roll_back(id, &from, newest))
            }
        }
        section.card aria-labelledby="versions-title" {
            h2 id="versions-title" { "All versions" }
            (table(id, &versions, versions.len(), &zone))
        }
    };

    Ok(caller.page(layout::Place::Counters, &format!("Versions of {}", newest.counter.name), &body))
}

fn find(versions: &[Versioned], text: &str) -> Result<Versioned, Fault> {
    let number = text.parse::<u32>().ok();
    let found = versions.iter().find(|version| Some(version.version) == number);
    found.cloned().ok_or_else(|| {
        let last = versions.first().map_or(0, |newest| newest.version);
        let advice = format!("This counter has the versions 1 to {last}: choose two of them.");
        Fault::new(StatusCode::NOT_FOUND, "There is no such version", advice)
    })
}

fn choice(id: u32, versions: &[Versioned], from: &Versioned, to: &Versioned) -> Markup {
    html! {
        form.row method="get" action={ "/counters/" (id) "/versions" } {
            @for (name, label, chosen) in [("from", "From version", from), ("to", "To version", to)] {
                div.field {
                    label for=(name) { (label) }
                    select id=(name) name=(name) {
                        @for version in versions {
                            @let is_chosen = version.version == chosen.version;
                            option value=(version.version) selected[is_chosen] { (brief(version)) }
                        }
                    }
                }
            }
            button.button type="submit" { "Compare" }
        }
    }
}

/// A version in a few words.
fn brief(version: &Versioned) -> String {
    let words = format!("{} · {}", version.version, words::cut(&version.changed_by, 24));
    if version.reason.is_empty() {
        return words;
    }
    format!("{words} · {}", words::cut(&version.reason, 40))
}

/// Compares field by field: differences are marked, equal fields are folded away.
fn sides(from: &Versioned, to: &Versioned, zone: &TimeZone) -> Markup {
    let changed = difference::between(&from.counter, &to.counter);
    let same = difference::say(&to.counter);
    let same: Vec<_> = same
        .iter()
        .filter(|said| !changed.iter().any(|changed| changed.field == said.field))
        .collect();
    let title = |version: &Versioned| {
        let time = words::moment(version.changed_at, zone);
        format!("Version {} · {time} · {}", version.version, version.changed_by)
    };

    html! {
        @if changed.is_empty() {
            p { "These versions are equal." }
        } @else {
            (changes(&changed, &title(from), &title(to)))
        }
        @if !same.is_empty() {
            details {
                summary { (same.len()) " fields are the same" }
                dl.facts { @for said in same { dt { (said.label) } dd { (said.words) } } }
            }
        }
    }
}

fn roll_back(id: u32, from: &Versioned, newest: &Versioned) -> Markup {
    html! {
        div.actions {
            a.button href={ "/counters/" (id) "/roll-back?version=" (from.version) } {
                "Roll back to version " (from.version)
            }
            p.quiet {
                "Creates version " (newest.version + 1) ", equal to version " (from.version)
                ". Nothing is lost."
            }
        }
    }
}
