//! Documents that campaigns share: destinations, lookups, tables, budgets, caps, holdouts. One form
//! of text edits all of them.

use super::visit::{Answer, Tab, Visit, done, reason_field};
use maud::{Markup, html};
use raingauge_core::counter::Problem;
use raingauge_portal::Fault;
use raingauge_portal::document::{self, SaveError, parse};
use raingauge_portal::html::parts::{self, Column, Field};
use raingauge_portal::html::words;
use serde_json::{Value as Json, json};

/// A kind of document: its name, its title, what it is, and a text to begin with.
pub struct Kind {
    pub name: &'static str,
    pub title: &'static str,
    pub words: &'static str,
    example: &'static str,
    tab: Tab,
}

pub const KINDS: [Kind; 6] = [
    Kind {
        name: "destination",
        title: "Destinations",
        words: "Services that carry out actions, each with its rate by time of day.",
        example: "name: rewards\nurl: https://rewards.internal/v1/award\nsecretEnv: RAINGAUGE_SECRET_REWARDS\n\
                  zone: Asia/Singapore\nrate:\n  - {perSecond: 100, burst: 100}\n  \
                  - {from: \"07:00\", to: \"10:00\", days: [mon, tue, wed, thu, fri], perSecond: 20, burst: 5}\n",
        tab: Tab::Destinations,
    },
    Kind {
        name: "table",
        title: "Tables and segments",
        words: "Uploaded facts about subjects, and lists of subjects.",
        example: "name: users\nkind: table\nkey: subject\ncolumns: {tier: text, zone: text, locale: text}\n",
        tab: Tab::Tables,
    },
    Kind {
        name: "budget",
        title: "Shared budgets",
        words: "Budgets that several campaigns spend from.",
        example: "name: growth\nunit: SGD_cents\nmax: 1000000\nperiod: week\nzone: Asia/Singapore\n",
        tab: Tab::Shared,
    },
    Kind {
        name: "cap",
        title: "Caps",
        words: "At most so much a day for each subject, over all campaigns.",
        example: "name: messages_a_day\ndestinations: [messages]\nmax: 3\nzone: Asia/Singapore\n",
        tab: Tab::Shared,
    },
    Kind {
        name: "holdout",
        title: "Holdouts",
        words: "Subjects that are left out of campaigns, to compare with. The share is in ten-thousandths.",
        example: "name: everybody\nseed: everybody-2026\nshare: 100\n",
        tab: Tab::Shared,
    },
    Kind {
        name: "lookup",
        title: "Lookups",
        words: "Values from databases and services, which conditions and messages use.",
        example: "name: risk\nclass: http\nurl: https://risk.internal/v1/users/{subject}\nttlS: 60\n\
                  timeoutMs: 300\nrate: [{perSecond: 200, burst: 50}]\nonError: hold\n",
        tab: Tab::Shared,
    },
];

const COLUMNS: [Column<'_>; 3] =
    [Column::Text("Name"), Column::Text("Says"), Column::Number("Version")];

fn kind_of(visit: &Visit) -> Result<&'static Kind, Fault> {
    let name = visit.at("kind");
    KINDS
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| Fault::not_found("such kind of document"))
}

/// `GET /campaigns/shared`
pub async fn shared(visit: Visit) -> Answer {
    let body = html! {
        div.page-head { h1 { "Budgets, caps, holdouts, lookups" } }
        @for kind in KINDS.iter().filter(|kind| kind.tab == Tab::Shared) { (card(&visit, kind)) }
    };
    Ok(visit.show(Tab::Shared, "Budgets, caps, holdouts, lookups", &body))
}

/// The documents of one kind, with links to change them.
fn card(visit: &Visit, kind: &Kind) -> Markup {
    let id = format!("{}-title", kind.name);
    let all = visit.desk.documents(kind.name);
    html! {
        section.card aria-labelledby=(id) {
            div.card-head {
                h2 id=(id) { (kind.title) }
                @if visit.may_administer() {
                    div.actions { a.button.small href={ "/campaigns/documents/" (kind.name) "/new" } { "New" } }
                }
            }
            p.quiet { (kind.words) }
            @if all.is_empty() { p { "There is none." } } @else {
                (parts::table(&id, &COLUMNS, &html! {
                    @for one in &all {
                        tr {
                            th scope="row" {
                                a href={ "/campaigns/documents/" (kind.name) "/" (words::step_of_address(&one.id)) } {
                                    (one.id)
                                }
                            }
                            td.wrap { (brief(&one.configuration)) }
                            td.number { (one.version) }
                        }
                    }
                }))
            }
        }
    }
}

