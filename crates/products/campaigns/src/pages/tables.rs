//! Uploaded tables and segments: what is there, and loading another version.

use super::visit::{Answer, Tab, Visit, done};
use maud::{Markup, html};
use raingauge_portal::Fault;
use raingauge_portal::html::parts::{self, Column, Field, Mood};
use raingauge_portal::html::words;
use raingauge_ports::campaigns::documents::StoredDocument;
use serde_json::json;

const COLUMNS: [Column<'_>; 5] = [
    Column::Text("Name"),
    Column::Text("Kind"),
    Column::Text("Columns"),
    Column::Number("Rows"),
    Column::Number("Version"),
];

/// `GET /campaigns/tables`
pub async fn list(visit: Visit) -> Answer {
    let all = visit.desk.documents("table");
    let mut rows = Vec::new();
    for document in &all {
        rows.push((document, visit.desk.table(&document.id).await?));
    }
    let body = html! {
        div.page-head {
            h1 { "Tables and segments" }
            @if visit.may_administer() { div.actions { a.button.primary href="/campaigns/documents/table/new" { "New table or segment" } } }
        }
        p.lead { "Facts about subjects that conditions and messages use: a tier, a language. A segment is a list of subjects. A new version takes the place of the old one at once, as a whole." }
        @if all.is_empty() {
            (parts::empty("No tables", &html! { "An administrator defines one; then its rows are uploaded." }))
        } @else {
            section.card.table-card aria-labelledby="tables-title" {
                h2.visually-hidden #tables-title { "Tables" }
                (parts::table("tables-title", &COLUMNS, &html! {
                    @for (document, loaded) in &rows {
                        tr {
                            th scope="row" {
                                a href={ "/campaigns/tables/" (words::step_of_address(&document.id)) } { (document.id) }
                            }
                            td { (document.configuration["kind"].as_str().unwrap_or("table")) }
                            td.wrap { (columns(document).join(", ")) }
                            td.number {
                                (loaded.map_or("not loaded yet".to_owned(), |(_, rows)| words::number(rows.into())))
                            }
                            td.number { @if let Some((version, _)) = loaded { (version) } }
                        }
                    }
                }))
            }
        }
    };
    Ok(visit.show(Tab::Tables, "Tables and segments", &body))
}

fn columns(document: &StoredDocument) -> Vec<String> {
    let columns = document.configuration["columns"].as_object();
    columns
        .into_iter()
        .flatten()
        .map(|(name, kind)| format!("{name} ({})", kind.as_str().unwrap_or_default()))
        .collect()
}

/// `GET /campaigns/tables/{name}`
pub async fn one(visit: Visit) -> Answer {
    let name = visit.at("name").to_owned();
    let document =
        visit.desk.document("table", &name).ok_or_else(|| Fault::not_found("such table"))?;
    let body = page(&visit, &document, "", None).await?;
    Ok(visit.show(Tab::Tables, &name, &body))
}

async fn page(
    visit: &Visit,
    document: &StoredDocument,
    typed: &str,
    problem: Option<&str>,
) -> Result<Markup, Fault> {
    let name = &document.id;
    let loaded = visit.desk.table(name).await?;
    let head = std::iter::once("subject".to_owned())
        .chain(
            document.configuration["columns"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone()),
        )
        .collect::<Vec<_>>()
        .join(",");
    let rows = Field {
        name: "rows",
        label: "Rows as CSV",
        hint: "The first line names the columns. These rows take the place of all others.",
        problem,
    };
    let command = format!("raingauge tables load {name} {name}.csv");

    Ok(html! {
        div.page-head {
            h1 { (name) }
            @if visit.may_administer() {
                div.actions { a.button href={ "/campaigns/documents/table/" (words::step_of_address(name)) } { "Edit the columns" } }
            }
        }
        section.card aria-labelledby="about-title" {
            h2 #about-title { "What it has" }
            dl.facts {
                dt { "Looked up by" } dd { code { (document.configuration["key"].as_str().unwrap_or("subject")) } }
                dt { "Columns" } dd { (columns(document).join(", ")) }
                dt { "Rows" }
                dd {
                    @match loaded {
                        Some((version, rows)) => { (words::number(rows.into())) ", version " (version) }
                        None => "none was loaded yet",
                    }
                }
            }
        }
        @if visit.may_edit() {
            section.card aria-labelledby="load-title" {
                h2 #load-title { "Load other rows" }
                p { "A large file is loaded by the command line:" }
                (parts::command(&command))
                form.form method="post" action={ "/campaigns/tables/" (words::step_of_address(name)) "/load" } {
                    (parts::csrf(&visit.person))
                    @if problem.is_some() { (parts::notice(Mood::Bad, &html! { "Nothing was loaded." })) }
                    (rows.around(&html! {
                        textarea.mono id="rows" name="rows" rows="10" spellcheck="false"
                            placeholder=(head) aria-describedby="rows-words" { (typed) }
                    }))
                    div.actions { button.button.primary type="submit" { "Load" } }
                }
            }
        }
    })
}

/// `POST /campaigns/tables/{name}/load`
pub async fn load(visit: Visit) -> Answer {
    let name = visit.at("name").to_owned();
    let document =
        visit.desk.document("table", &name).ok_or_else(|| Fault::not_found("such table"))?;
    let typed = visit.form.exact("rows");

    match visit.desk.load(&name, typed).await? {
        Ok(rows) => {
            let address =
                format!("/campaigns/tables/{}?note=loaded", words::step_of_address(&name));
            Ok(done(&address, "table.load", format!("table {name}"), json!({"rows": rows})))
        }
        Err(problem) => {
            let body = page(&visit, &document, typed, Some(&problem)).await?;
            Ok(visit.show_again(Tab::Tables, &name, &body))
        }
    }
}
