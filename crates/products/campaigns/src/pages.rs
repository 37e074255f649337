//! The pages of campaigns in the portal.
//!
//! ```text
//!   address ──▶ page ──▶ Visit: person, fields, path ──▶ Desk: the services, as pages use them
//!                                                          │
//!                                     words, tables, charts of the portal
//! ```

mod actions;
mod compare;
mod decisions;
mod desk;
mod destinations;
mod documents;
mod editor;
mod experiments;
mod faults;
mod jobs;
mod list;
mod one;
mod reasons;
mod report;
mod state;
mod subjects;
mod summary;
mod tables;
mod usage;
mod visit;
mod why;

use crate::Campaigns;
use desk::Desk;
use raingauge_core::access::Role;
use raingauge_portal::{Needs, Pages};
use visit::{HOME, page};

const VIEWER: Needs = Needs::Role(Role::Viewer);
const EDITOR: Needs = Needs::Role(Role::Editor);
const ADMIN: Needs = Needs::Role(Role::Admin);

impl Campaigns {
    /// The pages of the portal.
    pub fn pages(&self) -> Pages {
        let desk = Desk::new(self);
        let pages = Pages::default().link(HOME, "Campaigns", Role::Viewer);
        delivering(sharing(reading(editing(pages, &desk), &desk), &desk), &desk)
    }
}

/// Creating and changing campaigns, and what past events say about them.
fn editing(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get("/campaigns/new", EDITOR, page(desk, editor::new))
        .get("/campaigns/new/text", EDITOR, page(desk, editor::blank))
        .ask("/campaigns/new/guided", EDITOR, page(desk, editor::guided))
        .get("/campaigns/{id}/edit", EDITOR, page(desk, editor::edit))
        .ask("/campaigns/form", EDITOR, page(desk, editor::form))
        .ask("/campaigns/try", EDITOR, page(desk, editor::try_out))
        .post("/campaigns/save", EDITOR, "campaign.save", page(desk, editor::save))
        .post("/campaigns/propose", EDITOR, "draft.save", page(desk, editor::propose))
        .post("/campaigns/backtest", EDITOR, "campaign.backtest", page(desk, editor::backtest))
        .get("/campaigns/{id}/compare", EDITOR, page(desk, compare::page))
        .post("/campaigns/{id}/compare", EDITOR, "campaign.compare", page(desk, compare::begin))
        .get("/campaigns/{id}/state", EDITOR, page(desk, state::ask))
        .post("/campaigns/{id}/state", EDITOR, "campaign.state", page(desk, state::change))
        .post("/campaigns/audit", EDITOR, "campaign.audit", page(desk, jobs::audit))
        .get("/campaigns/jobs/{job}", EDITOR, page(desk, jobs::page))
        .post("/campaigns/jobs/{job}/end", EDITOR, "campaign.job_end", page(desk, jobs::end))
}

/// What campaigns do and did. Explanations show values of events.
fn reading(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get(HOME, VIEWER, page(desk, list::list))
        .get("/campaigns/{id}", VIEWER, page(desk, one::page))
        .get("/campaigns/{id}/versions", VIEWER, page(desk, one::versions))
        .get("/campaigns/why", EDITOR, page(desk, why::page))
        .get("/campaigns/decisions", VIEWER, page(desk, decisions::list))
        .post(
            "/campaigns/decisions/redrive",
            EDITOR,
            "decision.redrive",
            page(desk, decisions::redrive),
        )
        .get("/campaigns/experiments", VIEWER, page(desk, experiments::list))
        .get("/campaigns/subjects/erase", ADMIN, page(desk, subjects::ask))
        .post("/campaigns/subjects/erase", ADMIN, "subject.erase", page(desk, subjects::erase))
}

/// Documents that campaigns share. They name addresses and secrets, so administrators change them.
fn sharing(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get("/campaigns/shared", VIEWER, page(desk, documents::shared))
        .get("/campaigns/documents/{kind}/{name}", VIEWER, page(desk, documents::edit))
        .post(
            "/campaigns/documents/{kind}/{name}",
            ADMIN,
            "campaign.document",
            page(desk, documents::save),
        )
        .post(
            "/campaigns/documents/{kind}/{name}/remove",
            ADMIN,
            "campaign.document_remove",
            page(desk, documents::remove),
        )
        .get("/campaigns/tables", VIEWER, page(desk, tables::list))
        .get("/campaigns/tables/{name}", VIEWER, page(desk, tables::one))
        .post("/campaigns/tables/{name}/load", EDITOR, "table.load", page(desk, tables::load))
}

/// Actions on their way, and where they go.
fn delivering(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get("/campaigns/actions", VIEWER, page(desk, actions::list))
        .get("/campaigns/actions/{action}", VIEWER, page(desk, actions::one))
        .post("/campaigns/actions/redrive", EDITOR, "action.redrive", page(desk, actions::redrive))
        .post("/campaigns/actions/cancel", EDITOR, "action.cancel", page(desk, actions::cancel))
        .get("/campaigns/destinations", VIEWER, page(desk, destinations::list))
        .get("/campaigns/destinations/{name}", VIEWER, page(desk, destinations::one))
        .post(
            "/campaigns/destinations/{name}/probe",
            EDITOR,
            "destination.probe",
            page(desk, destinations::probe),
        )
        .post(
            "/campaigns/destinations/{name}/disable",
            EDITOR,
            "destination.disable",
            page(desk, destinations::disable),
        )
        .post(
            "/campaigns/destinations/{name}/enable",
            EDITOR,
            "destination.enable",
            page(desk, destinations::enable),
        )
}
