//! The form of a document: its text, what it would do beside it, and the reason for the change.

use super::problems;
use crate::html::parts::{self, Field};
use crate::section::{Answer, Section, Visit, done, reason_field};
use crate::{Fault, Fields, Portal};
use axum::http::StatusCode;
use maud::{Markup, html};
use raingauge_core::counter::Problem;
use raingauge_counters::drafts::{Actor, Proposal};
use raingauge_people::Principal;
use serde_json::{Value as Json, json};

/// What is typed.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    pub text: String,
    /// The version that it changes; 0 for a new document.
    pub version: u32,
    pub reason: String,
}

impl Sheet {
    /// The sheet as it was submitted.
    pub fn submitted(form: &Fields) -> Self {
        Self {
            text: form.exact("text").to_owned(),
            version: form.text("version").parse().unwrap_or(0),
            reason: form.text("reason").to_owned(),
        }
    }
}

/// The form of one kind of documents.
pub struct Editor<'e> {
    /// What such a document is called: `campaign`.
    pub object: &'e str,
    pub label: &'e str,
    pub hint: &'e str,
    /// Where the text is tried while it is typed.
    pub try_at: &'e str,
    pub save_at: &'e str,
    pub propose_at: &'e str,
    /// The heading of what stands beside the form.
    pub beside: &'e str,
    /// Buttons below the text.
    pub tools: Markup,
}

impl Editor<'_> {
    /// Renders the form with what is wrong with its text, and the trial beside it.
    pub fn markup(
        &self,
        portal: &Portal,
        person: &Principal,
        sheet: &Sheet,
        found: &[Problem],
        trial: &Markup,
    ) -> Markup {
        html! {
            (problems(found, &sheet.text))
            div.editor {
                form.editor-form id="document-form" method="post" action=(self.save_at) {
                    (parts::csrf(person))
                    input type="hidden" name="version" value=(sheet.version);
                    (self.text_card(sheet))
                    (self.save_card(sheet, portal.drafts.needs_approval()))
                }
                aside.editor-preview aria-labelledby="preview-title" {
                    h2 #preview-title { (self.beside) }
                    div #preview aria-live="polite" { (trial) }
                }
            }
        }
    }

    fn text_card(&self, sheet: &Sheet) -> Markup {
        let field = Field { name: "text", label: self.label, hint: self.hint, problem: None };
        let control = html! {
            textarea.mono id="text" name="text" rows="32" spellcheck="false" autocomplete="off" aria-describedby="text-words"
                hx-post=(self.try_at) hx-trigger="input changed delay:600ms" hx-target="#preview" hx-include="#document-form" hx-sync="this:replace" { (sheet.text) }
        };
        html! {
            section.card.answer {
                (field.around(&control))
                div.actions { (self.tools) }
            }
        }
    }

    fn save_card(&self, sheet: &Sheet, must_propose: bool) -> Markup {
        html! {
            section.card.answer {
                (reason_field(self.object, &sheet.reason))
                div.actions {
                    @if !must_propose { button.button.primary type="submit" { "Save" } }
                    button.button.primary[must_propose] type="submit" formaction=(self.propose_at) { "Propose as a draft" }
                }
                @if must_propose { p.quiet { "A second person has to approve it before it takes effect." } }
            }
        }
    }
}

/// Refuses to save a document that has to be proposed.
pub fn check_no_approval(portal: &Portal) -> Result<(), Fault> {
    if !portal.drafts.needs_approval() {
        return Ok(());
    }
    let advice = "Propose it as a draft; a second person approves it.";
    Err(Fault::new(StatusCode::FORBIDDEN, "This has to be approved", advice))
}

/// Makes a checked document a draft, and leads to it.
pub async fn propose<D: Section>(
    visit: &Visit<D>,
    kind: &'static str,
    configuration: Json,
    base_version: u32,
) -> Answer {
    let proposal = Proposal { kind, configuration, base_version };
    let change = visit.portal.drafts.create(proposal, Actor::person(&visit.person.name)).await?;
    let address = format!("/drafts/{}?note=draft-saved", change.draft.id);
    let object = format!("draft {}", change.draft.id);
    Ok(done(&address, "draft.save", object, json!({"kind": kind})))
}
