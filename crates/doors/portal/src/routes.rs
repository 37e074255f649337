//! Every page, what it needs of whoever asks, and what answers.

use crate::assets::{self, ASSETS};
use crate::guard::{self, Guard};
use crate::person::Role;
use crate::{Portal, pages};
use axum::Router;
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, get, on};

/// What a page asks of whoever wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Anybody may have it, signed in or not.
    Nothing,
    Role(Role),
}

const VIEWER: Needs = Needs::Role(Role::Viewer);
const EDITOR: Needs = Needs::Role(Role::Editor);
const ADMIN: Needs = Needs::Role(Role::Admin);

/// A route, for tests that ask every one of them as everybody.
#[derive(Clone, Debug)]
pub struct Listed {
    pub method: &'static str,
    pub path: &'static str,
    pub needs: Needs,
}

/// All pages and their files.
pub fn router(portal: Portal) -> Router {
    let routes = all(&portal);
    let files = ASSETS.iter().fold(routes.router, |router, asset| {
        router.route(
            asset.path,
            get(move |headers: HeaderMap| async move { assets::answer(asset, &headers) }),
        )
    });
    files.with_state(portal)
}

/// Every route with what it needs. A new one stands here, and so cannot be forgotten by the tests.
pub fn list(portal: &Portal) -> Vec<Listed> {
    all(portal).listed
}

fn all(portal: &Portal) -> Routes {
    let routes = Routes { portal: portal.clone(), router: Router::new(), listed: Vec::new() };
    people(watching(editing(reading(routes))))
}

/// Creating and editing: forms, drafts, and what is done to a counter as it stands.
fn editing(routes: Routes) -> Routes {
    use pages::{actions, drafts, edit, erase};
    routes
        .get("/counters/new", EDITOR, edit::new)
        .get("/counters/{id}/edit", EDITOR, edit::edit)
        .get("/drafts", VIEWER, drafts::list)
        .post("/drafts", EDITOR, edit::save)
        .ask("/drafts/form", EDITOR, edit::change)
        .ask("/drafts/preview", EDITOR, edit::preview)
        .get("/drafts/{id}", VIEWER, drafts::one)
        .get("/drafts/{id}/preview", VIEWER, drafts::preview)
        .get("/drafts/{id}/edit", EDITOR, edit::edit_draft)
        .post("/drafts/{id}/send", EDITOR, drafts::send)
        .post("/drafts/{id}/approve", EDITOR, drafts::approve)
        .post("/drafts/{id}/reject", EDITOR, drafts::reject)
        .post("/drafts/{id}/withdraw", EDITOR, drafts::withdraw)
        .post("/drafts/{id}/apply", EDITOR, drafts::apply)
        .get("/counters/{id}/pause", EDITOR, actions::ask_pause)
        .post("/counters/{id}/pause", EDITOR, actions::pause)
        .get("/counters/{id}/resume", EDITOR, actions::ask_resume)
        .post("/counters/{id}/resume", EDITOR, actions::resume)
        .get("/counters/{id}/archive", EDITOR, actions::ask_archive)
        .post("/counters/{id}/archive", EDITOR, actions::archive)
        .get("/counters/{id}/roll-back", EDITOR, actions::ask_roll_back)
        .post("/counters/{id}/roll-back", EDITOR, actions::roll_back)
        .get("/counters/{id}/backfill", VIEWER, actions::backfill)
        .post("/counters/{id}/backfill", EDITOR, actions::start_backfill)
        .get("/counters/{id}/erase", ADMIN, erase::ask)
        .post("/counters/{id}/erase", ADMIN, erase::erase)
        .post("/counters/{id}/erase-key", ADMIN, erase::erase_key)
        .post("/counters/{id}/purge", ADMIN, erase::purge)
}

/// Counters, their charts and their keys, and queries.
fn reading(routes: Routes) -> Routes {
    routes
        .get("/", Needs::Nothing, pages::counters::home)
        .get("/counters/{id}", VIEWER, pages::counter::page)
        .get("/counters/{id}/chart.svg", VIEWER, pages::counter::picture)
        .get("/counters/{id}/series.csv", VIEWER, pages::counter::series)
        .get("/counters/{id}/cost", VIEWER, pages::counter::cost)
        .get("/counters/{id}/versions", VIEWER, pages::counter::compare)
        .get("/counters/{id}/counter.yaml", VIEWER, pages::export::counter)
        .get("/settings.yaml", VIEWER, pages::export::settings)
        .get("/query", VIEWER, pages::query::page)
        .get("/query/keys", VIEWER, pages::query::keys)
}

