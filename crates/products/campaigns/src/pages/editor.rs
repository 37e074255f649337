//! The form that creates and edits a campaign: guided at first, then as text, with what it would do
//! beside it.

mod guide;
mod trial;

use super::visit::{Answer, Tab, Visit, campaign_id, done};
use axum::response::{Html, IntoResponse as _};
use guide::{Gaps, Offers};
use maud::{Markup, html};
use raingauge_campaigns::campaign::{Campaign, State};
use raingauge_core::counter::Problem;
use raingauge_portal::document::{
    self, Editor, SaveError, Sheet, check_no_approval, parse, text_of,
};
use raingauge_portal::html::parts::{self, Mood};
use raingauge_portal::{Fault, Fields};
use serde_json::{Value as Json, json};

/// The kind of documents that the form is about.
const KIND: &str = "campaign";
/// Event types, fields and values that are offered.
const OFFERED: usize = 60;
/// The text that a campaign without answers begins with.
const EXAMPLE: &str = "\
name: third_order
eventTypes: [mart.order]
subject: data.user_id
zone: Asia/Singapore
state: draft
counts:
  orders:
    filter: {operator: eq, lhs: var.status, rhs: completed}
    window: campaign
steps:
  - name: reward
    when: {operator: reaches, lhs: count.orders, rhs: 3}
    actions:
      - {name: msg, kind: message, to: messages, template: congrats}
limits:
  - {step: reward, per: subject, max: 1, period: campaign}
templates:
  congrats: {en: \"Congratulations, {{ subject }}!\"}
owner: ''
description: ''
";

/// `GET /campaigns/new`: questions; `?copy=ID` begins with the text of another campaign.
pub async fn new(visit: Visit) -> Answer {
    if let Some(id) = visit.query.given("copy").and_then(|id| id.parse().ok()) {
        let listed = visit.desk.campaign(id).ok_or_else(|| Fault::not_found("such campaign"))?;
        let copied = Campaign {
            id: 0,
            name: format!("{}_copy", listed.campaign.name),
            state: State::Draft,
            ..listed.campaign
        };
        let typed = Sheet { text: text_of(&copied), ..Sheet::default() };
        return page(&visit, &typed, &[]).await;
    }

    let body = beginning(&visit, &visit.query, &Gaps::new()).await?;
    Ok(visit.show(Tab::Campaigns, "New campaign", &body))
}

/// The questions, as they were answered.
async fn beginning(visit: &Visit, answers: &Fields, gaps: &Gaps) -> Result<Markup, Fault> {
    let observed = visit.portal.observed().await?;
    let mut fields: Vec<String> = observed
        .types
        .iter()
        .flat_map(|kind| kind.fields.iter().map(|field| field.path.clone()))
        .collect();
    fields.sort();
    fields.dedup();
    fields.truncate(OFFERED);
    let offers = Offers {
        event_types: observed.types.iter().map(|kind| kind.name.clone()).take(OFFERED).collect(),
        fields,
        destinations: visit.desk.documents("destination").into_iter().map(|one| one.id).collect(),
    };

    Ok(html! {
        div.page-head { h1 { "New campaign" } }
        p.lead { "Answer what you can; the answers become a text, in which everything else can be written. Nothing acts before you activate it." }
        form.stack method="post" action="/campaigns/new/guided" {
            (parts::csrf(&visit.person))
            (guide::questions(answers, gaps, &offers))
            div.actions {
                button.button.primary type="submit" { "Continue" }
                a href="/campaigns/new/text" { "Write it as text from the start" }
            }
        }
    })
}

/// `GET /campaigns/new/text`: an example, to be written over.
pub async fn blank(visit: Visit) -> Answer {
    let typed = Sheet { text: EXAMPLE.to_owned(), ..Sheet::default() };
    page(&visit, &typed, &[]).await
}

/// `POST /campaigns/new/guided`: the answers as a text, or the questions again.
pub async fn guided(visit: Visit) -> Answer {
    let gaps = guide::gaps(&visit.form);
    if !gaps.is_empty() {
        let body = beginning(&visit, &visit.form, &gaps).await?;
        return Ok(visit.show_again(Tab::Campaigns, "New campaign", &body));
    }
    let json = guide::document(&visit.form);
    let (text, problems) = match Campaign::from_json(&json) {
        Ok(campaign) => (text_of(&campaign), Vec::new()),
        Err(problems) => (text_of(&json), problems),
    };
    page(&visit, &Sheet { text, ..Sheet::default() }, &problems).await
}

/// `GET /campaigns/{id}/edit`
pub async fn edit(visit: Visit) -> Answer {
    let id = campaign_id(&visit)?;
    let listed = visit.desk.campaign(id).ok_or_else(|| Fault::not_found("such campaign"))?;
    let typed =
        Sheet { text: text_of(&listed.campaign), version: listed.version, ..Sheet::default() };
    page(&visit, &typed, &[]).await
}

async fn page(visit: &Visit, typed: &Sheet, problems: &[Problem]) -> Answer {
    let title = if typed.version == 0 { "New campaign" } else { "Edit a campaign" };
    let trial = trial::trial(visit, &typed.text).await;
    let form = editor().markup(&visit.portal, &visit.person, typed, problems, &trial);
    let body = html! {
        div.page-head { h1 { (title) } }
        (form)
    };
    let response = if problems.is_empty() {
        visit.show(Tab::Campaigns, title, &body)
    } else {
        visit.show_again(Tab::Campaigns, title, &body)
    };
    Ok(response)
}

fn editor() -> Editor<'static> {
    Editor {
        object: KIND,
        label: "Campaign",
        hint: "YAML or JSON. The reference of all members is docs/campaigns.md.",
        try_at: "/campaigns/try",
        save_at: "/campaigns/save",
        propose_at: "/campaigns/propose",
        beside: "What it would do",
        tools: tools(),
    }
}

