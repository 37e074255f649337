//! The form that creates and edits a counter, and its preview while the person types.

use crate::caller::{Caller, Page, Submitted};
use crate::fault::Fault;
use crate::fields::Query;
use crate::form::{Form, Node};
use crate::html::counter_form::{Sheet, example_keys};
use crate::html::{drafts as parts_of_drafts, layout, parts, trial};
use crate::pages::audit_actions;
use crate::pages::drafts::{actor, counter_of};
use crate::{Answer, Portal};
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect};
use maud::{Markup, html};
use raingauge_core::counter::{Counter, Problem};
use raingauge_counters::difference;
use raingauge_counters::documents::CounterKind;
use raingauge_counters::drafts::{self as workflow, OPEN_MAX, Proposal};
use raingauge_counters::observed::Observation;
use raingauge_ports::catalog;
use raingauge_ports::drafts::Draft;
use serde_json::json;

/// `GET /counters/new`: an empty form; `?copy=ID` starts from another counter, `?type=` from an
/// event type.
pub async fn new(caller: Caller, Query(fields): Query) -> Page {
    let mut form = Form { owner: caller.person.name.to_string(), ..Form::usual() };
    if let Some(id) = fields.given("copy").and_then(|id| id.parse().ok()) {
        let copied = caller.portal.counters.get(id).await?.counter;
        form = Form {
            chosen_id: String::new(),
            state: "active".to_owned(),
            ..Form::of_counter(&copied, 0)
        };
    }

    if let Some(kind) = fields.given("type") {
        form.event_type = kind.to_owned();
    }
    page(&caller, &form, &[], &html! {}, &html! {}).await
}

/// `GET /counters/{id}/edit`
pub async fn edit(caller: Caller, Path(id): Path<u32>) -> Page {
    let current = caller.portal.counters.get(id).await?;
    let form = Form::of_counter(&current.counter, current.version);
    let open = caller.portal.drafts.list(true, OPEN_MAX).await?;
    let others: Vec<&Draft> = open.iter().filter(|draft| changes_counter(draft, id)).collect();
    page(&caller, &form, &[], &parts_of_drafts::others(&others), &html! {}).await
}

/// `GET /drafts/{id}/edit`; `?on_top=1` applies the changes of the draft to the current version of
/// the counter.
pub async fn edit_draft(caller: Caller, Path(id): Path<u64>, Query(fields): Query) -> Page {
    let portal = &caller.portal;
    let draft = portal.drafts.get(id).await?;
    if !draft.state.is_open() {
        let advice = "It has ended. Edit the counter instead: that makes a new draft.";
        return Err(Fault::new(StatusCode::CONFLICT, "This draft cannot be edited", advice));
    }

    let Some(mine) = counter_of(&draft)? else {
        let advice = "Only drafts of counters have a form: change it through the API.";
        return Err(Fault::new(StatusCode::CONFLICT, "This draft cannot be edited here", advice));
    };
    let mut form = Form::of_counter(&mine, draft.base_version);
    let mut notice = html! {};

    if fields.given("on_top").is_some() && !draft.is_new() {
        let current = portal.counters.get(mine.id).await?;
        let base = portal.counters.at_version(mine.id, draft.base_version).await?.counter;
        let merged = difference::on_top(&base, &current.counter, &mine);
        form = Form::of_counter(&merged, current.version);

        notice = parts::notice(
            parts::Mood::Wait,
            &html! {
                "This is version " (current.version)
                " with your changes on top. Review them, and save the draft."
            },
        );
    }

    (form.draft, form.revision) = (draft.id, draft.revision);
    page(&caller, &form, &[], &notice, &html! {}).await
}

/// `POST /drafts/form`: the submitted form, changed by the button that was pressed.
pub async fn change(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let mut form = Form::of_fields(&fields);
    let asked = fields.text("do").to_owned();
    press(&mut form, &asked);
    let preview = match asked.as_str() {
        "preview" => trial_of(&caller, &form).await?,
        _ => html! {},
    };
    let body = page(&caller, &form, &[], &html! {}, &preview).await?;
    // With scripts, the preview refreshes after the change.
    Ok(([("hx-trigger-after-settle", "counter-changed")], body).into_response())
}

/// Applies a button of the form.
fn press(form: &mut Form, asked: &str) {
    let (action, number) = asked.split_once(':').unwrap_or((asked, ""));
    let place = number.parse::<usize>().ok();

    match action {
        "add-condition" => Node::add(&mut form.filter, place, false),
        "add-group" => Node::add(&mut form.filter, place, true),
        "remove" => {
            if let Some(place) = place {
                Node::remove(&mut form.filter, place);
            }
        }
        "field" => {
            if !form.template.is_empty() && !form.template.ends_with(':') {
                form.template.push(':');
            }
            form.template.push_str(&format!("{{{number}}}"));
        }
        _ => {}
    }
}

/// `POST /drafts/preview`: what the form would count, for the preview beside it.
pub async fn preview(caller: Caller, Submitted(fields): Submitted) -> Page {
    let form = Form::of_fields(&fields);
    let shown = trial_of(&caller, &form).await?;
    let keys = example_keys(&form, &*caller.portal.observed().await?, true);
    Ok(Html(html! { (shown) (keys) }.into_string()))
}

