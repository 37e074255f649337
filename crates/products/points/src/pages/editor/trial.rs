//! What the text of a programme says, and what it would have cost.

use super::checked;
use crate::pages::rules;
use crate::pages::view::ProgrammeView;
use crate::pages::visit::Visit;
use maud::{Markup, html};
use raingauge_portal::document::{self, SaveError};
use raingauge_portal::html::parts::{self, Mood};
use raingauge_ports::campaigns::StoredDocument;

/// The words of a text and its forecast, or what is wrong with it.
pub async fn trial(visit: &Visit, text: &str) -> Markup {
    let configuration = match checked(visit, text).await {
        Ok(configuration) => configuration,
        Err(SaveError::Invalid(problems)) => return document::problems(&problems, text),
        Err(SaveError::Other(fault)) => {
            return parts::notice(Mood::Wait, &html! { (fault.advice) });
        }
    };

    let programme = ProgrammeView::new(StoredDocument {
        kind: super::PROGRAMME.to_owned(),
        id: configuration["programme"].as_str().unwrap_or_default().to_owned(),
        version: 0,
        configuration,
        is_deleted: false,
        changed_by: String::new(),
        reason: String::new(),
        changed_ms: 0,
    });
    html! {
        // The result of a forecast comes here.
        section.stack #forecast {}
        section.card aria-labelledby="trial-rules" {
            h3 #trial-rules { "What is earned" }
            (rules::rules(&programme))
            (rules::examples_line(&programme))
        }
        section.card aria-labelledby="trial-life" {
            h3 #trial-life { "What becomes of the points" }
            (rules::life(&programme))
        }
    }
}
