//! The HTTP door: its resources, each with its routes, and the connections of all doors.

mod audit;
mod body;
pub mod bound;
mod buckets;
mod cache_policy;
mod caller;
pub mod change;
pub mod connections;
mod contract;
mod counters;
mod counts;
mod drafts;
mod events;
mod guard;
mod headers;
mod idempotency_key;
mod maintenance;
mod parameters;
mod problem;
pub mod queries;
mod rollouts;
mod routes;
mod status;
mod system;
mod times;

pub use audit::AuditDetails;
use axum::Router;
use axum::routing::get;
pub use body::{Body, Configuration, Trial, Upload};
pub use contract::{Operation, Refusal, Shared, header, query};
pub use problem::Problem;
use raingauge_app::{App, connections_full};
pub use routes::{Route, Routes};
use std::sync::Arc;
use system::Document;

/// The whole table of this door, without the routes of products.
pub fn routes() -> Routes {
    table(&Document::default())
}

/// A resource adds its routes here.
fn table(contract: &Document) -> Routes {
    events::routes()
        .join(buckets::routes())
        .join(counts::routes())
        .join(counters::routes())
        .join(drafts::routes())
        .join(cache_policy::routes())
        .join(rollouts::routes())
        .join(maintenance::routes())
        .join(system::routes(contract))
}

/// Returns the router of all routes of this door and of the products.
pub fn router(app: Arc<App>, products: Routes) -> Router {
    let contract = Document::default();
    let routes = table(&contract).join(products);
    contract.describe(&routes);

    routes
        .mount(&app)
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .with_state(app)
}

/// Answers before the services are open: the process is alive, and what it waits for.
pub fn before_ready(awaited: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let starting = move || {
        let detail = awaited();
        async move { system::not_ready(&detail) }
    };
    Router::new().route("/healthz", get(system::live)).fallback(starting)
}

/// Answers over a connection without a place: health checks, and a problem that says what to do for
/// everything else.
pub fn reserve(app: Arc<App>) -> Router {
    let full = async || Problem::from(connections_full());
    system::health().mount(&app).fallback(full).with_state(app)
}
