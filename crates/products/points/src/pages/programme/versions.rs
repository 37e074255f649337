//! The versions of a programme, each with what it changed.

use crate::pages::view::ProgrammeView;
use crate::pages::visit::Visit;
use maud::{Markup, html};
use raingauge_portal::Fault;
use raingauge_portal::html::drafts;
use raingauge_portal::html::parts;
use raingauge_ports::campaigns::StoredDocument;

/// Versions that a page shows.
const SHOWN: usize = 20;

pub async fn card(visit: &Visit, programme: &ProgrammeView) -> Result<Markup, Fault> {
    let versions = visit.desk.versions(&programme.name).await?;
    Ok(html! {
        section.card aria-labelledby="versions-title" {
            h2 #versions-title { "Versions" }
            @for (place, one) in versions.iter().enumerate().take(SHOWN) {
                (version(visit, programme, one, versions.get(place + 1)))
            }
            @if versions.len() > SHOWN { p.quiet { "The newest " (SHOWN) " of " (versions.len()) "." } }
        }
    })
}

fn version(
    visit: &Visit,
    programme: &ProgrammeView,
    one: &StoredDocument,
    previous: Option<&StoredDocument>,
) -> Markup {
    let changed = previous.map(|previous| visit.desk.differences(previous, one));
    let changed_s = one.changed_ms.div_euclid(1_000);
    html! {
        details open[one.version == programme.version && previous.is_some()] {
            summary {
                "Version " (one.version)
                span.quiet { " by " (one.changed_by) ", " (parts::moment(changed_s, &programme.zone)) }
            }
            @if !one.reason.is_empty() { p { q { (one.reason) } } }
            @match &changed {
                Some(changed) => { (drafts::changes(changed, "before", "after")) }
                None => { p.quiet { "The first version." } }
            }
        }
    }
}
