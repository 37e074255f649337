//! The pages of points in the portal.
//!
//! ```text
//!   address ──▶ page ──▶ Visit: person, fields, path ──▶ Desk: the services, as pages use them
//!                          │
//!                          └──▶ ProgrammeView: points and dates as a programme writes them
//! ```

mod audit;
mod checks;
mod desk;
mod editor;
mod faults;
mod forecast;
mod jobs;
mod kinds;
mod liability;
mod list;
mod members;
mod partners;
mod programme;
mod queues;
mod rewards;
mod rules;
mod today;
mod view;
mod visit;

use crate::Points;
use desk::Desk;
use raingauge_core::access::Role;
use raingauge_portal::{Needs, Pages};
use visit::{HOME, page};

const VIEWER: Needs = Needs::Role(Role::Viewer);
const EDITOR: Needs = Needs::Role(Role::Editor);
const ADMIN: Needs = Needs::Role(Role::Admin);

/// The address of a member.
macro_rules! member {
    ($rest:literal) => {
        concat!("/points/{programme}/members/{member}", $rest)
    };
}

impl Points {
    /// The pages of the portal.
    pub fn pages(&self) -> Pages {
        let desk = Desk::new(self);
        let pages = Pages::default().group("Points").link(HOME, "Points", Role::Viewer);
        operating(reading(editing(pages, &desk), &desk), &desk)
    }
}

/// Creating and changing programmes.
fn editing(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get("/points/new", EDITOR, page(desk, editor::new))
        .get("/points/{programme}/edit", EDITOR, page(desk, editor::edit))
        .ask("/points/form", EDITOR, page(desk, editor::form))
        .ask("/points/try", EDITOR, page(desk, editor::try_out))
        .post("/points/forecast", EDITOR, "points.forecast", page(desk, forecast::begin))
        .get("/points/jobs/{job}", EDITOR, page(desk, jobs::page))
        .post("/points/jobs/{job}/end", EDITOR, "job.cancel", page(desk, jobs::end))
        .post("/points/save", EDITOR, "programme.save", page(desk, editor::save))
        .post("/points/propose", EDITOR, "draft.save", page(desk, editor::propose))
}

/// What programmes did. Members are values of events, which viewers do not see.
fn reading(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get(HOME, VIEWER, page(desk, list::list))
        .get("/points/{programme}", VIEWER, page(desk, programme::page))
        .get("/points/{programme}/liability", VIEWER, page(desk, liability::page))
        .get("/points/{programme}/partners", VIEWER, page(desk, partners::page))
        .get("/points/{programme}/rewards", VIEWER, page(desk, rewards::page))
        .get("/points/{programme}/members", EDITOR, page(desk, members::search))
        .get(member!(""), EDITOR, page(desk, members::page))
        .get(member!("/statement.csv"), EDITOR, page(desk, members::download))
        .post(member!("/adjust"), EDITOR, "points.correct", page(desk, members::adjust))
        .get("/points/{programme}/entries/{book}/{sequence}", EDITOR, page(desk, members::entry))
}

/// Queues, dead letters, sweeps and audits.
fn operating(pages: Pages, desk: &Desk) -> Pages {
    pages
        .get("/points/queues", VIEWER, page(desk, queues::list))
        .get("/points/queues/{queue}", EDITOR, page(desk, queues::one))
        .post("/points/queues/{queue}/redrive", ADMIN, "queue.redrive", page(desk, queues::redrive))
        .post("/points/queues/{queue}/discard", ADMIN, "queue.discard", page(desk, queues::discard))
        .get("/points/checks", VIEWER, page(desk, checks::page))
        .post("/points/checks/sweep", ADMIN, "points.sweep", page(desk, checks::sweep))
        .post("/points/checks/audit", ADMIN, "points.audit", page(desk, audit::begin))
}
