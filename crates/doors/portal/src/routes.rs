//! The route table of the portal: one line for each page and form, and one for each link of the
//! navigation. The router, the guard, the audit log, `docs/rights.md` and the tests are derived
//! from it.

use crate::assets::{self, ASSETS};
use crate::guard::{self, Guard};
use crate::html::layout::Link;
use crate::{Portal, pages};
use axum::Router;
use axum::handler::Handler;
use axum::http::{HeaderMap, Method};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get, on};
use raingauge_core::access::Role;
use std::fmt;
use tower_http::compression::CompressionLayer;

/// The requirement of a route on its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Open to everyone, signed in or not.
    Nothing,
    Role(Role),
    /// The role and a recent sign-in, for forms that grant rights.
    FreshRole(Role),
}

impl Needs {
    pub const fn role(self) -> Option<Role> {
        match self {
            Self::Nothing => None,
            Self::Role(role) | Self::FreshRole(role) => Some(role),
        }
    }
}

const VIEWER: Needs = Needs::Role(Role::Viewer);
const EDITOR: Needs = Needs::Role(Role::Editor);
const ADMIN: Needs = Needs::Role(Role::Admin);
const FRESH_ADMIN: Needs = Needs::FreshRole(Role::Admin);

/// The group of the pages about counters.
const COUNTING: &str = "Counting";

/// A line of the table.
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub needs: Needs,
    /// The verb in the audit log; `None` for a route that changes nothing, or writes its own
    /// entries.
    pub verb: Option<&'static str>,
    mount: Mount,
}

impl fmt::Debug for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.method, self.path)
    }
}

/// Wraps a handler in its guard.
type Mount = Box<dyn FnOnce(Guard) -> MethodRouter<Portal> + Send>;

/// The router of all pages, with those of products, and of the files that they load.
pub fn router(portal: Portal, products: Pages) -> Router {
    let mut router = Router::new();
    for Route { path, needs, verb, mount, .. } in routes().join(products).routes {
        let guard = Guard { portal: portal.clone(), needs, path, verb };
        router = router.route(path, mount(guard));
    }
    for asset in ASSETS {
        let answer = move |headers: HeaderMap| async move { assets::answer(asset, &headers) };
        router = router.route(asset.path, get(answer));
    }
    // Pages shrink to a sixth of their size. Their only lasting secret, the token of forms, is
    // masked afresh for each page, so that its length gives nothing away.
    router.layer(CompressionLayer::new()).with_state(portal)
}

/// The whole table, without the pages of products.
pub fn routes() -> Pages {
    people(watching(editing(reading(Pages::default()))))
}

/// The links of the navigation: counting, the products, then what they share.
pub fn navigation(products: &Pages) -> Vec<Link> {
    let own = routes().links;
    let (counting, shared): (Vec<Link>, Vec<Link>) =
        own.into_iter().partition(|link| link.group == COUNTING);
    [counting, products.links.clone(), shared].concat()
}

/// Creating and editing: forms, drafts, and actions on published counters.
fn editing(routes: Pages) -> Pages {
    use pages::{actions, drafts, edit, erase};
    routes
        .group(COUNTING)
        .link("/drafts", "Drafts", Role::Viewer)
        .get("/counters/new", EDITOR, edit::new)
        .get("/counters/{id}/edit", EDITOR, edit::edit)
        .get("/drafts", VIEWER, drafts::list)
        .post("/drafts", EDITOR, "draft.save", edit::save)
        .ask("/drafts/form", EDITOR, edit::change)
        .ask("/drafts/preview", EDITOR, edit::preview)
        .get("/drafts/{id}", VIEWER, drafts::one)
        .get("/drafts/{id}/preview", VIEWER, drafts::preview)
        .get("/drafts/{id}/edit", EDITOR, edit::edit_draft)
        .post("/drafts/{id}/send", EDITOR, "draft.send", drafts::submit)
        .post("/drafts/{id}/approve", EDITOR, "draft.approve", drafts::approve)
        .post("/drafts/{id}/reject", EDITOR, "draft.reject", drafts::reject)
        .post("/drafts/{id}/withdraw", EDITOR, "draft.withdraw", drafts::withdraw)
        .post("/drafts/{id}/apply", EDITOR, "draft.apply", drafts::apply)
        .get("/counters/{id}/pause", EDITOR, actions::ask_pause)
        .post("/counters/{id}/pause", EDITOR, "counter.pause", actions::pause)
        .get("/counters/{id}/resume", EDITOR, actions::ask_resume)
        .post("/counters/{id}/resume", EDITOR, "counter.resume", actions::resume)
        .get("/counters/{id}/archive", EDITOR, actions::ask_archive)
        .post("/counters/{id}/archive", EDITOR, "counter.archive", actions::archive)
        .get("/counters/{id}/roll-back", EDITOR, actions::ask_roll_back)
        .post("/counters/{id}/roll-back", EDITOR, "counter.roll-back", actions::roll_back)
        .get("/counters/{id}/backfill", VIEWER, actions::backfill)
        .post("/counters/{id}/backfill", EDITOR, "counter.backfill", actions::start_backfill)
        .get("/counters/{id}/erase", ADMIN, erase::ask)
        .post("/counters/{id}/erase", ADMIN, "counter.erase", erase::erase)
        .post("/counters/{id}/erase-key", ADMIN, "counter.erase_key", erase::erase_key)
        .post("/counters/{id}/purge", ADMIN, "counter.purge", erase::purge)
}

