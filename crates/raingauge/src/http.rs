//! The HTTP door: its resources, each with the routes that it answers.

mod audit;
pub mod body;
mod buckets;
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
mod routes;
mod status;
mod system;
mod times;

use crate::services::{Services, Startup};
use axum::Router;
use axum::routing::get;
use body::Rooms;
pub use guard::{Deadline, refuse_foreign, role_absent};
use metrics_exporter_prometheus::PrometheusHandle;
use problem::Problem;
use raingauge_core::code::Code;
use raingauge_people::Options;
use raingauge_people::audit::Audit;
use raingauge_people::tokens::Tokens;
use raingauge_portal::Portal;
pub use routes::{Route, Routes};
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

/// The whole table: a resource adds its routes here.
pub fn routes() -> Routes {
    events::routes()
        .join(buckets::routes())
        .join(counts::routes())
        .join(counters::routes())
        .join(cache_policy::routes())
        .join(maintenance::routes())
        .join(system::routes())
}

/// Everything that this door answers, the pages too.
pub fn router(door: Arc<Door>) -> Router {
    let pages = door.portal.clone().map(|portal| pages::router(portal, door.request_timeout));

    routes()
        .mount(&door)
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

/// The answers over a connection that the door has no place for: health checks, and what to do about everything else.
pub fn reserve(door: Arc<Door>) -> Router {
    system::health().mount(&door).fallback(async || connections_full()).with_state(door)
}

/// The answer to a request over a connection that has no place.
pub fn connections_full() -> Problem {
    let detail = "every connection of this door, or every one that your address may have, is taken: \
                  send requests over connections that are open, or try again in a moment";
    Problem::new(Code::ConnectionsFull, detail).retry_after(Duration::from_secs(1))
}