/// The members of a document in one line.
fn brief(configuration: &Json) -> Markup {
    let members = configuration.as_object().into_iter().flatten();
    let members =
        members.filter(|(name, value)| *name != "name" && *name != "kind" && !value.is_null());
    let said: Vec<String> = members
        .map(|(name, value)| match value {
            Json::String(text) => format!("{name} {text}"),
            other => format!("{name} {other}"),
        })
        .collect();
    html! { (words::cut(&said.join(", "), 160)) }
}

/// `GET /campaigns/documents/{kind}/{name}`, where `new` begins another one.
pub async fn edit(visit: Visit) -> Answer {
    let kind = kind_of(&visit)?;
    let name = visit.at("name").to_owned();
    let (text, version) = match visit.desk.document(kind.name, &name) {
        Some(found) => (document::text_of(&found.configuration), found.version),
        None if name == "new" => (kind.example.to_owned(), 0),
        None => return Err(Fault::not_found(&format!("{} {name}", kind.name))),
    };
    let body = form(&visit, kind, &text, version, "", &[]);
    Ok(visit.show(kind.tab, kind.title, &body))
}

fn form(
    visit: &Visit,
    kind: &Kind,
    text: &str,
    version: u32,
    reason: &str,
    problems: &[Problem],
) -> Markup {
    let source = Field { name: "text", label: "Document", hint: "YAML or JSON", problem: None };
    let address =
        format!("/campaigns/documents/{}/{}", kind.name, words::step_of_address(visit.at("name")));
    let may = visit.may_administer();
    html! {
        div.page-head { h1 { @if version == 0 { "New " (kind.name) } @else { "Edit a " (kind.name) } } }
        p.lead { (kind.words) }
        (document::problems(problems, text))
        section.card {
            form.form method="post" action=(address) {
                (parts::csrf(&visit.person))
                input type="hidden" name="version" value=(version);
                (source.around(&html! {
                    textarea.mono id="text" name="text" rows="18" spellcheck="false" readonly[!may]
                        aria-describedby="text-words" { (text) }
                }))
                @if may {
                    (reason_field("document", reason))
                    div.actions {
                        button.button.primary type="submit" { "Save" }
                        @if version > 0 {
                            button.button.danger type="submit" formaction={ (address) "/remove" } { "Remove" }
                        }
                    }
                } @else {
                    p.quiet { "An administrator may change it." }
                }
            }
        }
    }
}

/// `POST /campaigns/documents/{kind}/{name}`
pub async fn save(visit: Visit) -> Answer {
    let kind = kind_of(&visit)?;
    let text = visit.form.exact("text");
    let version = visit.form.text("version").parse().unwrap_or(0);
    let reason = visit.form.text("reason");
    let refused = |problems: &[Problem]| {
        let body = form(&visit, kind, text, version, reason, problems);
        visit.show_again(kind.tab, kind.title, &body)
    };

    let document = match parse(text) {
        Ok(document) => document,
        Err(problems) => return Ok(refused(&problems)),
    };
    let name = document["name"].as_str().unwrap_or_default();
    if version == 0 && visit.desk.document(kind.name, name).is_some() {
        let detail = "it exists already: edit that one, or choose another name".to_owned();
        return Ok(refused(&[Problem::new("name", detail)]));
    }
    match visit.desk.save(kind.name, document, version, &visit.person, reason).await {
        Ok(saved) => {
            let details = json!({"version": saved.version, "reason": reason});
            let object = format!("{} {}", kind.name, saved.id);
            Ok(done(&format!("{}?note=saved", home(kind)), "campaign.document", object, details))
        }
        Err(SaveError::Invalid(problems)) => Ok(refused(&problems)),
        Err(SaveError::Other(fault)) => Err(fault),
    }
}

/// `POST /campaigns/documents/{kind}/{name}/remove`
pub async fn remove(visit: Visit) -> Answer {
    let kind = kind_of(&visit)?;
    let version = visit.form.text("version").parse().unwrap_or(0);
    let name = visit.at("name");

    visit.desk.remove(kind.name, name, version, &visit.person, visit.form.text("reason")).await?;
    let object = format!("{} {name}", kind.name);
    Ok(done(&format!("{}?note=removed", home(kind)), "campaign.document_remove", object, json!({})))
}

/// The page that lists documents of a kind.
const fn home(kind: &Kind) -> &'static str {
    match kind.tab {
        Tab::Destinations => "/campaigns/destinations",
        Tab::Tables => "/campaigns/tables",
        _ => "/campaigns/shared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_documents() {
        for kind in &KINDS {
            let document = parse(kind.example)
                .unwrap_or_else(|problems| panic!("{}: {problems:?}", kind.name));
            assert!(document["name"].is_string(), "{}", kind.name);
        }
    }

    #[test]
    fn a_document_is_one_line() {
        let shown =
            brief(&json!({"name": "n", "unit": "<b>", "max": 3, "zone": null})).into_string();
        assert_eq!(shown, "max 3, unit &lt;b&gt;");
    }
}