/// Counters, their charts and their keys, and single counts.
fn reading(routes: Pages) -> Pages {
    routes
        .group(COUNTING)
        .link("/", "Counters", Role::Viewer)
        .link("/query", "Explain", Role::Viewer)
        .get("/", Needs::Nothing, pages::counters::home)
        .get("/counters/{id}", VIEWER, pages::counter::page)
        .get("/counters/{id}/chart.svg", VIEWER, pages::counter::picture)
        .get("/counters/{id}/series.csv", VIEWER, pages::counter::series)
        .get("/counters/{id}/keys.csv", VIEWER, pages::counter::keys)
        .get("/counters/{id}/cost", VIEWER, pages::counter::cost)
        .get("/counters/{id}/versions", VIEWER, pages::counter::compare)
        .get("/counters/{id}/counter.yaml", VIEWER, pages::export::counter)
        .get("/settings.yaml", VIEWER, pages::export::settings)
        .get("/query", VIEWER, pages::query::page)
        .get("/query/keys", VIEWER, pages::query::keys)
}

/// Incoming events, checks of the counts, and the state of the system.
fn watching(routes: Pages) -> Pages {
    use pages::system::cache::rollout;
    routes
        .group(COUNTING)
        .link("/events", "Events", Role::Viewer)
        .link("/checks", "Checks", Role::Viewer)
        .group("System")
        .link("/system", "Overview", Role::Viewer)
        .link("/system/cache", "Cache", Role::Viewer)
        .get("/events", VIEWER, pages::events::page)
        .get("/events/{type}", VIEWER, pages::events::detail_page)
        .get("/checks", VIEWER, pages::checks::page)
        .post("/checks/now", EDITOR, "check.now", pages::checks::now)
        .post("/checks/recount", VIEWER, "check.recount", pages::checks::begin_recount)
        .get("/checks/recount/{id}", VIEWER, pages::checks::recount_page)
        .get("/system", VIEWER, pages::system::page)
        .get("/system/cache", VIEWER, pages::system::cache::page)
        .post("/system/cache", ADMIN, "cache_policy.replace", pages::system::cache::set)
        .ask("/system/cache/preview", ADMIN, pages::system::cache::preview)
        .post("/system/cache/back", ADMIN, "cache_policy.replace", pages::system::cache::back)
        .post("/system/cache/rollouts", ADMIN, "rollout.begin", rollout::begin)
        .get("/system/cache/rollouts/{id}", VIEWER, rollout::report)
        .get("/system/cache/rollouts/{id}/report.json", VIEWER, rollout::report_json)
        .post("/system/cache/rollouts/{id}/stop", ADMIN, "rollout.stop", rollout::stop)
        .post("/system/cache/rollouts/{id}/go-on", ADMIN, "rollout.go_on", rollout::go_on)
        .post("/system/compaction", ADMIN, "compaction.begin", pages::system::start_compaction)
        .post("/system/compaction/stop", ADMIN, "compaction.stop", pages::system::stop_compaction)
}

/// Signing in and out, accounts, people, tokens, the audit log. Signing in writes its own entries.
fn people(routes: Pages) -> Pages {
    use pages::{account, audit, openid, people, sign_in, tokens};
    routes
        .group("People")
        .link("/people", "People", Role::Admin)
        .link("/tokens", "Tokens", Role::Admin)
        .link("/audit", "Audit log", Role::Admin)
        .get("/sign-in", Needs::Nothing, sign_in::form)
        .ask("/sign-in", Needs::Nothing, sign_in::enter)
        .get("/sign-in/openid", Needs::Nothing, openid::leave)
        .get(openid::BACK, Needs::Nothing, openid::back)
        .post("/sign-out", VIEWER, "session.end", sign_in::leave)
        .get("/welcome/{secret}", Needs::Nothing, sign_in::welcome)
        .ask("/welcome/{secret}", Needs::Nothing, sign_in::accept)
        .get("/account", VIEWER, account::show)
        .post("/account/password", VIEWER, "person.password", account::change_password)
        .post("/account/sessions/end", VIEWER, "session.end", account::end_session)
        .get("/people", ADMIN, people::list)
        .post("/people/invite", FRESH_ADMIN, "person.invite", people::invite)
        .post("/people/withdraw", ADMIN, "person.withdraw_invitation", people::withdraw)
        .post("/people/{id}/role", FRESH_ADMIN, "person.role", people::change_role)
        .post("/people/{id}/disable", ADMIN, "person.disable", people::disable)
        .post("/people/{id}/enable", FRESH_ADMIN, "person.enable", people::enable)
        .post("/people/{id}/remove", FRESH_ADMIN, "person.remove", people::remove)
        .post("/people/{id}/sign-out", ADMIN, "person.sign_out", people::sign_out)
        .get("/tokens", ADMIN, tokens::list)
        .post("/tokens", FRESH_ADMIN, "token.create", tokens::create)
        .post("/tokens/{id}/revoke", ADMIN, "token.revoke", tokens::revoke)
        .get("/audit", ADMIN, audit::list)
        .get("/audit.csv", ADMIN, audit::csv)
        .get("/audit.ndjson", ADMIN, audit::ndjson)
}

