//! The form that creates and edits a programme: its text, and beside it what it says and what it
//! would have cost.

mod example;
mod trial;

use super::desk::PROGRAMME;
use super::visit::{Answer, Tab, Visit, done, programme};
use axum::response::{Html, IntoResponse as _};
use maud::{Markup, html};
use raingauge_core::counter::Problem;
use raingauge_points::ProgrammeDocument;
use raingauge_portal::document::{
    self, Editor, SaveError, Sheet, check_no_approval, parse, text_of,
};
use raingauge_portal::html::words;
use serde_json::{Value as Json, json};

/// `GET /points/new`: begins with a programme that works, and explains itself.
pub async fn new(visit: Visit) -> Answer {
    let sheet = Sheet { text: example::PROGRAMME.to_owned(), ..Sheet::default() };
    page(&visit, &sheet, &[]).await
}

/// `GET /points/{programme}/edit`
pub async fn edit(visit: Visit) -> Answer {
    let programme = programme(&visit).await?;
    // The members come in the order in which the reference has them.
    let text = match ProgrammeDocument::read(&programme.configuration) {
        Ok(document) => text_of(&document),
        Err(_) => text_of(&programme.configuration),
    };
    let sheet = Sheet { text, version: programme.version, ..Sheet::default() };
    page(&visit, &sheet, &[]).await
}

async fn page(visit: &Visit, sheet: &Sheet, problems: &[Problem]) -> Answer {
    let title = if sheet.version == 0 { "New programme" } else { "Edit a programme" };
    let trial = trial::trial(visit, &sheet.text).await;
    let form = editor().markup(&visit.portal, &visit.person, sheet, problems, &trial);
    let body = html! {
        div.page-head { h1 { (title) } }
        @if sheet.version == 0 {
            p.lead { "Begin with this example: change its name, its tables and its rules. What it would award stands beside it while you type, and nothing is awarded before you save." }
        }
        (form)
    };
    let response = if problems.is_empty() {
        visit.show(Tab::Programmes, title, &body)
    } else {
        visit.show_again(Tab::Programmes, title, &body)
    };
    Ok(response)
}

fn editor() -> Editor<'static> {
    Editor {
        object: "programme",
        label: "Programme",
        hint: "YAML or JSON. The reference of all members is docs/points.md.",
        try_at: "/points/try",
        save_at: "/points/save",
        propose_at: "/points/propose",
        beside: "What it would do",
        tools: tools(),
    }
}

/// What can be done with the text without saving it. The forecast stands beside the form where
/// scripts run, and is a page of its own otherwise.
fn tools() -> Markup {
    html! {
        button.button type="submit" formaction="/points/form" { "Check" }
        button.button type="submit" formaction="/points/forecast" hx-post="/points/forecast"
            hx-include="#document-form" hx-vals="{\"part\":\"1\"}" hx-target="#forecast" {
            "Forecast from the last"
        }
        label.visually-hidden for="days" { "Days of the forecast" }
        input.short type="number" id="days" name="days" value="28" min="1" max="400";
        span.quiet { "days" }
    }
}

/// `POST /points/form`: the form again, with what the text would do.
pub async fn form(visit: Visit) -> Answer {
    page(&visit, &Sheet::submitted(&visit.form), &[]).await
}

/// `POST /points/try`: what the text would do, for the part of the page beside it.
pub async fn try_out(visit: Visit) -> Answer {
    let trial = trial::trial(&visit, visit.form.exact("text")).await;
    Ok(Html(trial.into_string()).into_response())
}

/// A text as a document that can be saved.
async fn checked(visit: &Visit, text: &str) -> Result<Json, SaveError> {
    let document = parse(text).map_err(SaveError::Invalid)?;
    visit.desk.check(&document).await
}

/// `POST /points/save`
pub async fn save(visit: Visit) -> Answer {
    let sheet = Sheet::submitted(&visit.form);
    check_no_approval(&visit.portal)?;
    let document = match parse(&sheet.text) {
        Ok(document) => document,
        Err(problems) => return page(&visit, &sheet, &problems).await,
    };

    match visit.desk.save(document, sheet.version, &visit.person, &sheet.reason).await {
        Ok(saved) => {
            let address = format!("/points/{}?note=saved", words::step_of_address(&saved.id));
            let details = json!({"version": saved.version, "reason": sheet.reason});
            Ok(done(&address, "programme.save", format!("programme {}", saved.id), details))
        }
        Err(SaveError::Invalid(problems)) => page(&visit, &sheet, &problems).await,
        Err(SaveError::Other(fault)) => Err(fault),
    }
}

/// `POST /points/propose`: the text as a draft.
pub async fn propose(visit: Visit) -> Answer {
    let sheet = Sheet::submitted(&visit.form);
    match checked(&visit, &sheet.text).await {
        Ok(document) => document::propose(&visit, PROGRAMME, document, sheet.version).await,
        Err(SaveError::Invalid(problems)) => page(&visit, &sheet, &problems).await,
        Err(SaveError::Other(fault)) => Err(fault),
    }
}
