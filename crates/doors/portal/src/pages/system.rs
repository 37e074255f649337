//! The system page: current activity, warnings, running instances, and how counts are cached.

pub mod cache;
mod charts;
mod compaction;
mod figures;
mod instances;
mod overview;
mod tables;
mod warnings;

pub use compaction::{start as start_compaction, stop as stop_compaction};

use crate::caller::{Caller, Page};
use crate::fields::Query;
use crate::html::{layout, notes, parts};
use axum::http::Uri;
use maud::{Markup, html};
use overview::Overview;
use raingauge_people::Principal;

/// `GET /system`
pub async fn page(caller: Caller, Query(fields): Query, uri: Uri) -> Page {
    let overview = Overview::look(&caller.portal, &fields).await;
    let again = uri.path_and_query().map_or("/system", |again| again.as_str());
    let body = html! {
        div.page-head {
            h1 { "System" }
            p.quiet { "Refreshes every 5 seconds while it is visible." }
        }
        (notes::shown(&fields))
        // Of the parts that refresh, `system.js` announces only warnings, in this element.
        div #system-announcements.visually-hidden role="status" aria-live="polite" {}
        (parts::live("system-live", Some((again, "every 5s")), &live(&overview, &caller.person)))
    };

    Ok(caller.page(layout::Place::System, "System", &body))
}

/// All parts of the page that refresh.
fn live(overview: &Overview, person: &Principal) -> Markup {
    html! {
        (warnings::section(&warnings::of(overview)))
        (figures::section(overview))
        (charts::section(overview))
        (tables::section(overview))
        (instances::section(overview))
        (compaction::section(overview, person))
    }
}