/// What arrives, whether the counts are right, and how the system does.
fn watching(routes: Routes) -> Routes {
    use pages::system::cache::rollout;
    routes
        .get("/events", VIEWER, pages::events::page)
        .get("/events/{type}", VIEWER, pages::events::detail_page)
        .get("/checks", VIEWER, pages::checks::page)
        .post("/checks/now", EDITOR, pages::checks::now)
        .post("/checks/recount", VIEWER, pages::checks::begin_recount)
        .get("/checks/recount/{id}", VIEWER, pages::checks::recount_page)
        .get("/system", VIEWER, pages::system::page)
        .get("/system/cache", VIEWER, pages::system::cache::page)
        .post("/system/cache", ADMIN, pages::system::cache::set)
        .ask("/system/cache/preview", ADMIN, pages::system::cache::preview)
        .post("/system/cache/back", ADMIN, pages::system::cache::back)
        .post("/system/cache/rollouts", ADMIN, rollout::begin)
        .get("/system/cache/rollouts/{id}", VIEWER, rollout::report)
        .get("/system/cache/rollouts/{id}/report.json", VIEWER, rollout::report_json)
        .post("/system/cache/rollouts/{id}/stop", ADMIN, rollout::stop)
        .post("/system/cache/rollouts/{id}/go-on", ADMIN, rollout::go_on)
        .post("/system/compaction", ADMIN, pages::system::start_compaction)
        .post("/system/compaction/stop", ADMIN, pages::system::stop_compaction)
}

/// Signing in and out, accounts, people, tokens, the audit log.
fn people(routes: Routes) -> Routes {
    use pages::{account, audit, openid, people, sign_in, tokens};
    routes
        .get("/sign-in", Needs::Nothing, sign_in::form)
        .post("/sign-in", Needs::Nothing, sign_in::enter)
        .get("/sign-in/openid", Needs::Nothing, openid::leave)
        .get(openid::BACK, Needs::Nothing, openid::back)
        .post("/sign-out", VIEWER, sign_in::leave)
        .get("/welcome/{secret}", Needs::Nothing, sign_in::welcome)
        .post("/welcome/{secret}", Needs::Nothing, sign_in::accept)
        .get("/account", VIEWER, account::show)
        .post("/account/password", VIEWER, account::change_password)
        .post("/account/sessions/end", VIEWER, account::end_session)
        .get("/people", ADMIN, people::list)
        .post_fresh("/people/invite", ADMIN, people::invite)
        .post("/people/withdraw", ADMIN, people::withdraw)
        .post_fresh("/people/{id}/role", ADMIN, people::change_role)
        .post("/people/{id}/disable", ADMIN, people::disable)
        .post_fresh("/people/{id}/enable", ADMIN, people::enable)
        .post_fresh("/people/{id}/remove", ADMIN, people::remove)
        .post("/people/{id}/sign-out", ADMIN, people::sign_out)
        .get("/tokens", ADMIN, tokens::list)
        .post_fresh("/tokens", ADMIN, tokens::create)
        .post("/tokens/{id}/revoke", ADMIN, tokens::revoke)
        .get("/audit", ADMIN, audit::list)
        .get("/audit.csv", ADMIN, audit::csv)
        .get("/audit.ndjson", ADMIN, audit::ndjson)
}

/// What a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page,
    Change,
    /// A change that gives somebody rights.
    Grant,
    Ask,
}

struct Routes {
    portal: Portal,
    router: Router<Portal>,
    listed: Vec<Listed>,
}

impl Routes {
    fn get<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        self.add(Kind::Page, path, needs, handler)
    }

    /// Forms that change something. The guard has checked that the form is of the person's own pages.
    fn post<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        self.add(Kind::Change, path, needs, handler)
    }

    /// Forms that give somebody rights, for which the sign-in has to be recent.
    fn post_fresh<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        self.add(Kind::Grant, path, needs, handler)
    }

    /// Forms that are too long for an address, and only ask something: none of the audit log's.
    fn ask<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        self.add(Kind::Ask, path, needs, handler)
    }

    fn add<T: 'static, H: Handler<T, Portal>>(
        mut self,
        kind: Kind,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        let (filter, method) = match kind {
            Kind::Page => (MethodFilter::GET, "GET"),
            Kind::Change | Kind::Grant | Kind::Ask => (MethodFilter::POST, "POST"),
        };
        let changes = matches!(kind, Kind::Change | Kind::Grant);
        let guard = Guard {
            portal: self.portal.clone(),
            needs,
            path,
            changes,
            is_fresh: kind == Kind::Grant,
        };
        self.router = self
            .router
            .route(path, on(filter, handler).layer(from_fn_with_state(guard, guard::pass)));
        self.listed.push(Listed { method, path, needs });
        self
    }
}