/// Lines of the table, and links of the navigation, in insertion order.
#[derive(Default)]
pub struct Pages {
    routes: Vec<Route>,
    links: Vec<Link>,
    /// The group of the links that follow.
    group: Option<&'static str>,
}

impl Pages {
    /// Puts the links that follow into this group of the navigation. The links of a product that
    /// names no group are groups of their own.
    pub fn group(mut self, name: &'static str) -> Self {
        self.group = Some(name);
        self
    }

    /// Adds a link to the navigation, for people with this role.
    pub fn link(mut self, path: &'static str, label: &'static str, role: Role) -> Self {
        let group = self.group.unwrap_or(label);
        self.links.push(Link { group, path, label, role });
        self
    }

    /// The lines of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// Adds the pages of another list.
    pub fn join(mut self, other: Self) -> Self {
        self.routes.extend(other.routes);
        self.links.extend(other.links);
        self
    }

    pub fn get<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        self.add(Method::GET, path, needs, None, handler)
    }

    /// A form that changes something. The guard has checked that it comes from the portal's own
    /// pages.
    pub fn post<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        verb: &'static str,
        handler: H,
    ) -> Self {
        self.add(Method::POST, path, needs, Some(verb), handler)
    }

    /// A form without an audit entry: it only reads, with input that is too long for an address.
    pub fn ask<T: 'static, H: Handler<T, Portal>>(
        self,
        path: &'static str,
        needs: Needs,
        handler: H,
    ) -> Self {
        self.add(Method::POST, path, needs, None, handler)
    }

    fn add<T: 'static, H: Handler<T, Portal>>(
        mut self,
        method: Method,
        path: &'static str,
        needs: Needs,
        verb: Option<&'static str>,
        handler: H,
    ) -> Self {
        let filter = if method == Method::GET { MethodFilter::GET } else { MethodFilter::POST };
        let mount: Mount = Box::new(move |guard| {
            on(filter, handler).layer(from_fn_with_state(guard, guard::pass))
        });
        self.routes.push(Route { method, path, needs, verb, mount });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::layout::Place;

    #[test]
    fn each_link_leads_to_a_page_that_its_role_may_see() {
        let routes = routes();
        for link in navigation(&Pages::default()) {
            let page = routes.iter().find(|route| route.path == link.path);
            let page = page.unwrap_or_else(|| panic!("{} is no page", link.path));
            assert_eq!(page.method, Method::GET, "{page:?}");
            assert!(page.needs.role().is_none_or(|role| role <= link.role), "{page:?}");
        }
    }

    #[test]
    fn each_place_is_a_link() {
        let places = [
            Place::Counters,
            Place::Drafts,
            Place::Query,
            Place::Events,
            Place::Checks,
            Place::System,
            Place::Cache,
            Place::People,
            Place::Tokens,
            Place::Audit,
        ];
        let mut paths: Vec<&str> = places.iter().filter_map(|place| place.path()).collect();
        let links = navigation(&Pages::default());
        let mut linked: Vec<&str> = links.iter().map(|link| link.path).collect();
        paths.sort_unstable();
        linked.sort_unstable();
        assert_eq!(paths, linked);
    }

    #[test]
    fn the_links_of_a_product_stand_behind_those_of_counting() {
        let pages = Pages::default()
            .link("/drops", "Drops", Role::Viewer)
            .group("Umbrellas")
            .link("/umbrellas", "All", Role::Viewer)
            .link("/umbrellas/lost", "Lost", Role::Editor);

        let links = navigation(&pages);
        let mut groups: Vec<&str> = links.iter().map(|link| link.group).collect();
        groups.dedup();
        assert_eq!(groups, ["Counting", "Drops", "Umbrellas", "System", "People"]);
    }
}