/// The trial of a form, or what is still missing.
async fn trial_of(caller: &Caller, form: &Form) -> Result<Markup, Fault> {
    let portal = &caller.portal;
    let observed = portal.observed().await?;

    // The name does not affect what is counted.
    let named = match form.name.trim() {
        "" => Form { name: "-".to_owned(), ..form.clone() },
        _ => form.clone(),
    };
    let draft = match described(portal, &named, &observed).await? {
        Ok(draft) => draft,
        Err(problems) => return Ok(incomplete(form, &problems)),
    };
    let base = match form.base_version {
        0 => None,
        version => Some(portal.counters.at_version(form.id, version).await?.counter),
    };
    let trial = portal.try_out(&caller.person, draft.clone(), base).await?;

    Ok(trial::trial(&trial, &draft))
}

/// The counter that a form describes, or its problems, which include an id that is already taken.
async fn described(
    portal: &Portal,
    form: &Form,
    observed: &Observation,
) -> Result<Result<Counter, Vec<Problem>>, Fault> {
    let described = form.counter(&kinds(observed, &form.event_type), portal.clock.now_s());
    let Ok(Counter { id: id @ 1.., .. }) = &described else {
        return Ok(described);
    };

    if form.base_version > 0 {
        return Ok(described);
    }
    Ok(match portal.counters.get(*id).await {
        Ok(taken) => {
            let name = &taken.counter.name;
            let detail = format!(
                "is the id of the counter {name}: choose another, or leave it empty for the next \
                 free id"
            );
            Err(vec![Problem::new("id", detail)])
        }
        Err(catalog::Error::NotFound(_)) => described,
        Err(error) => return Err(error.into()),
    })
}

fn incomplete(form: &Form, problems: &[Problem]) -> Markup {
    if form.event_type.is_empty() || form.template.is_empty() {
        return html! {
            p.quiet { "Choose an event type and write a template to see what they would count." }
        };
    }
    html! {
        p { "The counter cannot be trial_of yet:" }
        ul.reasons { @for problem in problems { li { (problem) } } }
    }
}

/// `POST /drafts`: saves the form as a new draft, or updates the draft that was edited.
pub async fn save(caller: Caller, Submitted(fields): Submitted) -> Answer {
    let portal = &caller.portal;
    let mut form = Form::of_fields(&fields);
    let observed = portal.observed().await?;
    let counter = match described(portal, &form, &observed).await? {
        Ok(counter) => counter,
        Err(problems) => {
            let body = page(&caller, &form, &problems, &html! {}, &html! {}).await?;
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, body).into_response());
        }
    };

    let by = actor(&caller.person);
    let configuration = json!(counter);
    let kept = match form.draft {
        0 => {
            let base_version = form.base_version;
            let configuration = configuration.clone();
            let proposal = Proposal { kind: CounterKind::NAME, configuration, base_version };
            portal.drafts.create(proposal, by).await
        }
        id => portal.drafts.edit(id, form.revision, &configuration, form.base_version, by).await,
    };

    match kept {
        Ok(change) => {
            let place = Redirect::to(&format!("/drafts/{}?note=draft-saved", change.draft.id));
            Ok((Extension(audit_actions::of_draft("draft.save", &change)), place).into_response())
        }
        Err(workflow::Error::Changed(id)) => {
            let theirs = portal.drafts.get(id).await?;
            form.revision = theirs.revision;

            let changed =
                portal.drafts.differences(&theirs.kind, &theirs.configuration, &configuration)?;
            let notice = parts_of_drafts::conflict(&theirs, &changed);
            let body = page(&caller, &form, &[], &notice, &html! {}).await?;

            Ok((StatusCode::CONFLICT, body).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a draft proposes a change of a counter.
fn changes_counter(draft: &Draft, id: u32) -> bool {
    draft.kind == CounterKind::NAME && draft.document_id() == u64::from(id) && !draft.is_new()
}

/// The kinds of the fields of an event type.
fn kinds<'a>(
    observed: &'a Observation,
    kind: &'a str,
) -> impl Fn(&str) -> Option<raingauge_counters::observed::Kind> + 'a {
    move |path| Some(observed.of_type(kind)?.field(path)?.kind)
}

async fn page(
    caller: &Caller,
    form: &Form,
    problems: &[Problem],
    notice: &Markup,
    preview: &Markup,
) -> Page {
    let observed = caller.portal.observed().await?;
    let title = match (form.id, form.draft) {
        (0, 0) => "New counter".to_owned(),
        (0, draft) => format!("Edit draft {draft}"),
        (_, _) if form.name.is_empty() => "Edit the counter".to_owned(),
        (_, _) => format!("Edit {}", form.name),
    };

    let sheet = Sheet { person: &caller.person, form, problems, observed: &observed };
    let body = html! {
        div.page-head { h1 { (title) } }
        (notice)
        (sheet.markup(preview))
    };
    Ok(caller.page(layout::Place::Counters, &title, &body))
}