/// What can be done with the text without saving it.
fn tools() -> Markup {
    html! {
        button.button type="submit" formaction="/campaigns/form" name="do" value="try" { "Check and try" }
        // In a tab of its own: the text stays open beside the result.
        button.button type="submit" formaction="/campaigns/backtest" formtarget="_blank" { "Backtest the last" }
        label.visually-hidden for="days" { "Days of the backtest" }
        input.short type="number" id="days" name="days" value="7" min="1" max="400";
        span.quiet { "days" }
        label.check {
            input type="checkbox" name="late" value="1";
            "also events that arrived too late, as history does"
        }
    }
}

/// `POST /campaigns/form`: the form again, with its trial.
pub async fn form(visit: Visit) -> Answer {
    page(&visit, &Sheet::submitted(&visit.form), &[]).await
}

/// `POST /campaigns/try`: what the text would do, for the part of the page beside it.
pub async fn try_out(visit: Visit) -> Answer {
    let shown = trial::trial(&visit, visit.form.exact("text")).await;
    Ok(Html(shown.into_string()).into_response())
}

/// `POST /campaigns/backtest`: begins a backtest of the text over the last days.
pub async fn backtest(visit: Visit) -> Answer {
    let typed = Sheet::submitted(&visit.form);
    let document = match checked(&visit, &typed.text).await {
        Ok(document) => document,
        Err(SaveError::Invalid(problems)) => return page(&visit, &typed, &problems).await,
        Err(SaveError::Other(fault)) => return Err(fault),
    };

    let days: i64 = visit.form.text("days").parse().unwrap_or(7);
    let from_s = visit.now_s() - days.clamp(1, 400) * 86_400;
    let with_late = visit.form.given("late").is_some();
    let request = json!({"campaigns": [document], "fromTime": from_s, "ignoreLateness": with_late});
    let job = visit.desk.backtest(&request, &visit.person)?;
    let address = format!("/campaigns/jobs/{job}");
    Ok(done(&address, "campaign.backtest", format!("job {job}"), json!({"days": days})))
}

/// A text as a document that can be saved.
async fn checked(visit: &Visit, text: &str) -> Result<Json, SaveError> {
    let document = parse(text).map_err(SaveError::Invalid)?;
    visit.desk.check(KIND, &document).await?;
    Ok(document)
}

/// `POST /campaigns/save`
pub async fn save(visit: Visit) -> Answer {
    let typed = Sheet::submitted(&visit.form);
    let document = match parse(&typed.text) {
        Ok(document) => document,
        Err(problems) => return page(&visit, &typed, &problems).await,
    };
    check_no_approval(&visit.portal)?;

    match visit.desk.save(KIND, document, typed.version, &visit.person, &typed.reason).await {
        Ok(saved) => {
            let address = format!("/campaigns/{}?note=saved", saved.id);
            let details = json!({"version": saved.version, "reason": typed.reason});
            Ok(done(&address, "campaign.save", format!("campaign {}", saved.id), details))
        }
        Err(SaveError::Invalid(problems)) => page(&visit, &typed, &problems).await,
        Err(SaveError::Other(fault)) => Err(fault),
    }
}

/// `POST /campaigns/propose`: the text as a draft.
pub async fn propose(visit: Visit) -> Answer {
    let typed = Sheet::submitted(&visit.form);
    let configuration = match checked(&visit, &typed.text).await {
        Ok(document) => document,
        Err(SaveError::Invalid(problems)) => return page(&visit, &typed, &problems).await,
        Err(SaveError::Other(fault)) => return Err(fault),
    };

    document::propose(&visit, KIND, configuration, typed.version).await
}

/// A notice in place of a trial.
fn cannot(words: &str) -> Markup {
    parts::notice(Mood::Wait, &html! { (words) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_campaign() {
        let json = parse(EXAMPLE).unwrap_or_else(|problems| panic!("{problems:?}"));
        let campaign = Campaign::from_json(&json).unwrap_or_else(|problems| panic!("{problems:?}"));
        assert_eq!(campaign.state, State::Draft);
    }
}
