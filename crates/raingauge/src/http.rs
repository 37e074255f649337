//! The HTTP door: every route in one place, each with the scope it needs.

mod audit;
pub mod body;
mod cache_policy;
mod counters;
pub mod counts;
pub mod events;
mod guard;
mod idempotency_key;
pub mod largest;
mod maintenance;
mod pages;
mod parameters;
pub mod problem;
mod system;
mod times;

use crate::auth::{Scope, Tokens};
use crate::services::{Services, Startup};
use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, delete, get, post, put};
use body::Rooms;
pub use guard::{Deadline, refuse_foreign, role_absent};
use guard::{Guard, Guarded};
use metrics_exporter_prometheus::PrometheusHandle;
use problem::Problem;
use raingauge_portal::Portal;
use raingauge_portal::people::Options;
use raingauge_portal::people::audit::Audit;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Everything a handler may need. Shared as one pointer: every request clones it several times.
pub struct Door {
    pub services: Arc<Services>,
    pub tokens: Arc<Tokens>,
    /// The pages; none in a process without their role.
    pub portal: Option<Portal>,
    pub people_options: Options,
    /// How long the log keeps events at most; none where that is said elsewhere.
    pub log_kept: Option<Duration>,
    /// What previews may show of events.
    pub samples: raingauge_portal::Samples,
    pub audit: Audit,
    pub largest: largest::Memory,
    pub metrics: PrometheusHandle,
    pub body_bytes_max: usize,
    /// Room for the bodies of all requests, those of other doors too.
    pub rooms: Rooms,
    pub request_timeout: Duration,
    /// Turns true when the server is about to stop.
    pub draining: watch::Receiver<bool>,
}

/// All routes. `None` is for whoever asks; a scope is what the caller's token must have.
pub fn router(door: Arc<Door>) -> Router {
    let routes = Routes { door: Arc::clone(&door), router: Router::new() };
    let routes = routes
        .add("/v1/events", Some(Scope::EventsWrite), post, events::post)
        .add("/v1/buckets", Some(Scope::BucketsWrite), post, counters::set_buckets)
        .add("/v1/counts", Some(Scope::CountsRead), post, counts::batch)
        .add("/v1/counts", Some(Scope::CountsRead), get, counts::one)
        .add("/v1/series", Some(Scope::CountsRead), get, counts::series)
        .add("/v1/recount", Some(Scope::CountsRead), get, counts::recount)
        .add("/v1/counters", Some(Scope::CountsRead), get, counters::list)
        .add("/v1/counters", Some(Scope::CountersWrite), post, counters::create)
        .add("/v1/counters/{id}", Some(Scope::CountsRead), get, counters::read)
        .add("/v1/counters/{id}", Some(Scope::CountersWrite), put, counters::replace)
        .add("/v1/counters/{id}", Some(Scope::CountersWrite), delete, counters::archive)
        .add("/v1/counters/{id}/versions", Some(Scope::CountsRead), get, counters::versions)
        .add("/v1/counters/{id}/keys", Some(Scope::CountsRead), get, counts::keys)
        .add("/v1/counters/{id}/keys", Some(Scope::Admin), delete, counters::erase_all)
        .add("/v1/counters/{id}/keys/{key}", Some(Scope::Admin), delete, counters::erase_key)
        .add("/v1/counters/{id}/purge", Some(Scope::Admin), post, counters::purge)
        .add("/v1/counters/{id}/preview", Some(Scope::CountersWrite), post, counters::preview_of)
        .add("/v1/counters/preview", Some(Scope::CountersWrite), post, counters::preview)
        .add(
            "/v1/counters/{id}/backfill",
            Some(Scope::CountersWrite),
            post,
            counters::start_backfill,
        )
        .add("/v1/counters/{id}/backfill", Some(Scope::CountsRead), get, counters::backfill)
        .add("/v1/cache-policy", Some(Scope::CountsRead), get, cache_policy::read)
        .add("/v1/cache-policy", Some(Scope::Admin), put, cache_policy::replace)
        .add("/v1/maintenance", Some(Scope::Admin), get, maintenance::status)
        .add("/v1/maintenance/compaction", Some(Scope::Admin), post, maintenance::compact)
        .add("/v1/maintenance/compaction", Some(Scope::Admin), delete, maintenance::stop)
        .add("/metrics", Some(Scope::MetricsRead), get, system::metrics)
        .add("/healthz", None, get, system::live)
        .add("/readyz", None, get, system::ready)
        .add("/openapi.json", None, get, system::openapi);
    let pages = door.portal.clone().map(|portal| pages::router(portal, door.request_timeout));
    routes
        .router
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .with_state(door)
        .merge(pages.unwrap_or_default())
}

/// What the door answers before the services are open: that the process lives, and what it waits for.
pub fn before_ready(startup: Startup) -> Router {
    let starting = move || {
        let startup = startup.clone();
        async move { system::not_ready(&startup.says()) }
    };
    Router::new().route("/healthz", get(system::live)).fallback(starting)
}

/// What a connection is answered for which the door has no place: health checks, and what to do about everything else.
pub fn reserve(door: Arc<Door>) -> Router {
    let routes = Routes { door: Arc::clone(&door), router: Router::new() };
    let routes =
        routes.add("/healthz", None, get, system::live).add("/readyz", None, get, system::ready);
    routes.router.fallback(async || connections_full()).with_state(door)
}

/// The answer to a request over a connection that has no place.
pub fn connections_full() -> Problem {
    let detail = "every connection of this door, or every one that your address may have, is taken: \
                  send requests over connections that are open, or try again in a moment";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "connections_full", detail)
        .retry_after(Duration::from_secs(1))
}

struct Routes {
    door: Arc<Door>,
    router: Router<Arc<Door>>,
}

impl Routes {
    fn add<T: 'static, H: Handler<T, Arc<Door>>>(
        self,
        path: &'static str,
        scope: Option<Scope>,
        method: fn(Guarded<H>) -> MethodRouter<Arc<Door>>,
        handler: H,
    ) -> Self {
        let guard = Arc::new(Guard::new(&self.door, path, scope));
        let route = method(Guarded { guard, handler });
        Self { router: self.router.route(path, route), ..self }
    }
}
