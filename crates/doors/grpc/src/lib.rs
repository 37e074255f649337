//! The gRPC door: its methods in one place, each with the scope it needs. Codes, limits and answers
//! are those of the HTTP door. Products add methods of their own, which the door does not know:
//! their messages are compiled here with all of `proto/`.

mod counts;
mod events;
mod guard;
mod health;
mod status;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post_service;
use futures_util::StreamExt;
use guard::Guard;
use proto::raingauge::v1::counts_server::CountsServer;
use proto::raingauge::v1::events_server::EventsServer;
use raingauge_app::budget::Class;
use raingauge_app::{App, Role, connections_full};
use raingauge_core::access::Scope;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tonic::codegen::Service;

pub use status::refused;

/// What the build made of `proto/`.
pub mod proto {
    #![allow(dead_code, missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/server/mod.rs"));
}

/// Clients of the same methods.
#[cfg(feature = "client")]
pub mod client {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/client/mod.rs"));
}

/// The contract of this door, for those who ask for it by reflection.
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// What the door answers.
pub struct Routers {
    pub router: Router,
    /// For connections for which it has no place.
    pub reserve: Router,
}

/// Adds the methods of a product.
pub trait MethodSource: Send + Sync {
    fn add_to<'a>(&self, methods: Methods<'a>) -> Methods<'a>;
}

/// All methods. Health and reflection are open to every caller.
pub async fn routers(
    app: &Arc<App>,
    products: &[Arc<dyn MethodSource>],
) -> Result<Routers, tonic_reflection::server::Error> {
    let counts = CountsServer::new(counts::Service { app: Arc::clone(app) })
        .max_decoding_message_size(counts::MESSAGE_LEN_MAX.min(app.limits.body_bytes_max));
    let events = EventsServer::new(events::Service { app: Arc::clone(app) })
        .max_decoding_message_size(app.limits.body_bytes_max);
    let methods = Methods { app, router: Router::new() }
        .add(
            "/raingauge.v1.Counts/Batch",
            Scope::CountsRead,
            Role::Reader,
            Class::Counts,
            counts.clone(),
        )
        .add("/raingauge.v1.Counts/Series", Scope::CountsRead, Role::Reader, Class::Counts, counts)
        .add(
            "/raingauge.v1.Events/Publish",
            Scope::EventsWrite,
            Role::Writer,
            Class::Events,
            events,
        );
    let methods = products.iter().fold(methods, |methods, product| product.add_to(methods));

    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let reflection = Router::new()
        .route_service("/grpc.reflection.v1.ServerReflection/{method}", reflection)
        .layer(from_fn_with_state(app.node.draining.clone(), until_drained))
        .layer(from_fn_with_state(app.limits.request_timeout, timely));
    let health = Router::new()
        .route_service("/grpc.health.v1.Health/{method}", health::service(app).await)
        .layer(from_fn_with_state(app.limits.request_timeout, timely));
    let router = methods.router.merge(health.clone()).merge(reflection);

    Ok(Routers {
        router: router.fallback(async || status::method_unknown().into_http::<Body>()),
        reserve: health.fallback(async || status::refused(connections_full()).into_http::<Body>()),
    })
}

/// The methods of the door, as they are added.
pub struct Methods<'a> {
    app: &'a App,
    router: Router,
}

impl Methods<'_> {
    /// Longest message that the door takes, in bytes.
    pub fn message_len_max(&self) -> usize {
        self.app.limits.body_bytes_max
    }

    /// Adds a method, whose path is `/package.Service/Method`. Its requests have the caller, a
    /// `Principal`, among their extensions.
    pub fn add<S>(
        self,
        path: &'static str,
        scope: Scope,
        role: Role,
        class: Class,
        service: S,
    ) -> Self
    where
        S: Service<Request, Response: IntoResponse, Error = Infallible, Future: Future + Send>,
        S: Clone + Send + Sync + 'static,
    {
        let guard = Arc::new(Guard::new(self.app, path, scope, role, class));
        let method = post_service(service).layer(from_fn_with_state(guard, guard::pass));
        Self { router: self.router.route(path, method), ..self }
    }
}

/// Ends what the caller asks after the time that a request may take. Answers may go on: a watch of
/// health does.
async fn timely(
    axum::extract::State(limit): axum::extract::State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    let limited = |body: Body| {
        let over = Box::pin(tokio::time::sleep(limit));
        Body::from_stream(body.into_data_stream().take_until(over))
    };
    next.run(request.map(limited)).await
}

/// Ends what the caller asks when the server is about to stop: reflection goes on for as long as it
/// is asked, and would hold the server up.
async fn until_drained(
    axum::extract::State(mut draining): axum::extract::State<watch::Receiver<bool>>,
    request: Request,
    next: Next,
) -> Response {
    let drained = async move {
        let _ = draining.wait_for(|draining| *draining).await;
    };
    let limited =
        |body: Body| Body::from_stream(body.into_data_stream().take_until(Box::pin(drained)));
    next.run(request.map(limited)).await
}
